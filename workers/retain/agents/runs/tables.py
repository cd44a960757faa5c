"""The tables of an instance in the object's SQLite, version by version, and the statements that its outbox may hold.

`turn_state.due_at_ms`: when a waiting run resumes without an answer. `turn_state.resumed`: how often the run was resumed
since it last made progress. `served_user`: the user whom the instance serves, since the first run that named one.
`cancel_requests`: cancellations of delegates' runs that arrived before the runs themselves. `queued_runs`: runs that have
not begun, in the order of their ids; `at_ms` is when each was queued. `owed_deliveries`: runs of which webhooks may be owed
messages. `schedules`: when runs begin without being asked for; those that have ended stay for a day. `served_lists`: what
each MCP server listed last. `happened`: what is inserted here is an event of a run under way; one statement writes it to the
log, to the run's row and to the outbox. `agent_versions`: of a tenant's own agent, the version that the object
knew last (`current`), and those with which its runs began.
"""

from __future__ import annotations

from retain.agents.files.owed import AttachToMessage, UseAttachments
from retain.agents.ledgers.statements import LogDecision, LogDecisionMemories, NoteKvChange, ParkTrouble
from retain.agents.pending_learnings import SCHEMA as LEARNING_SCHEMA
from retain.agents.pending_learnings import NoteLearning
from retain.agents.runs import owed
from retain.agents.runs.erased_run import CloseErasedRun
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
from retain.agents.schedules.schedule_table import SCHEMA as SCHEDULES_SCHEMA
from retain.agents.users.owed import MeetUser, MeetUserAgain
from retain.memory import episodes, working
from retain.memory.conversations.statements import (
    AppendMessage,
    MarkConversation,
    OpenConversation,
    SummariseConversation,
)
from retain.memory.episodes import AppendEpisode
from retain.memory.procedures.procedural import SCHEMA as PROCEDURES_SCHEMA
from retain.memory.procedures.procedural import BeginProcedure, RecordOutcome
from retain.outbox import SCHEMA as OUTBOX_SCHEMA
from retain.outbox import grouped_of, statements_of
from retain.schema.object import Step

_FIRST = (
    """
    CREATE TABLE IF NOT EXISTS turn_state (
      run_id TEXT PRIMARY KEY,
      idempotency_key TEXT UNIQUE,
      request_hash TEXT NOT NULL,
      status TEXT NOT NULL,
      turn INTEGER NOT NULL,
      request TEXT NOT NULL,
      context TEXT NOT NULL,
      result TEXT,
      resumed INTEGER NOT NULL DEFAULT 0,
      due_at_ms INTEGER,
      created_at_ms INTEGER NOT NULL,
      updated_at_ms INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS run_log (
      run_id TEXT NOT NULL,
      seq INTEGER NOT NULL,
      turn INTEGER NOT NULL,
      kind TEXT NOT NULL,
      data TEXT NOT NULL,
      at_ms INTEGER NOT NULL,
      PRIMARY KEY (run_id, seq)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS cancel_requests (
      idempotency_key TEXT PRIMARY KEY,
      asked_by TEXT NOT NULL,
      reason TEXT,
      at_ms INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS served_user (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      user_id TEXT NOT NULL
    )
    """,
    PROCEDURES_SCHEMA,
    LEARNING_SCHEMA,
    OUTBOX_SCHEMA,
    working.SCHEMA,
    working.COPIES_SCHEMA,
)
_QUEUED_RUNS = (
    """
    CREATE TABLE queued_runs (
      run_id TEXT PRIMARY KEY,
      idempotency_key TEXT UNIQUE,
      request_hash TEXT NOT NULL,
      request TEXT NOT NULL,
      at_ms INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
)
_OWED_DELIVERIES = ("CREATE TABLE owed_deliveries (run_id TEXT PRIMARY KEY, due_at_ms INTEGER NOT NULL) WITHOUT ROWID",)
_SCHEDULES = (SCHEDULES_SCHEMA,)
_SERVED_LISTS = ("CREATE TABLE served_lists (server TEXT PRIMARY KEY, tools TEXT NOT NULL) WITHOUT ROWID",)
_HAPPENED = (
    """
    CREATE VIEW happened AS
    SELECT run_id, seq, turn, kind, data, at_ms, NULL AS progress, NULL AS tenant_id FROM run_log
    """,
    f"""
    CREATE TRIGGER event_happened INSTEAD OF INSERT ON happened BEGIN
      INSERT INTO run_log VALUES (new.run_id, new.seq, new.turn, new.kind, new.data, new.at_ms);
      UPDATE turn_state SET turn = new.turn, updated_at_ms = new.at_ms,
        resumed = CASE WHEN new.progress THEN 0 ELSE resumed END WHERE run_id = new.run_id;
      INSERT INTO outbox (tenant_id, statement, parameters, due_at_ms)
      VALUES (
        new.tenant_id,
        '{AppendEvent.NAME}',
        json_array(new.run_id, CAST(new.seq AS INTEGER), new.tenant_id, new.kind, CAST(new.turn AS INTEGER), new.data,
          CAST(new.at_ms AS INTEGER)),
        new.at_ms
      );
    END
    """,  # noqa: S608
)
_AGENT_VERSIONS = (
    """
    CREATE TABLE agent_versions (
      version INTEGER NOT NULL,
      digest TEXT NOT NULL,
      definition TEXT NOT NULL,
      current INTEGER NOT NULL,
      PRIMARY KEY (version, digest)
    ) WITHOUT ROWID
    """,
)
STEPS: tuple[Step, ...] = (
    _FIRST,
    _QUEUED_RUNS,
    _OWED_DELIVERIES,
    _SCHEDULES,
    _SERVED_LISTS,
    _HAPPENED,
    _AGENT_VERSIONS,
)
"""What `retain.schema.object.migrate` applies. A step that was released never changes; append the next one."""

STATEMENTS = {
    **owed.EARLIER,
    **episodes.EARLIER,
    **statements_of(
        NoteLearning,
        *(
            StartRun,
            StartFork,
            QueueRun,
            MeetUser,
            MeetUserAgain,
            WaitRun,
            ParkRun,
            UnparkRun,
            CountRun,
            ContinueRun,
            CloseRun,
            CloseErasedRun,
            AppendEvent,
            CarryEvents,
            AppendEpisode,
            BeginProcedure,
            RecordOutcome,
        ),
        *(OpenConversation, MarkConversation, SummariseConversation, AppendMessage),
        *(KeepSchedule, DropSchedule),
        *(UseAttachments, AttachToMessage),
        *(ParkTrouble, NoteKvChange, LogDecision, LogDecisionMemories),
    ),
}
"""Every statement that an instance's outbox may hold."""

GROUPED = grouped_of(AppendEvent, AppendEpisode, NoteKvChange)
"""Those of which several entries are written by one statement."""
