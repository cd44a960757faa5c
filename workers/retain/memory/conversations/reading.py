"""Conversations and their messages as they are listed, from D1."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Generic, TypeVar

from retain.errors import InvalidInput, NotFound
from retain.json_text import Json, read_own_json
from retain.limits.pages import cut, sized
from retain.memory.conversations.statements import MessageRole
from retain.memory.conversations.thread import ThreadSummary
from retain.models.attached import Attached, attached_in
from retain.ports import Row, Sql, SqlValue

STATUSES = ("running", "waiting", "completed", "failed", "cancelled")
MAX_TITLE = 200
"""Longest title, in characters."""
_COLUMNS = "agent_type, instance_id, user_id, title, status, runs, created_at_ms, last_run_at_ms, last_run_id"
_CURSOR = re.compile(r"([0-9]{1,15})\.([a-z][a-z0-9_]{0,31})\.([A-Za-z0-9._-]{1,64})")
_MESSAGE = re.compile(r"[0-9A-Za-z-]{1,32}\.[01]")

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Listed(Generic[Entry]):
    """Some entries of a list. cursor: of the next page, None on the last one."""

    entries: tuple[Entry, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation. user_id: of the person it is held with, if runs named one. status: of its newest run."""

    agent_type: str
    instance_id: str
    user_id: str | None
    title: str | None
    status: str
    runs: int
    created_at_ms: int
    last_run_at_ms: int
    last_run_id: str

    @property
    def cursor(self) -> str:
        """Return the cursor of the page after this conversation."""
        return f"{self.last_run_at_ms}.{self.agent_type}.{self.instance_id}"

    def to_json(self) -> dict[str, Json]:
        """Return the conversation as shown."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Message:
    """What was asked in a run, or the run's answer. attachments: the files that the user brought with it."""

    message_id: str
    run_id: str
    role: MessageRole
    content: str
    at_ms: int
    attachments: tuple[Attached, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the message as shown."""
        shown = {name: getattr(self, name) for name in self.__slots__}
        return {**shown, "attachments": [file.to_json() for file in self.attachments]}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which conversations to list. delegated: also those in which agents work for other agents' runs.

    since_ms, until_ms: of the newest run; the second is not included.
    """

    agent_type: str | None = None
    user_id: str | None = None
    status: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    delegated: bool = False

    def condition(self) -> tuple[list[str], list[SqlValue]]:
        """Return the conditions in SQL, and their values. Raises: InvalidInput (code `invalid_status`)."""
        if self.status is not None and self.status not in STATUSES:
            raise InvalidInput(f"a run's status is one of {', '.join(STATUSES)}", code="invalid_status")
        given: list[tuple[str, SqlValue]] = [
            ("agent_type = ?", self.agent_type),
            ("user_id = ?", self.user_id),
            ("status = ?", self.status),
            ("last_run_at_ms >= ?", self.since_ms),
            ("last_run_at_ms < ?", self.until_ms),
        ]
        used = [(condition, value) for condition, value in given if value is not None]
        conditions = [condition for condition, _ in used] + ([] if self.delegated else ["delegated = 0"])
        return conditions, [value for _, value in used]


async def list_conversations(
    sql: Sql, tenant_id: str, wanted: Wanted, *, limit: int, cursor: str | None = None
) -> Listed[Conversation]:
    """Return a page of conversations, that with the newest run first.

    A conversation that gets a run while pages are read moves to the beginning.
    Raises: InvalidInput for an unknown status or an invalid cursor; Unavailable.
    """
    conditions, values = wanted.condition()
    if cursor is not None:
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise InvalidInput("the cursor is not valid", code="invalid_cursor")
        conditions.append("(last_run_at_ms, agent_type, instance_id) < (?, ?, ?)")
        values += [int(found[1]), found[2], found[3]]
    rows = (
        await sql.run(
            f"SELECT {_COLUMNS} FROM conversations WHERE {' AND '.join(['tenant_id = ?', *conditions])}"
            " ORDER BY last_run_at_ms DESC, agent_type DESC, instance_id DESC LIMIT ?",
            tenant_id,
            *values,
            limit + 1,
        )
    ).rows
    entries = tuple(_conversation(row) for row in rows[:limit])
    return Listed(entries, entries[-1].cursor if len(rows) > limit else None)


async def conversation_of(sql: Sql, tenant_id: str, agent_type: str, instance_id: str) -> Conversation:
    """Return an instance's conversation. Raises: NotFound (code `no_such_instance`); Unavailable."""
    found = await sql.run(
        f"SELECT {_COLUMNS} FROM conversations WHERE tenant_id = ? AND agent_type = ? AND instance_id = ?",
        tenant_id,
        agent_type,
        instance_id,
    )
    return _only(found.rows)


async def shown_conversation(sql: Sql, tenant_id: str, agent_type: str, instance_id: str) -> dict[str, Json] | None:
    """Return an instance's conversation as shown, with its summary; None before its first run is in D1.

    Raises: Unavailable.
    """
    found = await sql.run(
        f"SELECT {_COLUMNS}, summary, summary_through FROM conversations"
        " WHERE tenant_id = ? AND agent_type = ? AND instance_id = ?",
        tenant_id,
        agent_type,
        instance_id,
    )
    if not found.rows:
        return None
    row = found.rows[0]
    lines: list[dict[str, Json]] = [
        {"run_id": line.run_id, "role": line.role, "text": line.text, "at_ms": line.at_ms}
        for line in ThreadSummary.stored(row).lines
    ]
    summary: dict[str, Json] = {"lines": lines, "through": row["summary_through"]}
    return {**_conversation(row).to_json(), "summary": summary}


async def rename_conversation(
    sql: Sql, tenant_id: str, agent_type: str, instance_id: str, title: str | None
) -> Conversation:
    """Give a conversation a title, or take it away with None; return the conversation. Idempotent.

    Raises: NotFound (code `no_such_instance`); Unavailable.
    """
    done = await sql.run(
        "UPDATE conversations SET title = ? WHERE tenant_id = ? AND agent_type = ? AND instance_id = ?"
        f" RETURNING {_COLUMNS}",
        title,
        tenant_id,
        agent_type,
        instance_id,
    )
    return _only(done.rows)


async def list_messages(
    sql: Sql,
    tenant_id: str,
    agent_type: str,
    instance_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    newest_first: bool = False,
) -> Listed[Message]:
    """Return a page of a conversation's messages, oldest first unless `newest_first`.

    Raises: NotFound (code `no_such_instance`); InvalidInput (code `invalid_cursor`); Unavailable.
    """
    if cursor is not None and _MESSAGE.fullmatch(cursor) is None:
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    comparison, order = ("<", "DESC") if newest_first else (">", "ASC")
    beyond = "" if cursor is None else f"AND message_id {comparison} ?"
    names: tuple[SqlValue, ...] = (tenant_id, agent_type, instance_id)
    known, found = await sql.batch(
        [
            ("SELECT 1 FROM conversations WHERE tenant_id = ? AND agent_type = ? AND instance_id = ?", names),
            (
                sized(
                    "SELECT message_id, run_id, role, content, at_ms, attachments FROM conversation_messages"
                    f" WHERE tenant_id = ? AND agent_type = ? AND instance_id = ? {beyond}"
                    f" ORDER BY message_id {order} LIMIT ?",
                    f"message_id {order}",
                    "content",
                ),
                (*names, *([] if cursor is None else [cursor]), limit + 1),
            ),
        ]
    )
    if not known.rows:
        raise _unknown()
    rows, more = cut(found.rows, limit)
    entries = tuple(message_of(row) for row in rows)
    return Listed(entries, entries[-1].message_id if more else None)


def message_of(row: Row) -> Message:
    """Return the message in a row with its columns."""
    files = attached_in(read_own_json(row["attachments"] or "[]"))
    return Message(row["message_id"], row["run_id"], row["role"], row["content"], int(row["at_ms"]), files)


def _conversation(row: Row) -> Conversation:
    return Conversation(**{name: row[name] for name in Conversation.__slots__})


def _only(rows: list[Row]) -> Conversation:
    if not rows:
        raise _unknown()
    return _conversation(rows[0])


def _unknown() -> NotFound:
    return NotFound("there is no such instance", code="no_such_instance")
