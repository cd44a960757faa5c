"""The inbox: the position of every message of a conversation, and what is still to be done with it.

A message is durable as soon as its row is here. The primary key makes positions unique: of two requests that want the
same one, the second decides again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.ingest.extraction import ExtractedFact, SourceMessage
from retain.ingest.intake import HELD_BYTES, discarding
from retain.ingest.messages import IncomingMessage, message_key
from retain.ingest.placement import Gap, Placeable, PlacedMessage
from retain.ingest.speech.speakers import Role
from retain.json_text import read_own_json
from retain.memory.records.record import Utterance
from retain.memory.scope import Scope
from retain.ports import Row, Sql, SqlResult, SqlValue, Statement

KNOWN_LIMIT = 5000
"""The most messages of a conversation with which one request is compared, the latest first."""
_ADOPT_PAGE = 200
_BEFORE_ALL = -(2**53)

_HERE = "tenant_id = ?1 AND scope_id = ?2 AND conversation = ?3"
_KNOWN = f"""
SELECT position, message, message_key, at_ms FROM ingest_messages INDEXED BY ingest_messages_by_key
WHERE {_HERE} AND message_key IN (SELECT value FROM json_each(?4))
UNION SELECT position, message, message_key, at_ms FROM ingest_messages INDEXED BY ingest_messages_by_id
WHERE {_HERE} AND message IN (SELECT value FROM json_each(?5)) AND message IS NOT NULL
ORDER BY position DESC LIMIT ?6
"""
_SPAN = f"""
SELECT (SELECT MIN(position) FROM ingest_messages WHERE {_HERE}) AS low,
  (SELECT MAX(position) FROM ingest_messages WHERE {_HERE}) AS high
"""
_GAPS = f"""
SELECT t.value AS at_ms, b.position AS before, b.at_ms AS before_ms, a.position AS after, a.at_ms AS after_ms,
  (SELECT MAX(position) FROM ingest_messages WHERE {_HERE} AND position < a.position) AS floor
FROM json_each(?4) t
LEFT JOIN ingest_messages b ON b.rowid = (SELECT rowid FROM ingest_messages INDEXED BY ingest_messages_by_time
  WHERE {_HERE} AND at_ms <= t.value ORDER BY at_ms DESC, position DESC LIMIT 1)
LEFT JOIN ingest_messages a ON a.rowid = (SELECT rowid FROM ingest_messages INDEXED BY ingest_messages_by_time
  WHERE {_HERE} AND at_ms > t.value ORDER BY at_ms, position LIMIT 1)
"""
_INSERT = """
INSERT INTO ingest_messages (tenant_id, scope_id, conversation, position, message, message_key, at_ms, state, speaker,
  content, job_id, message_index, role)
SELECT ?1, ?2, ?3, value ->> 0, value ->> 1, value ->> 2, value ->> 3, 'received', value ->> 4, value ->> 5, ?4,
  value ->> 6, value ->> 7
FROM json_each(?5)
"""
_MOVE = """
INSERT INTO ingest_messages (tenant_id, scope_id, conversation, position, message, message_key, at_ms, state, speaker,
  content, job_id, message_index, role)
SELECT ?1, ?2, ?3, p.value ->> 0, u.message, u.message_key, u.at_ms, 'received', u.speaker, u.content, ?4,
  p.value ->> 1, u.role
FROM json_each(?5) p LEFT JOIN ingest_uploads u ON u.upload_id = ?6 AND u.message_index = p.value ->> 1
"""
"""A missing uploaded message has no key, which the table refuses: then nothing is moved."""
_ADOPTABLE = """
SELECT r.id, r.position, r.speaker, r.content, r.said_at_ms, r.source, r.number FROM memory_search s
JOIN memory_records r ON r.number = s.number
WHERE s.tenant_id = ? AND s.scope_id = ? AND s.conversation = ? AND s.position > ? ORDER BY s.position LIMIT ?
"""
_ADOPT = """
INSERT OR IGNORE INTO ingest_messages
  (tenant_id, scope_id, conversation, position, message, message_key, at_ms, state, record_id)
SELECT ?1, ?2, ?3, value ->> 0, value ->> 1, value ->> 2, value ->> 3, 'learned', value ->> 4 FROM json_each(?4)
"""
_RECEIVED = """
SELECT position, message, speaker, content, at_ms, role FROM ingest_messages
WHERE job_id = ? AND state = 'received' ORDER BY position LIMIT ?
"""
_LISTED = """
WHERE tenant_id = ?1 AND scope_id = ?2 AND conversation = ?3
  AND position IN (SELECT CAST(key AS INTEGER) FROM json_each(?4)) AND +job_id = ?5
"""
_OWN = """(?4 -> ('$."' || ingest_messages.position || '"'))"""
"""What is to be noted of a message: its element of an object by position."""
_RECORD_ID = f"""
(SELECT r.id FROM memory_records r WHERE r.tenant_id = ?1 AND r.scope_id = ?2 AND r.content_hash = {_OWN} ->> 0)
"""
_TAKEN = f"""
UPDATE ingest_messages SET state = 'learned', speaker = NULL, content = NULL, role = NULL, fact_count = {_OWN} ->> 1,
  record_id = {_RECORD_ID} {_LISTED} AND +state = 'received'
"""
_STORED = f"""
UPDATE ingest_messages SET state = 'stored', speaker = NULL, content = NULL, record_id = {_RECORD_ID}
{_LISTED} AND +state = 'received'
"""
_UNREAD = """
SELECT m.position, m.record_id, m.role, r.speaker, r.content, r.said_at_ms FROM ingest_messages m
LEFT JOIN memory_records r ON r.id = m.record_id
WHERE m.job_id = ? AND m.state = 'stored' ORDER BY m.position LIMIT ?
"""
_READ = f"""
UPDATE ingest_messages SET state = 'extracted', role = NULL, facts = {_OWN} ->> 0 {_LISTED} AND +state = 'stored'
"""
_UNLEARNED = """
SELECT m.position, m.message, m.record_id, m.facts, r.said_at_ms FROM ingest_messages m
LEFT JOIN memory_records r ON r.id = m.record_id
WHERE m.job_id = ? AND m.state = 'extracted' ORDER BY m.position LIMIT ?
"""
_LEARNED = f"""
UPDATE ingest_messages SET state = 'learned', facts = NULL, fact_count = {_OWN} ->> 0 {_LISTED} AND +state = 'extracted'
"""


@dataclass(frozen=True, slots=True)
class Received:
    """A message that waits to be stored. message: the sender's id for it. role: the speaker's."""

    content: str
    message: str | None
    place: Utterance
    role: Role | None


@dataclass(frozen=True, slots=True)
class Unlearned:
    """The facts of a stored message that wait to be stored. at_ms: when the message was uttered, if known."""

    position: int
    message: str | None
    record_id: str
    at_ms: int | None
    facts: tuple[ExtractedFact, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The next messages of a job in each of its states, in the order of their positions.

    received: to be stored. unread: stored, with facts to be extracted, by position; None for a message that was deleted or
    erased since then: it has no facts. unlearned: with facts to be learned.
    """

    received: Sequence[Received]
    unread: Sequence[tuple[int, SourceMessage | None]] = ()
    unlearned: Sequence[Unlearned] = ()


class Inbox:
    """The inbox of one scope."""

    def __init__(self, sql: Sql, scope: Scope) -> None:
        self._sql = sql
        self._scope = scope

    def knowing(self, conversation: str, messages: Sequence[Placeable]) -> list[Statement]:
        """Return the statements whose results `known_in` takes."""
        here = self._here(conversation)
        keys = json.dumps(sorted({"", *(message.key for message in messages)}))
        ids = json.dumps(sorted({message.id for message in messages if message.id is not None}))
        times = json.dumps(sorted({message.at_ms for message in messages if message.at_ms is not None}))
        return [
            (_SPAN, here),
            (_KNOWN, (*here, keys, ids, KNOWN_LIMIT)),
            (_GAPS, (*here, times)),
            (_ADOPTABLE, (*here, _BEFORE_ALL, 1)),
        ]

    async def adopt(self, conversation: str) -> None:
        """Give positions to messages that the scope has but that did not come through the inbox, as after an import."""
        here, after = self._here(conversation), _BEFORE_ALL
        while rows := (await self._sql.run(_ADOPTABLE, *here, after, _ADOPT_PAGE)).rows:
            values = [
                (
                    int(row["position"]),
                    read_own_json(row["source"]).get("message"),
                    message_key(row["speaker"], row["content"]),
                    _time(row["said_at_ms"]),
                    row["id"],
                )
                for row in rows
            ]
            await self._sql.run(_ADOPT, *here, json.dumps(values))
            after = values[-1][0]

    def inserted(self, conversation: str, job_id: str, messages: Mapping[int, IncomingMessage]) -> list[Statement]:
        """Return the statements that insert messages, by position.

        Raises, when they run: Conflict when a position was taken meanwhile.
        """
        statements: list[Statement] = []
        values: list[tuple[SqlValue, ...]] = []
        size = 0
        for position, one in sorted(messages.items()):
            length = len(one.content.encode())
            if values and size + length > HELD_BYTES:
                statements.append(self._insert(conversation, job_id, values))
                values, size = [], 0
            size += length
            values.append((position, one.id, one.key, one.at_ms, one.speaker, one.content, one.index, one.role))
        if values:
            statements.append(self._insert(conversation, job_id, values))
        return statements

    def moved(self, conversation: str, job_id: str, upload_id: str, places: Mapping[int, int]) -> list[Statement]:
        """Return the statements that move messages from an upload and delete it. places: position to index.

        Raises, when they run: as `inserted`, and when the upload was deleted meanwhile.
        """
        listed = json.dumps(sorted(places.items()))
        move = (_MOVE, (*self._here(conversation), job_id, listed, upload_id))
        return [move, discarding(upload_id)]

    def waiting(self, job_id: str, limits: tuple[int, int, int]) -> list[Statement]:
        """Return the statements whose results `waiting_in` takes. limits: of the messages in each state."""
        return [(text, (job_id, most)) for text, most in zip((_RECEIVED, _UNREAD, _UNLEARNED), limits, strict=True)]

    def taken(self, job_id: str, conversation: str, messages: Mapping[int, tuple[str, int]]) -> Statement:
        """Return the statement that notes that messages are stored with their facts.

        messages: by position, the hash of the record's content, and how many facts it had.
        """
        return _TAKEN, self._noted(job_id, conversation, messages)

    def stored(self, job_id: str, conversation: str, messages: Mapping[int, str]) -> Statement:
        """Return the statement that notes that messages are stored: by position, the hash of the record's content."""
        return _STORED, self._noted(job_id, conversation, {place: (one,) for place, one in messages.items()})

    def read(self, job_id: str, conversation: str, facts: Mapping[int, Sequence[ExtractedFact]]) -> Statement:
        """Return the statement that keeps the facts extracted from each message, by position."""
        kept = {place: (json.dumps([fact.to_json() for fact in found]),) for place, found in facts.items()}
        return _READ, self._noted(job_id, conversation, kept)

    def learned(self, job_id: str, conversation: str, counts: Mapping[int, int]) -> Statement:
        """Return the statement that notes how many facts each message had, by position."""
        return _LEARNED, self._noted(job_id, conversation, {place: (one,) for place, one in counts.items()})

    def _noted(
        self, job_id: str, conversation: str, notes: Mapping[int, Sequence[str | int]]
    ) -> tuple[str, str, str, str, str]:
        return (*self._here(conversation), json.dumps(notes), job_id)

    def _here(self, conversation: str) -> tuple[str, str, str]:
        return self._scope.tenant_id, self._scope.scope_id, conversation

    def _insert(self, conversation: str, job_id: str, values: Sequence[tuple[SqlValue, ...]]) -> Statement:
        return _INSERT, (*self._here(conversation), job_id, json.dumps(list(values), ensure_ascii=False))


def known_in(read: Sequence[SqlResult]) -> tuple[list[PlacedMessage], tuple[int, int] | None, dict[int, Gap], bool]:
    """Return the conversation's messages that could equal those asked for, its first and last position, and its gaps.

    The gaps are those in which the times of the messages lie. The last value says whether the conversation is empty in the
    inbox, but the scope has messages of it (`Inbox.adopt`).
    """
    span, known, times, adoptable = read
    low, high = span.rows[0]["low"], span.rows[0]["high"]
    if low is None:
        return [], None, {}, bool(adoptable.rows)
    rows = [
        PlacedMessage(int(row["position"]), row["message"], row["message_key"], _time(row["at_ms"]))
        for row in known.rows
    ]
    return rows, (int(low), int(high)), _gaps(times.rows, int(high)), False


def waiting_in(conversation: str, read: Sequence[SqlResult]) -> Waiting:
    """Return what waits, from the results of `Inbox.waiting`."""
    received, unread, unlearned = (one.rows for one in read)
    return Waiting(
        [
            Received(
                row["content"],
                row["message"],
                Utterance(conversation, int(row["position"]), row["speaker"], _time(row["at_ms"])),
                row["role"],
            )
            for row in received
        ],
        [(int(row["position"]), None if row["content"] is None else _source_of(row)) for row in unread],
        [
            Unlearned(int(row["position"]), row["message"], row["record_id"], _time(row["said_at_ms"]), _facts(row))
            for row in unlearned
        ],
    )


def _facts(row: Row) -> tuple[ExtractedFact, ...]:
    return tuple(ExtractedFact(**fact) for fact in read_own_json(row["facts"] or "[]"))


def _gaps(rows: Sequence[Row], high: int) -> dict[int, Gap]:
    """Return the gap of each time; none for a time of which the dated messages are in another order than their times."""
    found: dict[int, Gap] = {}
    for row in rows:
        before, after = row["before"], row["after"]
        if before is None and after is None:
            continue
        if after is None:
            found[int(row["at_ms"])] = Gap(high, None, (int(before), int(row["before_ms"])))
        elif before is None or before < after:
            near = (before, row["before_ms"]) if before is not None else (after, row["after_ms"])
            floor = None if row["floor"] is None else int(row["floor"])
            found[int(row["at_ms"])] = Gap(floor, int(after), (int(near[0]), int(near[1])))
    return found


def _source_of(row: Row) -> SourceMessage:
    return SourceMessage(row["record_id"], row["speaker"], row["content"], _time(row["said_at_ms"]), row["role"])


def _time(value: object) -> int | None:
    return None if value is None else int(str(value))
