"""Ports of the local server, and how its start is waited for, without wrangler."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tools import local_server
from tools.local_server import LocalServer, PortTaken, check_port, start, wait_until_ready


class _Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def idle() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing, in a group of its own as wrangler."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()


def test_a_proxy_of_the_environment_is_not_asked_for_the_local_server(
    idle: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setattr(local_server, "START_TIMEOUT_S", 20)
    with HTTPServer(("127.0.0.1", 0), _Healthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        log = tmp_path / "log"
        log.touch()
        wait_until_ready(LocalServer(f"http://127.0.0.1:{server.server_port}", log, idle))
        server.shutdown()
    assert idle.poll() is None


def test_a_server_whose_start_is_interrupted_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[LocalServer] = []

    def interrupted(server: LocalServer) -> None:
        started.append(server)
        raise KeyboardInterrupt

    monkeypatch.setattr(local_server, "wait_until_ready", interrupted)
    monkeypatch.setattr(local_server, "command", lambda *_: [sys.executable, "-c", "import time; time.sleep(600)"])
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path, port=local_server.free_port())
    assert started[0].process.poll() is not None


@pytest.mark.parametrize("port", [-1, 0, 65_536, 99_999])
def test_what_is_not_a_port_is_refused(port: int) -> None:
    with pytest.raises(SystemExit, match=f"^{port} is not a port: choose one from 1024 to 65535"):
        check_port(port)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        pytest.param(PermissionError(), SystemExit, "this user may not open port 80", id="a port of the system"),
        pytest.param(OSError(), PortTaken, "port 80 is in use", id="a taken one"),
    ],
)
def test_a_port_that_cannot_be_opened_says_why(
    monkeypatch: pytest.MonkeyPatch, error: OSError, kind: type[SystemExit], message: str
) -> None:
    class Socket(socket.socket):
        def bind(self, _: object) -> None:
            raise error

    monkeypatch.setattr(socket, "socket", Socket)
    with pytest.raises(SystemExit, match=message) as refused:
        check_port(80)
    assert type(refused.value) is kind
