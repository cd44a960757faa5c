"""A deployment that answers what a test lines up, and a command that asks it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.answering import Run, Server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    for name in ("RETAIN_KEY", "RETAIN_PROFILE", "RETAIN_TENANT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RETAIN_URL", "https://retain.example")
    return Server()


@pytest.fixture
def run(server: Server, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return its exit status, its output and its errors."""

    def command(main: Callable[..., int], *arguments: str) -> tuple[int, str, str]:
        status = main([*arguments, "--tenant", "acme"], server.connect)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return command
