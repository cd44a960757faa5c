"""A local HTTP server for the fetch contract: it echoes, and misbehaves on demand.

`python -m tests.host.echo_server PORT` serves it to a client in another process.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@cache
def _bomb() -> list[bytes]:
    """Return 64 MiB of zeros, compressed to 64 KiB."""
    squeeze = zlib.compressobj(wbits=31)
    pieces = [squeeze.compress(bytes(1024 * 1024)) for _ in range(64)]
    return [piece for piece in (*pieces, squeeze.flush()) if piece]


class EchoServer(ThreadingHTTPServer):
    """Serves until it is closed. Setting `released` ends the requests that it keeps waiting; `silent` counts some."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.released = threading.Event()
        self.silent = 0

    @property
    def origin(self) -> str:
        """The server's address, without a slash."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: EchoServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or the head of an answer waits 40 ms for its acknowledgement

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _chunked(self, pieces: Iterable[bytes], **headers: str) -> None:
        self.send_response(200)
        for name, value in {"Transfer-Encoding": "chunked", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        with suppress(OSError):  # the client may give up
            for piece in pieces:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

    def _echo(self, body: bytes) -> None:
        echoed = {
            "method": self.command,
            "target": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": body.decode(),
        }
        self._answer(200, json.dumps(echoed).encode(), X_Mixed_Case="Kept", Content_Type="application/json")

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        path = self.path.split("?")[0]
        if path == "/bytes":
            self._answer(200, bytes(range(256)))
        elif path.startswith("/status/"):
            self._answer(int(path.removeprefix("/status/")), b"")
        elif path == "/redirect":
            self._answer(302, b"", Location="/echo")
        elif path == "/gzip":
            self._answer(200, gzip.compress(b"squeezed " * 100), Content_Encoding="gzip")
        elif path.startswith("/chunked/"):
            self._chunked(self._pieces(path.removeprefix("/chunked/")))
        elif path == "/bomb":
            self._chunked(_bomb(), Content_Encoding="gzip")
        elif path == "/cookie":
            self._answer(200, b"", Set_Cookie="session=1; Path=/")
        elif path == "/silent":
            self.server.silent += 1
            self.server.released.wait()
        elif path == "/stalled":
            self._start_of_an_answer()
            self.server.released.wait()
        elif path == "/endless":
            self._start_of_an_answer(10**9)
            while not self.server.released.wait(0.05):
                try:
                    self.wfile.write(b"more ")
                except OSError:  # the client has given up, as it should
                    return
        elif path == "/truncated":
            self._start_of_an_answer()
        elif path == "/hangup":
            self.close_connection = True
        else:
            self._echo(body)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 -- the base class's names

    def _pieces(self, size: str) -> Iterator[bytes]:
        if size != "open":
            yield b"x" * int(size)
        else:
            yield from (b"first ", b"second ", b"third ")
            self.server.released.wait()

    def _start_of_an_answer(self, length: int = 100) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(b"0123456789")
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Stay silent."""


@contextmanager
def echo_server() -> Iterator[EchoServer]:
    """Serve on a free port of the loopback interface while the block runs."""
    with EchoServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    EchoServer(int(sys.argv[1])).serve_forever()
