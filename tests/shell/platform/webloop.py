"""`pyodide.webloop`: its classes. The host has another event loop, so nothing is an instance of them."""

from __future__ import annotations

import asyncio
from typing import Any


class PyodideFuture(asyncio.Future[Any]):
    """A future of Pyodide's loop."""


class WebLoop(asyncio.BaseEventLoop):
    """Pyodide's event loop."""
