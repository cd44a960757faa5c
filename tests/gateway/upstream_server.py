"""An upstream on the loopback interface: answers what it received, or misbehaves as the path asks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class Upstream:
    """host: `127.0.0.1:<port>`. received: every request, as `/echo` also answers it."""

    host: str
    received: list[dict[str, object]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


def _answer(path: str, echo: bytes) -> tuple[int, dict[str, str], bytes]:
    match path.strip("/").split("/"):
        case ["status", status]:
            return int(status), {"content-type": "text/plain", "retry-after": "7"}, b"as you wish"
        case ["redirect"]:
            return 302, {"location": "/echo"}, b""
        case ["large", size]:
            return 200, {"content-type": "text/plain"}, b"x" * int(size)
        case ["bytes"]:
            return 200, {"content-type": "application/octet-stream"}, bytes(range(256))
        case _:
            headers = {"content-type": "application/json", "set-cookie": "session=1", "x-internal": "1"}
            return 200, {**headers, "cache-control": "no-store"}, echo


@contextmanager
def serve() -> Iterator[Upstream]:
    """Serve until the block ends. A request to `/silent` is answered only then."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            seen: dict[str, object] = {
                "method": self.command,
                "target": self.path,
                "headers": {name.lower(): value for name, value in self.headers.items()},
                "body": body.decode(),
            }
            upstream.received.append(seen)
            path = urlsplit(self.path).path
            if path == "/silent":
                upstream.released.wait()
            status, headers, content = _answer(path, json.dumps(seen).encode())
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    upstream = Upstream(f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield upstream
    finally:
        upstream.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
