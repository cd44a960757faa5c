"""`make dev` serves in the foreground and ends with everything that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.docs.shell import make_environment
from tests.e2e.waiting import eventually
from tools.local_server import free_port
from tools.paths import ROOT

pytestmark = pytest.mark.workerd


@pytest.fixture
def port() -> int:
    """A port that nothing listens on."""
    return free_port()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What `make dev` prints."""
    return tmp_path / "dev.log"


@pytest.fixture
def make_dev(tmp_path: Path, port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`make dev` in a process group of its own, with a state of its own."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            ["make", "dev", f"PORT={port}"],
            cwd=ROOT,
            env={**make_environment(), "RETAIN_STATE": str(tmp_path / "state")},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _healthy(port: int) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=10, trust_env=False).status_code == 200
    return False


def _group(process: subprocess.Popen[bytes]) -> list[str]:
    """Return the command lines of the process's group; those that only wait to be reaped do not count."""
    done = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in done.stdout.splitlines()]
    return [row[2] for row in rows if len(row) == 3 and row[0] == str(process.pid) and not row[1].startswith("Z")]


def test_make_dev_serves_until_it_is_stopped_and_leaves_no_process(
    make_dev: subprocess.Popen[bytes], port: int, log: Path, tmp_path: Path
) -> None:
    healthy = eventually(lambda: _healthy(port), lambda up: up or make_dev.poll() is not None, within_s=90)
    assert healthy, log.read_text()
    assert any("workerd" in line for line in _group(make_dev)), "the server belongs to the group"
    serving = f"serving on http://127.0.0.1:{port}: "
    printed = eventually(log.read_text, lambda text: serving in text, within_s=20)
    assert "order_triage" in printed.partition(serving)[2], "it names the agents that answer"
    assert len(printed.splitlines()) < 60, "it prints no table of modules"
    assert list((tmp_path / "state" / "v3" / "d1").iterdir()), "the state is where RETAIN_STATE says"
    os.killpg(make_dev.pid, signal.SIGTERM)
    make_dev.wait(timeout=20)
    eventually(lambda: _group(make_dev), lambda left: not left, within_s=20)
    assert not _healthy(port)
