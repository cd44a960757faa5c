"""The bucket of a cluster on this machine."""

from __future__ import annotations

import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tools.cluster import bucket


class Buckets(BaseHTTPRequestHandler):
    """Makes every bucket that it is asked for."""

    def do_PUT(self) -> None:
        """Answer as S3 does."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_the_bucket_is_not_looked_for_behind_the_proxy_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr(bucket, "_START_TIMEOUT_S", 1)
    (tmp_path / "log").touch()
    with HTTPServer(("127.0.0.1", 0), Buckets) as server, subprocess.Popen([sys.executable], stdin=-1) as waiting:
        Thread(target=server.handle_request, daemon=True).start()
        bucket._create(f"http://127.0.0.1:{server.server_port}/retain", waiting, tmp_path / "log")
        waiting.kill()
