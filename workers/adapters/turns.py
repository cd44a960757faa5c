"""Turns of Pyodide's event loop, each of which takes time between a promise and what waits for it."""

from __future__ import annotations

import asyncio
import functools

from pyodide.webloop import PyodideFuture, WebLoop


def spare_turns() -> None:
    """Make each awaited promise take one turn of the event loop instead of two. Idempotent.

    WebLoop adds a callback to every future, to count those that are not done for a handler that no Worker sets.
    Source: https://github.com/pyodide/pyodide/blob/main/src/py/pyodide/webloop.py (create_future)
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, WebLoop) and "create_future" not in vars(loop):
        vars(loop)["create_future"] = functools.partial(PyodideFuture, loop=loop)
