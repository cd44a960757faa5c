"""What a run reads of its own conversation: the newest messages, and a summary of those before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from retain.json_text import read_own_json
from retain.memory.conversations.statements import MessageRole
from retain.memory.episodes import Episode, Turns, episode_queries, episodes_in
from retain.memory.scope import Scope
from retain.models.attached import Attached, attached_in
from retain.ports import Row, Sql, SqlResult, Statement
from retain.tenants.quotas import asking, quotas_in

OLDER = 100
"""How many older messages one run takes into the summary."""
_OF_INSTANCE = "tenant_id = ? AND agent_type = ? AND instance_id = ? AND (user_id IS NULL OR user_id = ?)"
_COLUMNS = "message_id, run_id, role, substr(content, 1, ?) AS content, at_ms, recalled, attachments"
_SUMMARY = (
    "SELECT summary, summary_through FROM conversations WHERE tenant_id = ? AND agent_type = ? AND instance_id = ?"
)
_NEWEST = f"""
SELECT {_COLUMNS} FROM conversation_messages WHERE {_OF_INSTANCE}
  AND message_id > COALESCE(
    (SELECT summary_through FROM conversations WHERE tenant_id = ? AND agent_type = ? AND instance_id = ?), '')
ORDER BY message_id DESC LIMIT ?
"""
_OLDEST = f"""
SELECT {_COLUMNS} FROM conversation_messages WHERE {_OF_INSTANCE} AND message_id > ? AND message_id < ?
ORDER BY message_id LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class PastMessage:
    """A message of the conversation. recalled: whether the run had remembered text in its context, which it may repeat.

    attachments: the files that the user brought with it.
    """

    message_id: str
    run_id: str
    role: MessageRole
    content: str
    at_ms: int
    recalled: bool = False
    attachments: tuple[Attached, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """What the summary keeps of one message. weight: lines of a lower one are dropped first."""

    run_id: str
    role: MessageRole
    text: str
    at_ms: int
    weight: int


def lines_in(content: Any) -> tuple[SummaryLine, ...]:
    """Return the lines of a summary from a list of objects. Raises: TypeError for objects of another shape."""
    return tuple(SummaryLine(**line) for line in content)


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """What is kept of the messages up to `through`, oldest first. through: "" when there are none."""

    lines: tuple[SummaryLine, ...] = ()
    through: str = ""

    def to_text(self) -> str:
        """Return the lines as they are stored."""
        return json.dumps([asdict(line) for line in self.lines], ensure_ascii=False)

    @classmethod
    def stored(cls, row: Row | None) -> ThreadSummary:
        """Return the summary in a conversation's row."""
        if row is None or row["summary_through"] is None:
            return cls()
        return cls(lines_in(read_own_json(row["summary"] or "[]")), row["summary_through"])

    @property
    def since_ms(self) -> int | None:
        """The time of the oldest line, None without lines."""
        return min((line.at_ms for line in self.lines), default=None)


@dataclass(frozen=True, slots=True)
class Thread:
    """The conversation before a run. messages: those after the summary, oldest first. whole: whether these are all."""

    summary: ThreadSummary = ThreadSummary()
    messages: tuple[PastMessage, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ThreadQuery:
    """The conversation of one instance, as its run for a user reads it.

    messages: how many are read at most, with a few to spare. characters: how much of each is read.
    """

    tenant_id: str
    agent_type: str
    instance_id: str
    user_id: str | None
    messages: int
    characters: int

    @property
    def _names(self) -> tuple[str, str, str]:
        return self.tenant_id, self.agent_type, self.instance_id

    def statements(self) -> list[Statement]:
        """Return the queries whose results `thread` takes. None can return a message of another user."""
        return [
            (_SUMMARY, self._names),
            (_NEWEST, (self.characters, *self._names, self.user_id, *self._names, self.messages)),
        ]

    def thread(self, results: Sequence[SqlResult]) -> Thread:
        """Return the conversation that the queries found."""
        summary, newest = results
        return Thread(
            ThreadSummary.stored(next(iter(summary.rows), None)),
            tuple(_message(row) for row in reversed(newest.rows)),
            len(newest.rows) < self.messages,
        )

    async def older(self, sql: Sql, after: str, before: str) -> tuple[PastMessage, ...]:
        """Return the oldest messages between two ids, `OLDER` at most. Raises: Unavailable."""
        found = await sql.run(_OLDEST, self.characters, *self._names, self.user_id, after, before, OLDER)
        return tuple(_message(row) for row in found.rows)


@dataclass(frozen=True, slots=True)
class PastQuery:
    """The newest `count` episodes that a run may read, and its conversation, in one request to D1.

    query: None for an agent that does not read its conversation as messages. counted: whether the run is among its day's
    already.
    """

    scope: Scope
    turns: Turns
    count: int
    query: ThreadQuery | None
    now_ms: int
    counted: bool = False

    def statements(self) -> list[Statement]:
        """Return the queries whose results `found` takes."""
        asked = episode_queries(self.scope, self.turns, self.count)
        conversation = [] if self.query is None else self.query.statements()
        return [*asked, *conversation, asking(self.scope.tenant_id, self.now_ms)]

    def found(self, results: Sequence[SqlResult]) -> tuple[list[Episode], Thread]:
        """Return the episodes, oldest first, and the conversation that the queries found.

        Raises: as `episodes_in`; QuotaExceeded (code `run_quota`, `token_quota`) when the tenant may not begin a run today.
        """
        *read, quotas = results
        quotas_in(quotas.rows[0]).check_run(counted=self.counted)
        if self.query is None:
            return episodes_in(read, self.count), Thread()
        return episodes_in(read[:-2], self.count), self.query.thread(read[-2:])


def _message(row: Row) -> PastMessage:
    names = ("message_id", "run_id", "role", "content", "at_ms")
    files = attached_in(read_own_json(row["attachments"] or "[]"))
    return PastMessage(**{name: row[name] for name in names}, recalled=bool(row["recalled"]), attachments=files)
