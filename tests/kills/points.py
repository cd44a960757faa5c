"""Fault points: before and after each call that changes something outside of an instance.

They are in no product code. They are added to a staged copy of the adapters, where each asks a local server and waits
for its answer. That server holds the answer of the one point at which the process is to be killed, so that the kill
comes exactly between a side effect and its log entry, or between the entry and the side effect.
"""

from __future__ import annotations

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

_STAGED = '''
"""Asks the driver of the tests at every fault point."""

import contextlib
import re

import js

_WRITES = re.compile(r"\\s*(INSERT(?: OR \\w+)? INTO|UPDATE|DELETE FROM)\\s+(\\w+)")


async def at(name):
    await js.fetch("{origin}/" + name)


def _named(kind, method, arguments):
    if kind == "d1":
        statements = arguments[0] if method == "batch" else [(arguments[0], ())]
        tables = [found[2] for sql, _ in statements if (found := _WRITES.match(sql))]
        return f"d1.{tables[0]}" if tables else None
    if kind == "call":
        return "call.model" if "/chat/completions" in arguments[1] else "call.tool"
    if kind == "instance":
        return f"instance.{arguments[1]}"
    return f"{kind}.{method}"


def around(kind, method, inner):
    async def wrapped(*arguments, **options):
        given = arguments if kind == "call" else arguments[1:]
        name = _named(kind, method, given)
        if name is None:
            return await inner(*arguments, **options)
        await at(f"{name}:before")
        answer = await inner(*arguments, **options)
        await at(f"{name}:after")
        return answer

    return wrapped


def around_methods(kind, owner, *methods):
    for method in methods:
        setattr(owner, method, around(kind, method, getattr(owner, method)))


def around_stream(inner):
    @contextlib.asynccontextmanager
    async def wrapped(*arguments, **options):
        await at("stream:before")
        async with inner(*arguments, **options) as answer:
            yield answer
            await at("stream:after")

    return wrapped
'''
_WRAPPED = {
    "databases.py": 'around_methods("d1", D1, "run", "batch")',
    "stores.py": 'around_methods("kv", WorkersKv, "put", "delete")\naround_methods("r2", R2, "put", "add", "delete")',
    "vectorize.py": 'around_methods("vectors", Vectorize, "upsert", "delete_by_ids")',
    "services.py": 'around_methods("instance", DurableInstances, "call")',
    "web.py": 'fetch = around("call", "fetch", fetch)\nfetch_stream = around_stream(fetch_stream)',
}
_IMPORTED = "\n\nfrom adapters.fault_points import around, around_methods, around_stream\n\n"


class Points:
    """The server that the points ask. seen: how often each was met since `arm`, in order of the first time.

    killed_at: set when the armed point waits for its answer, which never comes.
    """

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.met = threading.Event()
        self._armed: tuple[str, int] | None = None
        self._released = threading.Event()
        points = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                points.arrive(unquote(self.path[1:]))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def origin(self) -> str:
        """Where the points ask."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def arm(self, name: str | None = None, time: int = 1) -> None:
        """Hold whoever meets this point for the `time`th time from now on. None: hold nobody."""
        self._released.set()
        self._released = threading.Event()
        self.met.clear()
        self.seen.clear()
        self._armed = None if name is None else (name, time)

    def arrive(self, name: str) -> None:
        """Count a point; do not return while it is held."""
        self.seen[name] += 1
        if self._armed == (name, self.seen[name]):
            self._armed = None
            self.met.set()
            self._released.wait(120)

    def close(self) -> None:
        """Stop the server."""
        self.arm()
        self._server.shutdown()
        self._server.server_close()

    def add_to(self, build: Path) -> None:
        """Add the points to a staged copy of the Worker."""
        adapters = build / "adapters"
        (adapters / "fault_points.py").write_text(_STAGED.replace("{origin}", self.origin).lstrip())
        for name, wraps in _WRAPPED.items():
            file = adapters / name
            file.write_text(f"{file.read_text()}{_IMPORTED}{wraps}\n")
