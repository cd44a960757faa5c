"""The bucket's lifecycle rules, as the real wrangler takes and sends them. The account is a server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from retain.cli.lifecycle_rules import main
from retain.items.placement import MATRIX, lifecycle_rules
from tools.paths import ROOT

pytestmark = pytest.mark.workerd

ACCOUNT = "0" * 32


class Account:
    """An account that accepts every request and keeps it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, object]] = []
        account = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                account.requests.append((self.command, self.path, json.loads(content)))
                body = json.dumps({"success": True, "errors": [], "messages": [], "result": {}}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def account() -> Iterator[Account]:
    served = Account()
    yield served
    served.close()


def test_wrangler_takes_the_printed_rules_and_sends_all_of_them(
    account: Account, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 0
    file = tmp_path / "rules.json"
    file.write_text(capsys.readouterr().out)
    command = ["r2", "bucket", "lifecycle", "set", "retain", "--file", str(file), "--force"]
    programs = ROOT / "node_modules" / ".bin"
    done = subprocess.run(
        [str(programs / "wrangler"), *command],
        cwd=tmp_path,
        env={
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "CI": "1",
            "WRANGLER_SEND_METRICS": "false",
            "CLOUDFLARE_API_BASE_URL": f"http://127.0.0.1:{account.server.server_port}/client/v4",
            "CLOUDFLARE_API_TOKEN": "token",
            "CLOUDFLARE_ACCOUNT_ID": ACCOUNT,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    path = f"/client/v4/accounts/{ACCOUNT}/r2/buckets/retain/lifecycle"
    assert account.requests == [("PUT", path, lifecycle_rules(MATRIX))]
