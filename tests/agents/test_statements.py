"""What the log costs: an event is written without reading the log again, and a piece of text costs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import fields
from itertools import count

import pytest

from retain.agents.calls.run_request import RunRequest
from retain.agents.catalogue import AgentCatalogue
from retain.agents.files.owed import AttachToMessage, UseAttachments
from retain.agents.identity import instance_of
from retain.agents.ledgers.statements import LogDecision, LogDecisionMemories, NoteKvChange, ParkTrouble
from retain.agents.pending_learnings import NoteLearning
from retain.agents.runs import owed, tables
from retain.agents.runs.context import AssembledContext
from retain.agents.runs.erased_run import CloseErasedRun
from retain.agents.runs.events import CancelRequested, ModelAnswered, ModelAsked, RunCompleted
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import Basis, OpenRun
from retain.agents.runs.owed import (
    AppendEvent,
    CarryEvents,
    CloseRun,
    ContinueRun,
    CountRun,
    ParkRun,
    QueueRun,
    StartFork,
    StartRun,
    UnparkRun,
    WaitRun,
)
from retain.agents.schedules.owed import DropSchedule, KeepSchedule
from retain.agents.users.owed import MeetUser, MeetUserAgain
from retain.errors import RetainError
from retain.host.clock import ManualClock
from retain.host.object_sql import SqliteObjectSql
from retain.memory import episodes
from retain.memory.conversations.statements import (
    AppendMessage,
    MarkConversation,
    OpenConversation,
    SummariseConversation,
)
from retain.memory.episodes import AppendEpisode
from retain.memory.procedures.procedural import BeginProcedure, RecordOutcome
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, OnText
from retain.outbox import SCHEMA as OUTBOX_SCHEMA
from retain.outbox import Outbox, OwedStatement
from retain.ports import SqlRows, SqlValue
from retain.schema.object import migrate
from tests.agents.stepped_chat import SteppedChat, says
from tests.support.databases import migrated_d1
from tests.support.instances import Deployment

CLERK = instance_of("acme", "clerk", "main")
OWED: list[type[OwedStatement]] = [
    *(
        QueueRun,
        StartRun,
        MeetUser,
        MeetUserAgain,
        WaitRun,
        CountRun,
        ContinueRun,
        CloseRun,
        CloseErasedRun,
        AppendEvent,
        NoteLearning,
        ParkRun,
        UnparkRun,
    ),
    *(AppendEpisode, BeginProcedure, RecordOutcome),
    *(OpenConversation, MarkConversation, SummariseConversation, AppendMessage),
    LogDecision,
    *(KeepSchedule, DropSchedule),
]
OF_LEDGERS: list[type[OwedStatement]] = [ParkTrouble, NoteKvChange, LogDecisionMemories]
"""Statements of the ledgers, whose values are not one for each column. tests/ledgers writes them to D1 and reads them."""
OF_FORKS: list[type[OwedStatement]] = [StartFork, CarryEvents]
"""Statements that copy what D1 has of another run. tests/agents/test_forks.py compares D1 with the objects after them."""
OF_FILES: list[type[OwedStatement]] = [UseAttachments, AttachToMessage]
"""Statements of attachments, whose tests write them to D1 and read them."""


class CountedSql:
    """Implements `ObjectSql`, and records the first words of every statement that was run."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self._sql = SqliteObjectSql.open()

    def run(self, sql: str, *values: SqlValue) -> SqlRows:
        self.statements.append(" ".join(sql.split()[:3]))
        return self._sql.run(sql, *values)

    def script(self, statements: Sequence[str]) -> None:
        self._sql.script(statements)

    def atomically(self, work: Callable[[], None]) -> None:
        self._sql.atomically(work)

    def close(self) -> None:
        self._sql.close()


class Desk:
    """A journal whose statements are counted, with one open run."""

    def __init__(self, local: CountedSql) -> None:
        self.local = local
        migrate(local, tables.STEPS)
        clock = ManualClock()
        self._remote = migrated_d1()
        outbox = Outbox(local, self._remote, tables.STATEMENTS, clock, CLERK.key)
        self.journal = Journal(local, outbox, clock, CLERK)
        context = AssembledContext((ChatMessage("user", "hello"),), (), (), {})
        self.run = self.journal.open("run-1", RunRequest("hello"), context, basis=Basis(0, "stepped", "v"))
        local.statements.clear()

    def close(self) -> None:
        self._remote.close()
        self.local.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    with closing(Desk(CountedSql())) as opened:
        yield opened


WRITTEN = ["INSERT INTO happened"]


def test_an_event_is_written_without_reading_the_log(desk: Desk) -> None:
    run = desk.run
    for turn in range(1, 6):
        run = desk.journal.append(run, ModelAsked(turn))
        run = desk.journal.append(run, ModelAnswered(turn, "hm", (), 1, 1))
    assert desk.local.statements == WRITTEN * 10
    assert run == desk.journal.load("run-1")


def test_what_somebody_else_wrote_is_read_once_and_only_then(desk: Desk) -> None:
    desk.journal.append(desk.run, CancelRequested(1, "ann", None))
    desk.local.statements.clear()
    caught_up = desk.journal.caught_up(desk.run)
    assert (caught_up.seq, caught_up.state.cancel) == (1, CancelRequested(1, "ann", None))
    assert desk.local.statements == ["SELECT * FROM"]
    desk.local.statements.clear()
    assert desk.journal.caught_up(caught_up) is caught_up
    assert desk.local.statements == []


def test_an_event_follows_what_somebody_else_wrote(desk: Desk) -> None:
    desk.journal.append(desk.run, CancelRequested(1, "ann", None))
    stale: OpenRun = desk.run
    run = desk.journal.append(stale, ModelAsked(1))
    assert [logged.seq for logged in desk.journal.events("run-1")] == [1, 2]
    assert run == desk.journal.load("run-1")


def test_an_event_that_could_not_be_written_does_not_change_the_run(desk: Desk) -> None:
    desk.local.run("DROP TABLE outbox")
    with pytest.raises(RetainError):
        desk.journal.append(desk.run, ModelAsked(1))
    assert desk.journal.caught_up(desk.run) == desk.run
    desk.local.run(OUTBOX_SCHEMA)
    assert desk.journal.append(desk.run, ModelAsked(1)).seq == 1


def test_a_closed_run_is_known_to_be_current_without_a_query(desk: Desk) -> None:
    run = desk.journal.append(desk.run, ModelAnswered(1, "hi", (), 1, 1))
    run = desk.journal.close(run, RunCompleted(1, "hi"))
    desk.local.statements.clear()
    assert desk.journal.caught_up(run) is run
    assert desk.local.statements == []
    assert desk.journal.load("run-1") == run


class PiecesChat(SteppedChat):
    """Writes its answer in this many pieces."""

    def __init__(self, pieces: int) -> None:
        super().__init__()
        self._pieces = pieces

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        assert on_text is not None
        for _ in range(self._pieces):
            await on_text("word ")
        return says("word " * self._pieces)


async def test_a_streamed_piece_of_text_costs_no_statement(
    deploy: Callable[..., Deployment], agents: Callable[..., AgentCatalogue]
) -> None:
    spent = []
    for pieces in (1, 200):
        deployment = deploy(agents(clerk={}), chat=PiecesChat(pieces))
        await deployment.ask("clerk", "start", input="hello", metadata={}, stream=True)
        await deployment.settled()
        spent.append(sum(point == "local.run" for _, point in deployment.faults.trace))
    assert spent[0] == spent[1]


@pytest.mark.parametrize("kind", OWED, ids=lambda kind: str(kind.__name__))
def test_an_owed_statement_has_a_field_for_each_parameter_by_the_name_of_its_column(kind: type[OwedStatement]) -> None:
    inserted = re.search(r"INSERT .*?\((.*?)\)\s*VALUES \((.*?)\)", kind.SQL, re.DOTALL)
    if inserted is not None:
        pairs = zip(re.split(r",\s*", inserted[1]), re.split(r",\s*", inserted[2]), strict=True)
        columns = [column.strip() for column, value in pairs if value == "?"]
    else:
        columns = re.findall(r"(\w+) = \?", kind.SQL)
    assert [field.name for field in fields(kind)] == columns
    assert kind.SQL.count("?") == len(columns)
    numbered = count(1)
    values = {name: next(numbered) for name in columns}
    assert kind(**values).values() == tuple(values.values())


def test_every_owed_statement_is_known_to_an_instance_s_outbox() -> None:
    earlier = {**owed.EARLIER, **episodes.EARLIER}
    assert {
        **earlier,
        **{kind.NAME: kind.SQL for kind in (*OWED, *OF_LEDGERS, *OF_FORKS, *OF_FILES)},
    } == tables.STATEMENTS
