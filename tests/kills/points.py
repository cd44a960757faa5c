"""Fault points: before and after each call that changes something outside of an instance.

They are in no product code. They are added to a staged copy of the Worker (`staged.py`), where each asks a local server
and waits for its answer. That server holds the answer of the points at which the process is to be killed, so that the
kill comes exactly between a side effect and its log entry, or between the entry and the side effect.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_LONGEST_HOLD_S = 180


@dataclass
class Work:
    """One work that is watched. seen: how often it came by each point. held: set once it waits at the armed one."""

    armed: tuple[str, int] | None = None
    seen: Counter[str] = field(default_factory=Counter)
    tables: set[str] = field(default_factory=set)
    held: threading.Event = field(default_factory=threading.Event)


class Points:
    """The server that the points ask. Each point names the work that comes by."""

    def __init__(self) -> None:
        self._works: dict[str, Work] = {}
        self._lock = threading.Lock()
        self._released = threading.Event()
        points = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urlsplit(self.path)
                given = parse_qs(asked.query)
                points.arrive(asked.path[1:], *given.get("work", [""]), tables=given.get("tables", [""])[0])
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

    def watch(self, name: str, point: str | None = None, time: int = 1) -> Work:
        """Watch a work from now on, and hold it when it comes by the point for the `time`th time. None: do not hold it."""
        with self._lock:
            self._works[name] = work = Work(None if point is None else (point, time))
        return work

    def release(self) -> None:
        """Hold nobody any more, and watch nothing."""
        with self._lock:
            self._works.clear()
            self._released.set()
            self._released = threading.Event()

    def arrive(self, point: str, name: str, *, tables: str = "") -> None:
        """Count a point of a work; do not return while the work is held there."""
        with self._lock:
            work, released = self._works.get(name), self._released
            if work is None:
                return
            work.seen[point] += 1
            work.tables.update(table for table in tables.split(",") if table)
            if work.armed != (point, work.seen[point]):
                return
            work.armed = None
            work.held.set()
        released.wait(_LONGEST_HOLD_S)

    def close(self) -> None:
        """Stop the server."""
        self.release()
        self._server.shutdown()
        self._server.server_close()
