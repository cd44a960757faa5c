"""What the command reads and writes through files and pipes: UTF-8 in every locale, at once, and no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from retain.cli.command import main
from tools.paths import ROOT

EXPORTED = '{"kind":"record","content":"Zoë 茶 a\u2028b"}\n{"kind":"page","cursor":null}\n'.encode()
RUN = {
    "run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "agent_type": "sdr", "instance_id": "desk", "user_id": None,
    "status": "running", "created_at_ms": 1_700_000_000_000,
}  # fmt: skip
LOCALES: list[dict[str, str]] = [
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


class Answering(ThreadingHTTPServer):
    """A deployment with one run and one export, which keeps the bodies that it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []


class _Handler(BaseHTTPRequestHandler):
    server: Answering

    def do_GET(self) -> None:
        exported = self.path.partition("?")[0].endswith("/export")
        self._answer(EXPORTED if exported else json.dumps({"runs": [RUN], "cursor": None}).encode())

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self._answer(b'{"id": "01M", "created": true}')

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name of the base class
        """Print nothing."""


@pytest.fixture
def deployment() -> Iterator[Answering]:
    with Answering() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def _started(
    deployment: Answering, *arguments: bytes | str, env: Mapping[str, str] | None = None, stdout: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[bytes]]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("RETAIN_", "PYTHON", "LC_", "LANG"))
    }
    with subprocess.Popen(
        [sys.executable, "-m", "retain.cli", *arguments],
        cwd=ROOT / "workers",
        env={
            **inherited,
            "RETAIN_URL": f"http://127.0.0.1:{deployment.server_port}",
            "RETAIN_TENANT": "acme",
            "LC_ALL": "C.UTF-8",
            "NO_PROXY": "*",
            **(env or {}),
        },
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def _named(env: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in env.items())


@pytest.mark.parametrize("env", LOCALES, ids=_named)
def test_an_export_into_a_pipe_is_what_the_deployment_sent_in_every_locale(
    deployment: Answering, env: Mapping[str, str]
) -> None:
    with _started(deployment, "export", "-", env=env) as started:
        printed, reported = started.communicate()
    assert (started.returncode, printed, reported) == (0, EXPORTED, b"record 1\n")


@pytest.mark.parametrize("env", LOCALES[1::2], ids=_named)
def test_a_text_from_a_pipe_is_utf8_in_every_locale(deployment: Answering, env: Mapping[str, str]) -> None:
    with _started(deployment, "remember", "-", env=env) as started:
        _, reported = started.communicate("\ufeffZoë drinks 茶.\n".encode())
    assert (started.returncode, reported) == (0, b"")
    assert json.loads(deployment.bodies[0])["content"] == "Zoë drinks 茶."


def test_a_definition_is_read_as_utf8_in_every_locale(deployment: Answering, tmp_path: Path) -> None:
    file = tmp_path / "porter.yaml"
    file.write_text("description: The porter of Zoë.\n", encoding="utf-8")
    with _started(deployment, "agents", "put", str(file), env=LOCALES[-1]) as started:
        started.communicate()
    assert json.loads(deployment.bodies[0]) == {"description": "The porter of Zoë."}


@pytest.mark.parametrize(
    "arguments",
    [
        ["remember", b"Zo\xeb"],
        ["remember", "-"],
        ["ingest", "-", "--conversation", "c"],
        ["import", "-"],
        ["gateway", "credential", "put", "--tool", "t"],
    ],
    ids=str,
)
def test_what_is_not_utf8_is_refused_and_nothing_is_sent(deployment: Answering, arguments: list[str | bytes]) -> None:
    with _started(deployment, *arguments, "--tenant", "acme", env={"LC_ALL": "C"}) as started:
        printed, reported = started.communicate(b"Zo\xeb: hi\n")
    assert (started.returncode, printed) == (1 if "gateway" in arguments else 2, b"")
    assert reported.count(b"\n") == 1
    assert b"utf" in reported.lower()
    assert deployment.bodies == []


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let processes be interrupted that start here: what a shell starts in the background inherits that it is not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_line_can_be_read_while_the_command_runs_and_ctrl_c_ends_it_without_a_traceback(
    deployment: Answering,
) -> None:
    with _started(deployment, "tail", "--json") as started:
        assert started.stdout is not None
        assert json.loads(started.stdout.readline()) == RUN
        started.send_signal(signal.SIGINT)
        _, reported = started.communicate()
    assert (started.returncode, reported) == (130, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", [["runs", "list"], ["runs", "list", "--json"], ["export", "-"]], ids=" ".join)
def test_an_output_that_cannot_be_written_is_reported_on_a_line(deployment: Answering, arguments: list[str]) -> None:
    with (
        Path("/dev/full").open("wb") as full,
        _started(deployment, *arguments, stdout=full.fileno()) as started,
    ):
        _, reported = started.communicate()
    assert started.returncode == 1
    assert reported.splitlines()[-1] == b"the output cannot be written: No space left on device"
    assert b"Traceback" not in reported


@pytest.mark.parametrize(
    ("closed", "arguments", "status", "reported"),
    [
        (">&-", "--version", 1, b"the output cannot be written: Bad file descriptor\n"),
        (">&-", "completion bash", 1, b"the output cannot be written: Bad file descriptor\n"),
        ("<&-", "--version", 0, b""),
        ("<&-", "remember -", 2, b"- cannot be read: [Errno 9] Bad file descriptor (usage)\n"),
        ("2>&-", "remember -", 2, b""),
        ("<&- >&- 2>&-", "--version", 1, b""),
    ],
)
def test_a_stream_that_the_shell_closed_is_one_that_fails(
    closed: str, arguments: str, status: int, reported: bytes
) -> None:
    line = f"exec {sys.executable} -m retain.cli {arguments} {closed}"
    environment = {**os.environ, "RETAIN_URL": "http://127.0.0.1:9", "RETAIN_TENANT": "acme"}
    done = subprocess.run(
        ["sh", "-c", line], input=b"\xff", capture_output=True, env=environment, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stderr) == (status, reported)
    assert done.stdout == (b"" if status else b"retain 0.1.0\n")


def test_ctrl_c_ends_every_subcommand_with_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("retain.cli.roles.main", interrupted)
    assert main(["roles", "list"]) == 130
