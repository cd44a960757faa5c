"""`retain runs`, `recall` and `remember`: what they send, what they print, and how they end."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import httpx
import pytest

from retain.cli.deployed import costs, recall, remember, runs, terminal
from tests.cli.answering import Answer, Run, Server
from tools.paths import ROOT

RUN = {
    "run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "tenant_id": "acme", "agent_type": "sdr", "instance_id": "desk",
    "parent_run_id": None, "user_id": "ann", "by": None, "status": "waiting", "model": "scripted", "steps": 2,
    "input_tokens": 10, "output_tokens": 4, "cost": None, "waiting_for": {"kind": "approval"},
    "created_at_ms": 1_700_000_000_000, "completed_at_ms": None, "texts": "kept", "input": {"input": "hi"},
    "output": "bye \x1b]0;owned\x07\nnext", "error": None,
}  # fmt: skip
LINE = "01ARZ3NDEKTSV4RRFFQ69G5FAV  2023-11-14 22:13:20Z  waiting    sdr/desk  ann\n"


def _body(request: httpx.Request) -> Any:
    return json.loads(request.content)


def test_a_list_goes_over_its_pages_up_to_the_limit(server: Server, run: Run) -> None:
    pages: list[Answer] = [(200, {"runs": [RUN], "cursor": "next"}), (200, {"runs": [RUN, RUN], "cursor": "more"})]
    server.answers["/admin/agents/acme/runs"] = pages
    assert run(runs.main, "list", "--limit", "2", "--status", "open", "--since", "2026-11-23") == (0, LINE * 2, "")
    first, second = (dict(request.url.params) for request in server.asked)
    assert first == {"limit": "2", "status": "open", "since_ms": "1795392000000"}
    assert second == {**first, "cursor": "next"}


def test_each_run_is_an_object_on_a_line_of_json(server: Server, run: Run) -> None:
    server.answers["/admin/agents/acme/runs"] = [(200, {"runs": [RUN, RUN], "cursor": None})]
    _, printed, _ = run(runs.main, "list", "--json")
    assert [json.loads(line) for line in printed.splitlines()] == [RUN, RUN]
    assert printed.isascii()


def test_a_run_is_shown_with_the_control_characters_of_its_texts_as_escapes(server: Server, run: Run) -> None:
    server.answers[f"/admin/agents/acme/runs/{RUN['run_id']}"] = [(200, RUN)]
    status, printed, _ = run(runs.main, "show", str(RUN["run_id"]))
    assert status == 0
    assert printed.startswith(LINE)
    assert "output:\nbye \\x1b]0;owned\\x07\nnext\n" in printed
    assert "\x1b" not in printed


def test_a_run_is_cancelled_in_its_instance(server: Server, run: Run) -> None:
    server.answers[f"/admin/agents/acme/runs/{RUN['run_id']}"] = [(200, RUN)]
    cancelled = f"/v1/agents/acme/sdr/instances/desk/runs/{RUN['run_id']}/cancel"
    server.answers[cancelled] = [(200, {"status": "cancelled"})]
    assert run(runs.main, "cancel", str(RUN["run_id"]), "--reason", "left")[:2] == (0, f"{RUN['run_id']} cancelled\n")
    assert _body(server.asked[1]) == {"reason": "left"}


def test_with_a_key_the_application_s_routes_are_asked_without_access(
    server: Server, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETAIN_KEY", "retainapp_acme_x")
    server.answers["/v1/agents/acme/runs"] = [(200, {"runs": [], "cursor": None})]
    assert run(runs.main, "list") == (0, "", "")
    assert server.asked[0].headers["authorization"] == "Bearer retainapp_acme_x"
    assert "cf-access-client-id" not in server.asked[0].headers


def test_a_memory_is_stored_and_recalled_for_a_user(server: Server, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = "/admin/tenants/acme/memories"
    server.answers[memories] = [(201, {"id": "01M", "created": True}), (200, {"id": "01M", "created": False})]
    monkeypatch.setattr(sys, "stdin", io.StringIO("Ann drinks 茶.\n"))
    assert run(remember.main, "-", "--user", "ann", "--metadata", '{"a": 1}') == (0, "01M\n", "")
    sent = {"content": "Ann drinks 茶.", "kind": "fact", "user_id": "ann", "metadata": {"a": 1}}
    assert _body(server.asked[0]) == sent
    assert run(remember.main, "Ann drinks 茶.")[1] == "01M was already there\n"
    found = {"score": 0.5, "id": "01M", "content": "two\nlines \u202eback"}
    server.answers[f"{memories}/recall"] = [(200, {"memories": [found], "degraded": ["vectors"]})]
    status, printed, reported = run(recall.main, "tea?", "--agent", "sdr", "--top-k", "3")
    assert (status, printed) == (0, "0.500  01M  two\\nlines \\u202eback\n")
    assert "vectors" in reported
    assert _body(server.asked[2]) == {"query": "tea?", "top_k": 3, "agent_type": "sdr"}


@pytest.mark.parametrize("metadata", ['{"a": 1e999}', '{"a": NaN}', '{"a": "\\ud800"}', "{"])
def test_metadata_that_cannot_be_sent_is_refused(server: Server, run: Run, metadata: str) -> None:
    status, printed, reported = run(remember.main, "tea", "--metadata", metadata)
    assert (status, printed, reported.count("\n")) == (2, "", 1)
    assert server.asked == []


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param((400, {"code": "invalid_query", "detail": "no"}), 1, id="a refusal of what was asked"),
        pytest.param((503, {"code": "no_memory_left", "detail": "busy"}), 1, id="a failure of Retain"),
        pytest.param((401, {"code": "invalid_api_key", "detail": "no"}), 3, id="an invalid key"),
        pytest.param((403, {"code": "role_required", "detail": "no"}), 3, id="a missing role"),
        pytest.param((302, "to the login"), 3, id="Access without a session"),
        pytest.param((404, {"code": "no_such_run", "detail": "no"}), 4, id="an unknown run"),
        pytest.param((502, "<html>"), 5, id="a failure in front of it"),
        pytest.param((200, "<html>"), 5, id="another page"),
        pytest.param((200, {"ok": True}), 5, id="another service"),
        pytest.param(None, 5, id="nobody"),
    ],
)
def test_the_exit_status_says_what_can_be_done(server: Server, run: Run, answer: Answer | None, status: int) -> None:
    if answer is not None:
        server.answers["/admin/agents/acme/runs"] = [answer]
    ended, printed, reported = run(runs.main, "list")
    assert (ended, printed) == (status, "")
    assert reported.count("\n") == 1
    if isinstance(answer, tuple) and isinstance(answer[1], dict) and "code" in answer[1]:
        assert reported == f"{answer[1]['detail']} ({answer[1]['code']})\n"


def test_a_recall_that_finds_nothing_says_so(server: Server, run: Run) -> None:
    server.answers["/admin/tenants/acme/memories/recall"] = [(200, {"memories": [], "degraded": []})] * 2
    assert run(recall.main, "tea?") == (0, "", "nothing was found\n")
    assert run(recall.main, "tea?", "--json") == (0, '{"memories": [], "degraded": []}\n', "")


def test_a_refusal_names_each_place_that_does_not_fit(server: Server, run: Run) -> None:
    problems = ["limit: Input should be at least 1", "by: Field required", {"pointer": "/x"}]
    refusal = {"code": "invalid_query", "detail": "the query does not fit", "problems": problems}
    server.answers["/admin/agents/acme/runs"] = [(400, refusal)]
    reported = run(runs.main, "list")[2]
    assert reported == f"the query does not fit: {problems[0]}; {problems[1]} (invalid_query)\n"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        pytest.param("http://retain.example", "k", id="a key without TLS"),
        pytest.param("https://me:pass@retain.example", None, id="credentials in the address"),
        pytest.param("ftp://retain.example", None, id="another protocol"),
        pytest.param("http://[bad", None, id="a bracket that stays open"),
        pytest.param("https://retain.example:port", None, id="a port that is no number"),
        pytest.param("https://retain.example", "a\nb", id="a key of two lines"),
    ],
)
def test_nothing_is_sent_to_an_unsafe_address(
    server: Server, run: Run, monkeypatch: pytest.MonkeyPatch, url: str, key: str | None
) -> None:
    monkeypatch.setenv("RETAIN_URL", url)
    if key is not None:
        monkeypatch.setenv("RETAIN_KEY", key)
    assert run(runs.main, "list")[0] == 2
    assert server.asked == []


@pytest.mark.parametrize("text", ["2h", "1d", "2026-11-23T09:00", "2026-11-23T09:00+01:00"])
def test_a_time_is_a_while_ago_or_a_moment(text: str) -> None:
    assert runs.moment_ms(text) > 1_600_000_000_000


@pytest.mark.parametrize("text", ["999999d", "0001-01-01", "1969-12-31T23:59"])
def test_a_time_before_1970_is_its_beginning(text: str) -> None:
    assert runs.moment_ms(text) == 0


@pytest.mark.parametrize("arguments", [["--since", "soon"], ["--limit", "0"], ["--limit", "²"], ["--status", "odd"]])
def test_a_wrong_option_is_refused_by_the_parser(server: Server, run: Run, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(runs.main, "list", *arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize("text", ["\x00", "\x1b[2J", "\x9b31m", "\x7f", "\u202e", "\u2028", "\ud800", "\r"])
def test_no_control_character_of_a_text_reaches_the_terminal(text: str) -> None:
    for shown in (terminal.one_line(text), terminal.over_lines(text)):
        assert shown.isprintable()
        assert shown.encode()


def test_a_line_is_cut_by_cells_and_not_in_a_pipe() -> None:
    assert terminal.cut("茶茶茶茶", 5) == "茶茶…"
    assert terminal.cut("tea", 3) == "tea"
    assert terminal.cut("茶" * 500, None) == "茶" * 500


def test_a_reader_that_leaves_early_ends_the_command_without_a_traceback() -> None:
    script = "import sys; from retain.cli.command import main; sys.exit(main(['keys', 'signing-key']))"
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT / "workers", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        assert started.stderr.read() == b""
        assert started.wait() == 141


SPENT = {
    "day": "2026-11-23", "agent_type": "sdr", "purpose": "run", "model": "small", "runs": 2, "calls": None,
    "input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7, "learning_input_tokens": 10,
    "learning_cached_input_tokens": 0, "learning_output_tokens": 1, "cost": {"value": 0.1, "currency": "USD"},
}  # fmt: skip
JUDGED = {**SPENT, "agent_type": "", "purpose": "judge", "runs": 0, "calls": 1, "cost": None}


def test_costs_are_lines_with_their_sum_and_what_has_no_price_is_said(server: Server, run: Run) -> None:
    pages: list[Answer] = [
        (200, {"costs": [SPENT], "cursor": "next"}),
        (200, {"costs": [SPENT, JUDGED], "cursor": None}),
    ]
    server.answers["/admin/tenants/acme/costs"] = pages
    status, printed, _ = run(costs.main, "--agent", "sdr", "--purpose", "run", "--since", "2026-11-01")
    assert (status, printed.splitlines()) == (0, [
        *["2026-11-23  sdr  run  small  2 runs  110 in (40 cached), 8 out  0.1000 USD"] * 2,
        "2026-11-23  -  judge  small  1 call  110 in (40 cached), 8 out  no price",
        "sum  330 in (120 cached), 24 out  0.2000 USD  1 of 3 without a price",
    ])  # fmt: skip
    first, second = (dict(request.url.params) for request in server.asked)
    assert first == {"limit": "200", "agent_type": "sdr", "purpose": "run", "since": "2026-11-01"}
    assert second == {**first, "cursor": "next"}


def test_costs_in_json_are_the_entries_alone(server: Server, run: Run) -> None:
    server.answers["/admin/tenants/acme/costs"] = [(200, {"costs": [SPENT, JUDGED], "cursor": None})]
    _, printed, _ = run(costs.main, "--json")
    assert [json.loads(line) for line in printed.splitlines()] == [SPENT, JUDGED]
    server.answers["/admin/tenants/acme/costs"] = [(200, {"costs": [], "cursor": None})]
    assert run(costs.main) == (0, "", "")
