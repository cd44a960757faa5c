"""`retain tail`, `agents`, `ingest` and `doctor`: what they send, what they print, and how they end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from retain.cli.deployed import agents, doctor, ingest, tail
from retain.schema.database import VERSION
from retain.version import __version__
from tests.cli.answering import Answer, Run, Server

RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
RUN = {
    "run_id": RUN_ID, "agent_type": "sdr", "instance_id": "desk", "user_id": None, "status": "running",
    "created_at_ms": 1_700_000_000_000,
}  # fmt: skip
ONE, EVENTS = f"/admin/agents/acme/runs/{RUN_ID}", f"/v1/agents/acme/sdr/instances/desk/runs/{RUN_ID}/events"
JOB = {
    "job_id": "j", "state": "completed", "stored": 2, "duplicate": 0, "rejected": 0, "extracted": 1, "rejections": [],
    "error": None,
}  # fmt: skip
INGEST = "/admin/tenants/acme/memories/ingest"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tail, ingest):
        monkeypatch.setattr(module.time, "sleep", lambda _: None)


def _stream(*events: tuple[str, str, Mapping[str, object]]) -> httpx.Response:
    lines = [f"id: {at}\nevent: {name}\ndata: {json.dumps(data)}\n\n" for at, name, data in events]
    return httpx.Response(200, text=f": hello\n\n{''.join(lines)}")


def test_a_run_is_followed_over_connections_each_event_once(server: Server, run: Run) -> None:
    server.answers[ONE] = [(200, RUN)]
    called = {"turn": 1, "name": "store\x1b[2J", "arguments": {"content": "tea"}}
    server.answers[EVENTS] = [
        _stream(("r.1", "run.started", {"run_id": RUN_ID}), ("r.2", "tool.called", called)),
        (503, "<html>"),
        _stream(("", "text.delta", {"turn": 2, "text": "do"}), ("r.3", "run.completed", {"output": "done"})),
    ]
    status, printed, reported = run(tail.main, RUN_ID)
    assert (status, reported) == (0, "")
    assert [line[9:].strip() for line in printed.splitlines()] == [
        "run.started",
        '1  tool.called         store\\x1b[2J  {"content": "tea"}',
        "run.completed       done",
    ]
    assert [request.headers.get("last-event-id") for request in server.asked[1:]] == [None, "r.2", "r.2"]


@pytest.mark.parametrize(("last", "status"), [("run.completed", 0), ("run.failed", 1), ("run.cancelled", 1)])
def test_the_status_of_a_followed_run_says_how_it_ended(server: Server, run: Run, last: str, status: int) -> None:
    server.answers[ONE] = [(200, RUN)]
    server.answers[EVENTS] = [_stream(("r.1", last, {"error": None}))]
    ended, printed, _ = run(tail.main, RUN_ID, "--json")
    assert (ended, json.loads(printed)) == (status, {"event": last, "id": "r.1", "data": {"error": None}})


def test_a_run_of_which_nothing_is_left_to_read_has_ended(server: Server, run: Run) -> None:
    server.answers[ONE] = [(200, RUN)]
    server.answers[EVENTS] = [httpx.Response(204)]
    assert run(tail.main, RUN_ID) == (0, "", "")


def test_a_deployment_that_stays_away_ends_the_following(server: Server, run: Run) -> None:
    server.answers[ONE] = [(200, RUN)]
    assert run(tail.main, RUN_ID)[0] == 5
    assert len(server.asked) == 6


def test_of_all_runs_each_change_is_a_line(server: Server, run: Run) -> None:
    other, ended = {**RUN, "run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAW"}, {**RUN, "status": "completed"}
    pages = [[RUN], [], [RUN, other], [], [other], []]
    server.answers["/admin/agents/acme/runs"] = [(200, {"runs": page, "cursor": None}) for page in pages]
    server.answers[ONE] = [(200, ended)]
    status, printed, _ = run(tail.main, "--agent", "sdr")
    assert [line.split()[0] + " " + line.split()[3] for line in printed.splitlines()] == [
        f"{RUN_ID} running",
        f"{other['run_id']} running",
        f"{RUN_ID} completed",
    ]
    assert {request.url.params.get("agent_type") for request in server.asked if request.url.path != ONE} == {"sdr"}
    assert status == 5, "the answers were used up"


def test_agents_are_listed_with_whom_they_delegate_to(server: Server, run: Run) -> None:
    listed = [
        {"agent_type": "triage", "description": "Reads.", "house": None, "delegates": ["sdr", "support"]},
        {"agent_type": "sdr", "description": "Sells.", "house": None, "delegates": []},
    ]
    server.answers["/v1/agents/acme"] = [(200, {"agents": listed, "cursor": None})] * 2
    assert run(agents.main) == (0, "triage → sdr, support  Reads.\nsdr  Sells.\n", "")
    assert [json.loads(line) for line in run(agents.main, "--json")[1].splitlines()] == listed


def _sent(server: Server) -> list[Any]:
    return [json.loads(request.content) for request in server.asked if request.method == "POST"]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        pytest.param(
            "Bea: Hi: there!\nAnd more.\nMaya: Hello.\n",
            [{"speaker": "Bea", "content": "Hi: there!\nAnd more."}, {"speaker": "Maya", "content": "Hello."}],
            id="a transcript",
        ),
        pytest.param(
            "Bea: Hi\u2028Maya: is not speaking.\n",
            [{"speaker": "Bea", "content": "Hi\u2028Maya: is not speaking."}],
            id="a transcript with a line separator in a message",
        ),
        pytest.param(
            '[{"role": "user", "content": "Hi", "extra": 1}, {"role": "assistant", "name": "Maya", "content": "Yo"}]',
            [
                {"role": "user", "content": "Hi", "speaker": "Ann"},
                {"role": "assistant", "content": "Yo", "speaker": "Maya"},
            ],
            id="messages of a chat",
        ),
        pytest.param(
            '{"messages": [{"id": "1", "speaker": "Bea", "content": "Hi", "at_ms": 5}]}',
            [{"id": "1", "speaker": "Bea", "content": "Hi", "at_ms": 5}],
            id="a body",
        ),
        pytest.param(
            '{"speaker": "Bea", "content": "1"}\n{"speaker": "Bea", "content": "2"}\n',
            [{"speaker": "Bea", "content": "1"}, {"speaker": "Bea", "content": "2"}],
            id="JSON lines",
        ),
    ],
)
def test_a_conversation_is_read_in_each_form(
    server: Server, run: Run, tmp_path: Path, text: str, messages: list[object]
) -> None:
    (tmp_path / "chat-1.txt").write_text(text)
    server.answers[INGEST] = [(202, {**JOB, "state": "running"})]
    server.answers[f"{INGEST}/j"] = [(200, {**JOB, "state": "running"}), (200, JOB)]
    status, printed, _ = run(ingest.main, str(tmp_path / "chat-1.txt"), "--speaker", "user=Ann", "--user", "ann")
    assert (status, printed) == (0, "stored 2, extracted 1\n")
    assert _sent(server) == [{"conversation": "chat-1", "user_id": "ann", "messages": messages}]


def test_a_long_conversation_is_sent_in_parts_and_what_is_rejected_is_named(
    server: Server, run: Run, tmp_path: Path
) -> None:
    lines = [json.dumps({"speaker": "Bea", "content": str(number)}) for number in range(501)]
    (tmp_path / "long.jsonl").write_text("\n".join(lines))
    rejected = {"index": 0, "code": "content_too_large", "message": "too large"}
    server.answers[INGEST] = [(201, JOB), (201, {**JOB, "rejected": 1, "rejections": [rejected]})]
    status, printed, reported = run(ingest.main, str(tmp_path / "long.jsonl"))
    assert (status, printed) == (1, "stored 4, rejected 1, extracted 2\n")
    assert reported == "message 501: too large (content_too_large)\n"
    assert [len(body["messages"]) for body in _sent(server)] == [500, 1]


def test_nothing_is_sent_of_a_conversation_with_a_message_that_cannot_be_sent(
    server: Server, run: Run, tmp_path: Path
) -> None:
    lines = [json.dumps({"speaker": "Bea", "content": "a"})] * 500 + ['{"speaker": "Bea", "content": "\\ud800"}']
    (tmp_path / "long.jsonl").write_text("\n".join(lines))
    status, _, reported = run(ingest.main, str(tmp_path / "long.jsonl"))
    assert (status, reported.startswith("message 501 cannot be sent: ")) == (2, True)
    assert server.asked == []


@pytest.mark.parametrize("text", ["just words", "[1]"])
def test_a_file_without_a_conversation_is_refused_and_nothing_is_sent(
    server: Server, run: Run, tmp_path: Path, text: str
) -> None:
    (tmp_path / "chat").write_text(text)
    assert run(ingest.main, str(tmp_path / "chat"))[0] == 2
    assert server.asked == []


HEALTHY: dict[str, tuple[int, object]] = {
    "/healthz": (200, {"status": "ok", "version": __version__}),
    "/readyz": (200, {"status": "ready", "schema": VERSION, "stores": {"d1": "ok", "kv": "ok"}}),
    "/v1/agents/acme": (200, {"agents": [{"agent_type": "sdr"}], "cursor": None}),
    "/admin/tenants/acme/verify": (200, {"checked": 3, "drift": {}, "cursor": None}),
    "/admin/tenants/acme/keys": (200, {"keys": [{"expires_at_ms": 1, "revoked_at_ms": None}], "cursor": None}),
    "/admin/errors": (200, {"errors": [], "cursor": None}),
}
Connect = Callable[[str], httpx.Client]


def _deployment(changed: Mapping[str, Answer], date: str) -> Connect:
    """Return what connects to a healthy deployment, except for some answers, which asks for a service token."""

    def answered(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.startswith(("/v1", "/admin")) and "cf-access-client-id" not in request.headers:
            answer = changed.get("anonymous", (302, ""))
        else:
            answer = changed.get(path, HEALTHY[path])
        if isinstance(answer, httpx.Response):
            return answer
        return httpx.Response(answer[0], json=answer[1], headers={"date": date} if date else {})

    headers = {"cf-access-client-id": "service"}
    return lambda url: httpx.Client(base_url=url, headers=headers, transport=httpx.MockTransport(answered))


def _examined(
    capsys: pytest.CaptureFixture[str], changed: Mapping[str, Answer], date: str | None = None
) -> tuple[int, dict[str, str]]:
    now = format_datetime(datetime.now(UTC), usegmt=True)
    connect = _deployment(changed, now if date is None else date)
    status = doctor.main(["--url", "https://retain.example", "--tenant", "acme", "--json"], connect)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return status, {one["check"]: one["verdict"] for one in found}


def test_a_healthy_deployment_passes_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    status, verdicts = _examined(capsys, {})
    assert (status, set(verdicts.values())) == (0, {"ok"})
    assert len(verdicts) == 9


@pytest.mark.parametrize(
    ("check", "changed"),
    [
        ("answers", {"/healthz": (200, {"hello": 1})}),
        ("stores", {"/readyz": (503, {"schema": VERSION, "stores": {"d1": "ok", "kv": "kv_failed"}})}),
        ("schema", {"/readyz": (503, {"schema": VERSION, "stores": {"d1": "schema_outdated", "kv": "ok"}})}),
        ("credentials", {"/v1/agents/acme": (403, {"code": "role_required", "detail": "no"})}),
        ("credentials", {"/v1/agents/acme": (200, {"agents": [], "cursor": None})}),
        ("credentials", {"/v1/agents/acme": (404, {"code": "unknown_tenant", "detail": "there is no tenant acme"})}),
        ("closed", {"anonymous": (200, {"agents": []})}),
        (
            "index",
            {"/admin/tenants/acme/verify": (200, {"checked": 3, "drift": {"missing": {"count": 1}}, "cursor": None})},
        ),
        ("given up", {"/admin/errors": (200, {"errors": [{"stage": "run", "code": "model_failed"}], "cursor": None})}),
    ],
)
def test_each_check_finds_what_it_looks_for(
    capsys: pytest.CaptureFixture[str], check: str, changed: Mapping[str, Answer]
) -> None:
    status, verdicts = _examined(capsys, changed)
    assert (status, verdicts[check]) == (1, "bad")


def test_a_clock_that_is_off_is_found_and_one_of_which_nothing_is_known_is_unknown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _examined(capsys, {}, "Sat, 01 Jan 2022 00:00:00 GMT")[1]["clock"] == "bad"
    assert _examined(capsys, {}, "")[1]["clock"] == "unknown"


def test_what_the_caller_may_not_see_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    refused: Answer = (403, {"code": "scope_required", "detail": "no"})
    status, verdicts = _examined(capsys, {"/admin/errors": (302, ""), "/admin/tenants/acme/keys": refused})
    assert (status, verdicts["keys"], verdicts["given up"]) == (0, "unknown", "unknown")


def test_a_deployment_that_is_not_there_is_bad_in_every_check(server: Server, run: Run) -> None:
    status, printed, _ = run(doctor.main)
    assert status == 1
    assert {line.split()[0] for line in printed.splitlines()} == {"bad"}
