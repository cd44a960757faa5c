"""The commands of the runbook when a deployment answers with an error: they end, say so, and do no harm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.docs.markdown import page

_BLOCKS = page("docs/runbook.md").blocks("sh")
Answer = tuple[int, dict[str, object]]
WAITS: Answer = (202, {"state": "running"})
DONE: Answer = (200, {"state": "completed"})
AWAY: Answer = (503, {"code": "d1_unavailable"})
GONE: Answer = (409, {"code": "not_replayable"})
PARKED: Answer = (200, {"errors": [{"error_id": "e1"}, {"error_id": "e2"}]})


class _Deployment(ThreadingHTTPServer):
    """Answers each request with the next of its answers, the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Deployment

    def do_POST(self) -> None:
        self.server.asked.append(self.path.partition("?")[0])
        answers = self.server.answers
        status, content = answers.pop(0) if len(answers) > 1 else answers[0]
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815 -- the name that the server looks for

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def deployment(*answers: Answer) -> Iterator[_Deployment]:
    with _Deployment(*answers) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ran(server: _Deployment, commands: str) -> tuple[bool, str]:
    """Run commands after the definitions, without pauses, as somebody who types them; return whether they succeeded."""
    script = f"sleep() {{ :; }}\n{_BLOCKS[0]}\n{commands}"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        "RETAIN": f"http://127.0.0.1:{server.server_port}",
    }
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=50, check=False
    )
    return done.returncode == 0, done.stdout


def block_with(text: str) -> str:
    [block] = [block for block in _BLOCKS[1:] if text in block]
    return block


def test_a_call_fails_when_the_answer_is_an_error_and_prints_it() -> None:
    with deployment(DONE, AWAY) as server:
        assert ran(server, 'call "$RETAIN/readyz"') == (True, '{"state": "completed"}\n')
        assert ran(server, 'call "$RETAIN/readyz"') == (False, '{"code": "d1_unavailable"}\n')


@pytest.mark.parametrize(
    ("answers", "succeeded", "text"),
    [([WAITS, WAITS, DONE], True, "completed"), ([AWAY], False, "d1_unavailable"), ([WAITS, AWAY], False, "d1_")],
    ids=["in the end", "an error", "an error later"],
)
def test_what_is_repeated_until_it_is_done_is_done_or_fails(answers: list[Answer], succeeded: bool, text: str) -> None:
    with deployment(*answers) as server:
        done, printed = ran(server, 'until_done -X POST "$RETAIN/admin/tenants/acme/backups"')
        assert (done, text in printed, len(server.asked)) == (succeeded, True, len(answers))


@pytest.mark.parametrize(
    ("answers", "succeeded"),
    [
        (
            [(200, {"resealed": 100, "left": 3}), (200, {"resealed": 3, "left": 0}), (200, {"resealed": 0, "left": 0})],
            True,
        ),
        ([(200, {"resealed": 2, "left": 1}), (200, {"resealed": 0, "left": 1, "unreadable": 1})], False),
        ([(200, {"resealed": 100, "left": 3}), AWAY], False),
    ],
    ids=["all", "one is unreadable", "an error"],
)
def test_the_rotation_of_a_key_ends_and_fails_while_something_is_left(answers: list[Answer], succeeded: bool) -> None:
    with deployment(*answers) as server:
        done, printed = ran(server, block_with("items/reseal"))
        assert (done, len(server.asked)) == (succeeded, len(answers))
        assert json.loads(printed) == answers[-1][1]


def test_only_what_cannot_be_replayed_is_dismissed() -> None:
    with deployment(PARKED, AWAY, GONE, (200, {"state": "dismissed"})) as server:
        ran(server, block_with("/dismiss"))
        assert [path.removeprefix("/admin/errors") for path in server.asked] == [
            "",
            "/e1/replay",
            "/e2/replay",
            "/e2/dismiss",
        ]
