import asyncio
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

class PyodideFuture(asyncio.Future[_T]): ...

class WebLoop(asyncio.BaseEventLoop):
    create_future: Callable[[], asyncio.Future[object]]  # thin_entry.py replaces it
