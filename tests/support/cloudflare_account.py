"""An account of Cloudflare on loopback, for the real wrangler. It answers what a test prepared and keeps what it is sent."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tools.paths import NODE_BIN

ACCOUNT = "0" * 32


@dataclass
class Account:
    """results: what a GET of a path answers, {} for any other. sent: method, path and content of each other request."""

    address: str
    results: dict[str, object] = field(default_factory=dict)
    sent: list[tuple[str, str, object]] = field(default_factory=list)

    def environment(self, home: Path) -> Mapping[str, str]:
        """Return the environment in which wrangler uses this account."""
        return {
            "PATH": f"{NODE_BIN}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "CI": "1",
            "WRANGLER_SEND_METRICS": "false",
            "CLOUDFLARE_API_BASE_URL": f"{self.address}/client/v4",
            "CLOUDFLARE_API_TOKEN": "token",
            "CLOUDFLARE_ACCOUNT_ID": ACCOUNT,
        }


@contextmanager
def account() -> Iterator[Account]:
    """Serve an account until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(served.results.get(self._path(), {}))

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"] or 0))
            served.sent.append((self.command, self._path(), json.loads(content)))
            self._answer({"mutationId": "1"})

        def do_PUT(self) -> None:
            self.do_POST()

        def _path(self) -> str:
            return urlsplit(self.path).path.removeprefix(f"/client/v4/accounts/{ACCOUNT}")

        def _answer(self, result: object) -> None:
            body = json.dumps({"success": True, "errors": [], "messages": [], "result": result}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Account(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
