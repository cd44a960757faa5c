"""What the journal writes, spelled out: the rows of the object, and the statements that it owes to D1, with their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from retain.agents.calls.report import FollowedWorkflow, RunResult, RunStanding, RunUsage
from retain.agents.calls.run_request import RunReference, RunRequest
from retain.agents.calls.user import User
from retain.agents.identity import instance_of
from retain.agents.ledgers.statements import NoteKvChange, parked
from retain.agents.runs import tables
from retain.agents.runs.context import AssembledContext
from retain.agents.runs.events import (
    ApprovalAnswered,
    ApprovalRequested,
    CancelRequested,
    Closing,
    ModelAnswered,
    ModelAsked,
    ModelUnavailable,
    RunCancelled,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunResumed,
    RunSuspended,
    ToolAnswered,
    kind_of,
    to_json,
)
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import Basis, OpenRun
from retain.errors import NotFound, RetainError
from retain.host.clock import ManualClock
from retain.host.object_sql import SqliteObjectSql
from retain.host.sql import SqliteSql
from retain.json_text import JsonObject
from retain.ledgers.kv_audit import KvChange
from retain.memory.conversations.thread import PastMessage, SummaryLine, ThreadSummary
from retain.memory.episodes import Episode
from retain.memory.procedures.procedural import Choice
from retain.models.chat import ChatMessage, ToolCall
from retain.outbox import Outbox, OwedStatement
from retain.schema.object import migrate
from tests.agents.test_context import hit
from tests.ports import raises

CLERK = instance_of("acme", "clerk", "main")
NAMES = ["acme", "clerk", "main"]
HELLO = AssembledContext((ChatMessage("user", "hello"),), (), (), {})
BASIS = Basis(0, "stepped", "v")
PAY = ToolCall("1", "pay", {"order": "AB-1"})
ASKED = ApprovalRequested(1, 0, "pay", {"order": "AB-1"}, 5000)
NOW = 1000

Owed = list[tuple[str, list[Any]]]


class Desk:
    """A journal over real tables, which says what was written since it was last asked."""

    def __init__(self, local: SqliteObjectSql, remote: SqliteSql) -> None:
        self.local = local
        self.clock = ManualClock(NOW)
        self.rung: list[int] = []
        self.noted: list[tuple[str, int, RunEvent, int]] = []
        migrate(local, tables.STEPS)
        outbox = Outbox(local, remote, tables.STATEMENTS, self.clock, CLERK.key)
        self.journal = Journal(local, outbox, self.clock, CLERK, self._ring, self._note)

    def _ring(self) -> None:
        self.rung.append(len(self.rows("SELECT 1 FROM run_log")))

    def _note(self, run: OpenRun, event: RunEvent, at_ms: int) -> list[OwedStatement]:
        self.noted.append((run.run_id, run.seq, event, at_ms))
        return [NOTE] if isinstance(event, ModelAsked) else []

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [dict(row) for row in self.local.run(sql).rows]

    def owed(self) -> Owed:
        """Return the statements that are owed since the last call, each with its values."""
        rows = self.rows("DELETE FROM outbox RETURNING entry_id, tenant_id, statement, parameters")
        assert {row["tenant_id"] for row in rows} <= {"acme"}
        ordered = sorted(rows, key=lambda row: row["entry_id"])
        return [(row["statement"], json.loads(row["parameters"])) for row in ordered]

    def open(self, run_id: str = "run-1", request: RunRequest | None = None) -> OpenRun:
        """Open a run, and forget what it owes."""
        run = self.journal.open(run_id, request or RunRequest("hello"), HELLO, basis=BASIS)
        self.owed()
        return run

    def after(self, run: OpenRun, *events: RunEvent) -> OpenRun:
        """Append events, and forget what they owe."""
        for event in events:
            run = self.journal.append(run, event)
        self.owed()
        return run

    def close(self, run: OpenRun, event: Closing) -> OpenRun:
        """Close a run, and forget what it owes."""
        run = self.journal.close(run, event)
        self.owed()
        return run


CHANGE = KvChange("a", "acme", "key", "delete", "retain", "clerk", "main", None, None, None, None, None, 1)
NOTE = NoteKvChange(CHANGE)


@pytest.fixture
def desk() -> Iterator[Desk]:
    with closing(SqliteObjectSql.open()) as local, closing(SqliteSql.open()) as remote:
        yield Desk(local, remote)


def owed_event(seq: int, event: RunEvent, at_ms: int, run_id: str = "run-1") -> tuple[str, list[Any]]:
    return "append_event", [run_id, seq, "acme", kind_of(event), event.turn, json.dumps(to_json(event)), at_ms]


def test_a_new_run_owes_its_conversation_its_row_and_what_was_asked(desk: Desk) -> None:
    run = desk.journal.open("run-1", RunRequest({"b": 1, "a": 2}), HELLO, basis=BASIS)
    logged = {"input": {"b": 1, "a": 2}, "metadata": {}, "messages": [], "episodes": [], "records": [], "cut": {}}
    assert desk.owed() == [
        ("open_conversation", [*NAMES, None, 0, "run-1", NOW, NOW]),
        ("start_run_of_version", ["run-1", *NAMES, None, json.dumps(logged), "stepped", NOW, None, None, None]),
        ("append_message", ["run-1.0", *NAMES, "run-1", "user", '{"a": 2, "b": 1}', NOW, None, 0]),
    ]
    assert (run.seq, desk.rows("SELECT 1 FROM run_log"), desk.rung) == (0, [], [])
    [row] = desk.rows("SELECT run_id, status, turn, created_at_ms, updated_at_ms FROM turn_state")
    assert row == {"run_id": "run-1", "status": "running", "turn": 0, "created_at_ms": NOW, "updated_at_ms": NOW}
    assert desk.journal.served_user() is None
    assert desk.journal.load("run-1") == run


def test_a_delegated_run_for_a_user_owes_who_they_are_and_the_summary_as_well(desk: Desk) -> None:
    ann = User("ann", "Ann", "fr-CH", "Europe/Zurich")
    parent = RunReference("run-0", "boss", "desk")
    line = SummaryLine("run-0", "user", "hi", 7, 1)
    context = AssembledContext(
        HELLO.messages,
        (Episode("e.001", "e", "main", 1, "text", 1),) * 2,
        (hit(1, "text"),) * 3,
        {"episodes": 1},
        procedure=Choice("mail", "short", "Be short."),
        recent=(PastMessage("m.0", "m", "user", "before", 1),),
        remembered=True,
    )
    run = desk.journal.open(
        "run-1",
        RunRequest("hello", parent=parent, user=ann, by="agent:boss"),
        context,
        basis=BASIS,
        summary=ThreadSummary((line,), "m.9"),
    )
    assert (run.episodes_used, run.records_used, run.messages_used, run.remembered) == (2, 3, 1, True)
    assert (run.procedure, run.basis, run.messages) == (FollowedWorkflow("mail", "short"), BASIS, HELLO.messages)
    opened, started, met, summarised, asked = desk.owed()
    assert opened == ("open_conversation", [*NAMES, "ann", 1, "run-1", NOW, NOW])
    assert (started[0], started[1][:5], started[1][6:]) == (
        "start_run_of_version",
        ["run-1", *NAMES, "run-0"],
        ["stepped", NOW, "ann", "agent:boss", None],
    )
    assert json.loads(started[1][5])["procedure"] == {"task_type": "mail", "workflow_id": "short"}
    assert met == ("meet_user_again", ["acme", "ann", "Ann", "fr-CH", "Europe/Zurich", NOW, NOW, "run-1"])
    assert summarised == ("summarise_conversation", [ThreadSummary((line,)).to_text(), "m.9", 7, *NAMES])
    assert asked == ("append_message", ["run-1.0", *NAMES, "run-1", "user", "hello", NOW, "ann", 0])
    assert desk.journal.served_user() == "ann"
    desk.journal.serve("bob")
    assert desk.journal.served_user() == "ann", "it serves the first"
    assert desk.journal.load("run-1") == run


def test_a_run_that_was_cancelled_before_it_arrived_is_opened_with_its_cancellation(desk: Desk) -> None:
    desk.journal.cancel_unknown("k", "ann", "why")
    desk.journal.cancel_unknown("k", "bob", None)
    desk.clock.advance(1)
    desk.journal.cancel_unknown("l", "bob", None)
    asked = {"idempotency_key": "k", "asked_by": "ann", "reason": "why", "at_ms": NOW}
    other = {"idempotency_key": "l", "asked_by": "bob", "reason": None, "at_ms": NOW + 1}
    assert desk.rows("SELECT * FROM cancel_requests ORDER BY idempotency_key") == [asked, other]
    run = desk.journal.open("run-1", RunRequest("hello", idempotency_key="k"), HELLO, basis=BASIS)
    cancelled = CancelRequested(0, "ann", "why")
    assert (run.seq, run.state.cancel) == (1, cancelled)
    assert desk.owed()[-2:] == [
        ("append_message", ["run-1.0", *NAMES, "run-1", "user", "hello", NOW + 1, None, 0]),
        owed_event(1, cancelled, NOW + 1),
    ]
    assert desk.rows("SELECT * FROM cancel_requests") == [other]
    assert desk.journal.load("run-1") == run == desk.journal.caught_up(run)
    assert desk.journal.open("run-2", RunRequest("hello"), HELLO, basis=BASIS).seq == 0


def test_an_event_is_written_to_the_log_and_owed_with_what_the_ledgers_are_owed(desk: Desk) -> None:
    run = desk.open()
    desk.clock.advance(5)
    event = ModelAsked(1)
    after = desk.journal.append(run, event)
    assert (after.seq, after) == (1, run.after(event))
    assert desk.owed() == [owed_event(1, event, NOW + 5), ("note_kv_change", list(CHANGE.values))]
    assert desk.rows("SELECT * FROM run_log") == [
        {
            "run_id": "run-1",
            "seq": 1,
            "turn": 1,
            "kind": "model_asked",
            "data": '{"turn": 1, "cut": []}',
            "at_ms": NOW + 5,
        }
    ]
    assert desk.rows("SELECT turn, status, updated_at_ms FROM turn_state") == [
        {"turn": 1, "status": "running", "updated_at_ms": NOW + 5}
    ]
    assert desk.noted == [("run-1", 0, event, NOW + 5)]
    assert desk.rung == [1], "followers are told once, when it is written"
    desk.after(after, ModelAnswered(1, "hi", (), 1, 1))
    assert desk.rung == [1, 2]
    assert [logged.seq for logged in desk.journal.events("run-1", after=1)] == [2]
    assert [logged.seq for logged in desk.journal.events("run-1")] == [1, 2]


def test_a_run_catches_up_with_what_others_wrote_after_what_it_has(desk: Desk) -> None:
    run = desk.after(desk.open(), ModelAsked(1))
    answered, cancelled = ModelAnswered(1, "hi", (), 1, 1), CancelRequested(1, "ann", None)
    desk.after(run, answered, cancelled)
    assert desk.journal.caught_up(run) == run.after(answered).after(cancelled)
    assert desk.after(run, ModelAsked(2)).seq == 4


def test_an_event_counts_as_progress_or_does_not(desk: Desk) -> None:
    run = desk.open()
    assert desk.journal.runs.count_resumption("run-1") == 1
    run = desk.after(run, ModelAsked(1))
    assert desk.rows("SELECT resumed FROM turn_state") == [{"resumed": 1}]
    desk.after(run, ModelAnswered(1, "hi", (), 1, 1))
    assert desk.rows("SELECT resumed FROM turn_state") == [{"resumed": 0}]


def test_a_run_that_waits_for_a_person_is_parked_and_counted_and_continues_when_they_answer(desk: Desk) -> None:
    request = RunRequest("hello", idempotency_key="k", user=User("ann"))
    run = desk.after(desk.open(request=request), ModelAsked(1), ModelAnswered(1, "", (PAY,), 3, 2))
    desk.clock.advance(5)
    waiting = desk.journal.append(run, ASKED)
    for_whom = {"kind": "approval", "call": "1.0", "tool": "pay", "arguments": {"order": "AB-1"}, "expires_at_ms": 5000}
    copy = [json.dumps(request.to_json()), run.stored_context()]
    assert desk.owed() == [
        owed_event(3, ASKED, NOW + 5),
        ("park_run", ["run-1", *NAMES, "ann", "k", 3, 5000, NOW + 5, *copy]),
        ("wait_run", [json.dumps(for_whom), "run-1"]),
        ("mark_conversation", ["waiting", *NAMES, "run-1"]),
        ("count_cached_run", [1, 3, 0, 2, "run-1"]),
    ]
    assert desk.rows("SELECT status, due_at_ms FROM turn_state") == [{"status": "waiting", "due_at_ms": 5000}]
    assert desk.journal.report("run-1").status == "waiting"
    answered = ApprovalAnswered(1, 0, True, "ann")
    running = desk.journal.append(waiting, answered)
    assert desk.owed() == [
        owed_event(4, answered, NOW + 5),
        ("unpark_run", ["run-1"]),
        ("go_on_run", ["run-1"]),
        ("mark_conversation", ["running", *NAMES, "run-1"]),
    ]
    assert desk.rows("SELECT status, due_at_ms FROM turn_state") == [{"status": "running", "due_at_ms": None}]
    assert isinstance(desk.journal.report("run-1"), RunStanding)
    desk.journal.append(running, ModelAsked(2))
    assert [name for name, _ in desk.owed()] == ["append_event", "note_kv_change"], "it does not wait any more"


def test_a_run_that_waits_for_a_delegate_or_for_the_model_is_due_automatically(desk: Desk) -> None:
    suspended = RunSuspended(1, 0, RunReference("run-9", "helper", "main"))
    run = desk.after(desk.open(), ModelAsked(1), ModelAnswered(1, "", (PAY,), 3, 2))
    run = desk.journal.append(run, suspended)
    assert [name for name, _ in desk.owed()] == [
        *("append_event", "park_run", "wait_run", "mark_conversation", "count_cached_run")
    ]
    assert desk.rows("SELECT due_at_ms FROM turn_state") == [{"due_at_ms": NOW + 60_000}]
    run = desk.after(run, RunResumed(1, 0), ToolAnswered(1, 0, "pay", "paid"), ModelAsked(2))
    desk.journal.append(run, ModelUnavailable(2, "model_unavailable", "down", 7000, 9000))
    assert [name for name, _ in desk.owed()] == ["append_event", "wait_run", "mark_conversation", "count_cached_run"], (
        "what waits for the model's server is not parked: the wait is short"
    )
    assert desk.rows("SELECT due_at_ms FROM turn_state") == [{"due_at_ms": 7000}]


def test_a_run_that_is_too_large_to_be_parked_waits_all_the_same(desk: Desk) -> None:
    run = desk.open(request=RunRequest("x" * 800_000))
    desk.after(run, ModelAsked(1), ModelAnswered(1, "", (PAY,), 3, 2))
    desk.journal.append(run, ASKED)
    assert [name for name, _ in desk.owed()] == ["append_event", "wait_run", "mark_conversation", "count_cached_run"]


def test_a_completed_run_owes_its_turns_its_result_and_its_answer(desk: Desk) -> None:
    run = desk.after(
        desk.open(request=RunRequest("hello", user=User("ann"))),
        *(ModelAsked(1), ModelAnswered(1, "", (PAY,), 3, 2), ToolAnswered(1, 0, "pay", "paid", summary="it was paid")),
        *(ModelAsked(2), ModelAnswered(2, "done \ud800", (), 4, 3, "stop")),
    )
    desk.clock.advance(9)
    event, now = RunCompleted(2, "done \ud800"), NOW + 9
    rung = len(desk.rung)
    closed = desk.journal.close(run, event, "rules")
    assert (closed.seq, closed.state.closed, desk.rung[rung:]) == (6, event, [6])
    first = 'input: hello\npay({"order": "AB-1"}) -> it was paid'
    assert desk.owed() == [
        owed_event(6, event, now),
        ("note_learning", ['{"status": "pending", "method": "rules"}', "run-1"]),
        ("append_episode_of_user", ["run-1.001", *NAMES, "run-1", 1, first, now, "ann"]),
        ("append_episode_of_user", ["run-1.002", *NAMES, "run-1", 2, "clerk: done ?", now, "ann"]),
        ("close_cached_run", ["completed", "done ?", None, 3, 7, 0, 5, now, "run-1"]),
        ("mark_conversation", ["completed", *NAMES, "run-1"]),
        ("append_message", ["run-1.1", *NAMES, "run-1", "assistant", "done ?", now, "ann", 1]),
    ]
    assert desk.rows("SELECT run_id, method, ended_at_ms FROM pending_learnings") == [
        {"run_id": "run-1", "method": "rules", "ended_at_ms": now}
    ]
    [row] = desk.rows("SELECT status, updated_at_ms FROM turn_state")
    assert row == {"status": "completed", "updated_at_ms": now}
    report = desk.journal.report("run-1")
    assert isinstance(report, RunResult)
    assert (report.instance_id, report.output, report.usage) == ("main", "done \ud800", RunUsage(7, 5))


def test_a_run_without_recalled_text_says_so_and_teaches_nothing_unasked(desk: Desk) -> None:
    run = desk.after(desk.open(), ModelAsked(1), ModelAnswered(1, "hi", (), 1, 1))
    desk.journal.close(run, RunCompleted(1, "hi"))
    owed = desk.owed()
    assert [name for name, _ in owed] == [
        *("append_event", "append_episode_of_user", "close_cached_run", "mark_conversation", "append_message")
    ]
    assert owed[-1][1][-2:] == [None, 0]
    assert desk.rows("SELECT 1 FROM pending_learnings") == []


@pytest.mark.parametrize(
    ("event", "status", "error"),
    [
        (RunFailed(1, "turn_limit", "too many"), "failed", {"code": "turn_limit", "message": "too many"}),
        (RunCancelled(1, "ann", "why"), "cancelled", {"code": "cancelled", "message": "why", "by": "ann"}),
    ],
)
def test_a_run_that_ends_without_an_answer_owes_why(
    desk: Desk, event: Closing, status: str, error: dict[str, str]
) -> None:
    run = desk.after(desk.open(), ModelAsked(1))
    desk.journal.close(run, event)
    assert desk.owed() == [
        owed_event(2, event, NOW),
        ("close_cached_run", [status, None, json.dumps(error), 0, 0, 0, 0, NOW, "run-1"]),
        ("mark_conversation", [status, *NAMES, "run-1"]),
    ]


def test_what_learning_came_to_is_owed_and_a_failure_is_parked(desk: Desk) -> None:
    failed: JsonObject = {"status": "failed", "error": {"code": "c", "message": "m"}}
    reports: tuple[JsonObject, ...] = ({"status": "learned"}, failed)
    for number, report in enumerate(reports):
        run = desk.after(desk.open(f"run-{number}"), ModelAsked(1), ModelAnswered(1, "hi", (), 1, 1))
        desk.journal.close(run, RunCompleted(1, "hi"), "rules")
        desk.owed()
        desk.journal.learned(f"run-{number}", report)
        failures = [parked(CLERK, "learning", "run-1", "c", NOW, run_id="run-1")] if number else []
        assert desk.owed() == [
            ("note_learning", [json.dumps(report), f"run-{number}"]),
            *(("park_trouble", list(failure.values())) for failure in failures),
        ]
        assert desk.rows("SELECT 1 FROM pending_learnings") == []


@pytest.mark.parametrize("broken", ["open", "append", "close", "learned", "erase"])
def test_what_cannot_be_owed_is_not_written_either(desk: Desk, broken: str) -> None:
    run = desk.after(desk.open(), ModelAsked(1), ModelAnswered(1, "", (PAY,), 3, 2))
    if broken == "erase":
        desk.after(run, ASKED)
    desk.journal.pending.add("run-1", "rules", NOW)
    before = desk.local.run("SELECT * FROM turn_state").rows, desk.rows("SELECT * FROM run_log")
    desk.local.run("DROP TABLE outbox")
    works: dict[str, Callable[[], object]] = {
        "open": lambda: desk.journal.open("run-2", RunRequest("hello"), HELLO, basis=BASIS),
        "append": lambda: desk.journal.append(run, ModelAsked(2)),
        "close": lambda: desk.journal.close(run, RunFailed(1, "turn_limit", "m")),
        "learned": lambda: desk.journal.learned("run-1", {}),
        "erase": lambda: desk.journal.erase(lambda text: True),
    }
    with pytest.raises(RetainError):
        works[broken]()
    assert (desk.local.run("SELECT * FROM turn_state").rows, desk.rows("SELECT * FROM run_log")) == before
    assert len(desk.rows("SELECT 1 FROM pending_learnings")) == 1


def test_the_last_event_of_an_open_run_is_known_and_that_of_another_is_looked_up(desk: Desk) -> None:
    run = desk.after(desk.open(), ModelAsked(1), ModelAnswered(1, "hi", (), 1, 1))
    asleep = desk.journal.last_seq("unknown"), desk.journal.last_seq("run-1")
    assert asleep == (0, 2)
    desk.local.run("UPDATE run_log SET seq = seq + 10 WHERE seq = 2")  # what is known of an open run is not read again
    assert desk.journal.last_seq("run-1") == 2
    desk.local.run("UPDATE run_log SET seq = seq - 10 WHERE seq > 10")
    desk.close(run, RunCompleted(1, "hi"))
    assert desk.journal.last_seq("run-1") == 3
    desk.local.run("DELETE FROM run_log WHERE seq = 3")
    assert desk.journal.last_seq("run-1") == 2, "nothing is remembered of a run that has ended"


def test_the_report_of_an_unknown_run_is_refused(desk: Desk) -> None:
    with raises(NotFound, code="no_such_run"):
        desk.journal.report("run-1")
    with raises(NotFound, code="no_such_run"):
        desk.journal.load("run-1")


def test_what_had_ended_by_a_time_is_forgotten_with_its_events(desk: Desk) -> None:
    for number in (1, 2):
        run = desk.after(desk.open(f"run-{number}"), ModelAsked(1), ModelAnswered(1, "hi", (), 1, 1))
        desk.journal.cancel_unknown(f"k-{number}", "ann", None)
        desk.close(run, RunCompleted(1, "hi"))
        desk.clock.advance(1)
    desk.open("run-3")
    desk.journal.forget(NOW)
    assert [row["run_id"] for row in desk.rows("SELECT run_id FROM turn_state")] == ["run-2", "run-3"]
    assert {row["run_id"] for row in desk.rows("SELECT run_id FROM run_log")} == {"run-2"}
    assert [row["idempotency_key"] for row in desk.rows("SELECT * FROM cancel_requests")] == ["k-2"]


def test_erasing_everything_leaves_no_row_and_owes_nothing(desk: Desk) -> None:
    run = desk.after(desk.open(request=RunRequest("hello", user=User("ann"))), ModelAsked(1))
    desk.journal.pending.add("run-1", "rules", NOW)
    desk.journal.cancel_unknown("k", "ann", None)
    desk.local.run("INSERT INTO procedural_workflows VALUES ('short', 'clerk', 'mail', 'Be short.', 1, 1)")
    desk.journal.erase(None)
    assert desk.owed() == []
    written = ("turn_state", "run_log", "pending_learnings", "cancel_requests", "procedural_workflows", "served_user")
    assert [table for table in written if desk.rows(f"SELECT 1 FROM {table}")] == []
    assert desk.journal.last_seq("run-1") == 0, "nothing is remembered of it"
    assert run.seq == 1


def test_a_term_is_erased_with_the_runs_that_name_it_and_one_that_waits_is_cancelled_in_d1(desk: Desk) -> None:
    requests = {"by-input": "AB-1", "by-event": "hello", "waits": "hello", "stays": "hello"}
    for run_id, text in requests.items():
        run = desk.after(desk.open(run_id, RunRequest(text)), ModelAsked(1))
        if run_id == "waits":
            desk.after(run, ModelAnswered(1, "", (PAY,), 3, 2), ASKED)
        else:
            answer = "AB-1" if run_id == "by-event" else "hi"
            desk.close(desk.after(run, ModelAnswered(1, answer, (), 1, 1)), RunCompleted(1, "hi"))
        desk.journal.pending.add(run_id, "rules", NOW)
    desk.clock.advance(3)
    desk.journal.erase(lambda text: "AB-1" in text)
    error = {"code": "erased", "message": "what the run was about was erased"}
    assert desk.owed() == [
        ("close_erased_run", [json.dumps(error), NOW + 3, "waits"]),
        ("mark_conversation", ["cancelled", *NAMES, "waits"]),
        ("unpark_run", ["waits"]),
    ]
    for table in ("turn_state", "run_log", "pending_learnings"):
        assert {row["run_id"] for row in desk.rows(f"SELECT run_id FROM {table}")} == {"stays"}, table
    assert desk.journal.last_seq("waits") == 0, "nothing is remembered of it"
