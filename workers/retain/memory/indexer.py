"""The indexes of records: search rows and full text, written with the record; vectors, written before and made to agree.

The vector index is owed before it is touched: an outbox entry names the record and how many vectors it may have there.
`settle` then makes the index say what D1 says, whatever happened in between: it is idempotent and looks only at the
state. A vector without a record is never shown, since every hit is read from D1.

Several writers may owe the same record. Each settles it when it is done, and only the last one crosses the entry out, since
the others may still give the index something old. Whose process died is settled for after the grace time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from retain.errors import RetainError, Unavailable
from retain.limits.vectorize import GRACE_MS
from retain.memory.recall.preparation import PreparedRecord, prepare, signature
from retain.memory.recall.words import scope_tag, tagged
from retain.memory.records.record import Record, content_hash
from retain.memory.records.rows import record_of
from retain.models.embedding import Embedder
from retain.ports import Clock, MetadataValue, Sql, Statement, Vector, VectorEntry, VectorIndex

UPSERT_LIMIT = 500
"""Vectors of one call. Vectorize takes 1,000 from a Worker."""
FIRST_PAUSE_MS = 60_000
"""After a first failure, until the reconciler takes an entry again. It doubles with each failure …"""
LONGEST_PAUSE_MS = 3_600_000
"""… up to this."""
DELETE_LIMIT = 1000
"""Ids of one call."""
MAX_TRIES = 5
"""How often settling looks again because the record changed meanwhile."""
_VERSION = "SELECT COUNT(*) || MAX(event_id) FROM memory_events WHERE record_id = ?1"
"""Changes with every event of a record. NULL when there is none."""
_OWED = "SELECT record_id, parts FROM memory_outbox WHERE record_id IN (SELECT value FROM json_each(?))"
_VERSIONS = """
SELECT value AS record_id, (SELECT COUNT(*) || MAX(event_id) FROM memory_events WHERE record_id = value) AS version
FROM json_each(?)
"""
_RECORDS = "SELECT * FROM memory_records WHERE id IN (SELECT value FROM json_each(?))"
_PARTS = "SELECT s.parts FROM memory_search s JOIN memory_records r ON r.number = s.number WHERE r.id = ?"
_UNCHANGED = "SELECT number FROM memory_records WHERE id = ? AND content_hash = ?"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Indexed:
    """What a record's content becomes in the indexes. vectors: one a part; empty when the model finds nothing in it."""

    prepared: PreparedRecord
    vectors: Sequence[Vector]


@dataclass(frozen=True, slots=True)
class Settled:
    """How many outbox entries were settled, and how many failed again."""

    settled: int
    failed: int


class Indexer:
    """Writes the indexes of one deployment's records."""

    def __init__(self, sql: Sql, index: VectorIndex, embedder: Embedder, clock: Clock) -> None:
        self._sql = sql
        self._index = index
        self._embedder = embedder
        self._clock = clock

    @property
    def model(self) -> str:
        """The embedding model that the indexes are written for."""
        return self._embedder.model

    async def read(self, records: Sequence[Record]) -> list[Indexed]:
        """Return what the records become, embedded in one call. Raises: as the embedder."""
        prepared = [prepare(record.content, record.utterance) for record in records]
        vectors = await self._embedder.embed([part for one in prepared for part in one.parts])
        found: list[Indexed] = []
        start = 0
        for one in prepared:
            own = vectors[start : start + len(one.parts)]
            start += len(one.parts)
            found.append(Indexed(one, own if all(any(vector) for vector in own) else [v for v in own if any(v)]))
        return found

    def owe(self, record: Record, parts: int, *, changed: bool = False) -> Statement:
        """Return the statement that owes the vector index this record.

        parts: how many vectors it may get there; how many it has is known while its search row stands. changed: it
        means something else than before, of which the index has vectors: its signature is to be believed for a while.
        """
        now = self._clock()
        return (
            "INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, changed, at_ms, due_at_ms)"
            f" VALUES (?, ?, ?, MAX(?, COALESCE(({_PARTS}), 0)), 'owed', ?, ?, ?)"
            " ON CONFLICT (record_id) DO UPDATE SET state = 'owed', parts = MAX(parts, excluded.parts),"
            " changed = MAX(changed, excluded.changed), due_at_ms = excluded.due_at_ms,"
            " at_ms = MAX(excluded.at_ms, at_ms + 1), writers = CASE state WHEN 'sent' THEN 1 ELSE writers + 1 END",
            (record.id, record.tenant_id, record.scope_id, parts, record.id, int(changed), now, now),
        )

    def sent(self, record: Record) -> Statement:
        """Return the statement that says the index was given the record's vectors, which it may not show yet."""
        return (
            "UPDATE memory_outbox SET state = 'sent', changed = 0, writers = 0, at_ms = ?, attempts = 0, last_error = NULL"
            " WHERE record_id = ?",
            (self._clock(), record.id),
        )

    def rows(self, record: Record, indexed: Indexed) -> list[Statement]:
        """Return the statements that write search row and full text of a record whose row stands before them.

        They do nothing when the record's row says something else by then: whoever changed it writes its own.
        """
        prepared, place = indexed.prepared, record.utterance
        tag = scope_tag(record.tenant_id, record.scope_id)
        unchanged = (record.id, content_hash(record.content, place))
        return [
            (f"DELETE FROM memory_search WHERE number = ({_UNCHANGED})", unchanged),
            (f"DELETE FROM memory_text WHERE rowid = ({_UNCHANGED})", unchanged),
            (
                "INSERT INTO memory_search (tenant_id, scope_id, conversation, position, length, words, span, terms,"
                " names_time, asking, signature, parts, embedding_model, number)"
                f" SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, number FROM ({_UNCHANGED})",
                (
                    record.tenant_id,
                    record.scope_id,
                    None if place is None else place.conversation,
                    None if place is None else place.position,
                    prepared.length,
                    len(prepared.stems),
                    prepared.span,
                    prepared.terms,
                    int(prepared.names_time),
                    prepared.asking,
                    signature(indexed.vectors),
                    len(indexed.vectors),
                    self._embedder.model,
                    *unchanged,
                ),
            ),
            (
                f"INSERT INTO memory_text (content, rowid) SELECT ?, number FROM ({_UNCHANGED})",
                (tagged(tag, list(prepared.stems)), *unchanged),
            ),
        ]

    async def write(self, records: Sequence[tuple[Record, Indexed]]) -> None:
        """Give the vector index the records' vectors. Idempotent. Raises: as the index."""
        entries = [
            VectorEntry(f"{record.id}#{number}", vector, _namespace(record.tenant_id), self.metadata(record))
            for record, indexed in records
            for number, vector in enumerate(indexed.vectors)
        ]
        for start in range(0, len(entries), UPSERT_LIMIT):
            await self._index.upsert(entries[start : start + UPSERT_LIMIT])

    async def settle(self, record_id: str) -> None:
        """Make the vector index say what D1 says of this record, and cross the entry out.

        Raises: as the ports; the entry stays.
        """
        await self.settle_all([record_id])

    async def settle_all(self, record_ids: Sequence[str], *, still_fresh: frozenset[str] = frozenset()) -> None:
        """Settle those of the records that are owed, embedded in one call.

        A record that changes meanwhile is settled again, so that of two who settle it the last one leaves the truth.
        still_fresh: records whose entry is to stay as sent, since the index may not show them yet.
        Raises: as the ports, and Unavailable (code `contended`); the entries stay.
        """
        listed = json.dumps(list(record_ids))
        entries, found, versions = await self._sql.batch(
            [(_OWED, (listed,)), (_RECORDS, (listed,)), (_VERSIONS, (listed,))]
        )
        parts = {row["record_id"]: int(row["parts"]) for row in entries.rows}
        for _ in range(MAX_TRIES):
            if not parts:
                return
            before = {row["record_id"]: row["version"] for row in versions.rows}
            records = {row["id"]: record_of(row) for row in found.rows if row["id"] in parts}
            indexed = dict(zip(records, await self.read(list(records.values())), strict=True))
            await self.write([(record, indexed[record.id]) for record in records.values()])
            kept = {record_id: len(one.vectors) for record_id, one in indexed.items()}
            surplus = [
                f"{record_id}#{number}"
                for record_id in parts
                for number in range(kept.get(record_id, 0), parts[record_id])
            ]
            for start in range(0, len(surplus), DELETE_LIMIT):
                await self._index.delete_by_ids(surplus[start : start + DELETE_LIMIT])
            statements = [
                statement for record in records.values() for statement in self.rows(record, indexed[record.id])
            ]
            for record_id in parts:
                sent = record_id in still_fresh and record_id in records
                statements += _crossed(record_id, before[record_id], self._clock() if sent else None)
            listed = json.dumps(list(parts))
            found, versions = (await self._sql.batch([*statements, (_RECORDS, (listed,)), (_VERSIONS, (listed,))]))[-2:]
            changed = {row["record_id"] for row in versions.rows if row["version"] != before[row["record_id"]]}
            parts = {
                record_id: max(parts[record_id], kept.get(record_id, 0)) for record_id in parts if record_id in changed
            }
        raise Unavailable("a memory kept changing; try again", code="contended")

    async def try_to_settle(self, record_id: str, *, still_fresh: bool = False) -> bool:
        """Settle now if that works, else leave it to the reconciler; tell whether it worked.

        still_fresh: as in `settle_all`.
        """
        try:
            await self.settle_all([record_id], still_fresh=frozenset([record_id] if still_fresh else []))
        except RetainError as error:
            await self._note_failure(record_id, error)
            return False
        return True

    async def reconcile(self, limit: int = 500) -> Settled:
        """Settle what is owed since before the grace time, and forget what the index shows by now.

        Up to `limit` records, those first whose turn came first: one that failed gets another turn after a while that
        doubles with each failure, up to an hour, so that records which cannot be settled do not keep others from it.
        """
        now = self._clock()
        horizon = now - GRACE_MS
        _, owed, _ = await self._sql.batch(
            [
                # Those who owe it did not come back: the reconciler takes their place.
                ("UPDATE memory_outbox SET writers = 1 WHERE state = 'owed' AND at_ms <= ?", (horizon,)),
                (
                    "SELECT record_id FROM memory_outbox WHERE state = 'owed' AND at_ms <= ? AND due_at_ms <= ?"
                    " ORDER BY due_at_ms, record_id LIMIT ?",
                    (horizon, now, limit),
                ),
                ("DELETE FROM memory_outbox WHERE state = 'sent' AND at_ms <= ?", (now - 10 * GRACE_MS,)),
            ]
        )
        worked = [await self.try_to_settle(row["record_id"], still_fresh=True) for row in owed.rows]
        return Settled(sum(worked), len(worked) - sum(worked))

    async def _note_failure(self, record_id: str, error: RetainError) -> None:
        _log.warning("vector index not settled", extra={"record_id": record_id, "code": error.code})
        try:
            await self._sql.run(
                f"UPDATE memory_outbox SET attempts = attempts + 1, last_error = ?1, due_at_ms = ?2"
                f" + MIN({FIRST_PAUSE_MS} << MIN(attempts, 16), {LONGEST_PAUSE_MS}) WHERE record_id = ?3",
                error.code,
                self._clock(),
                record_id,
            )
        except RetainError as second:
            _log.warning("outbox not reachable", extra={"record_id": record_id, "code": second.code})

    def metadata(self, record: Record) -> dict[str, MetadataValue]:
        """Return what the index stores beside a vector: what it filters on, and the fact in parts."""
        agent = record.scope_id.removeprefix("agent.") if record.scope_id.startswith("agent.") else ""
        said: dict[str, MetadataValue | None] = {
            "fact_id": record.id,
            "tenant_id": record.tenant_id,
            "agent_id": agent,
            "agent_type": agent,
            "scope_id": record.scope_id,
            "model": self._embedder.model[:64],
            "kind": record.kind,
            "confidence": record.confidence,
            "created_at": record.recorded_at_ms,
            "subject": record.subject,
            "predicate": record.predicate,
            "object": record.object,
            "learned_from_run_id": record.source.get("run_id"),
        }
        return {name: value for name, value in said.items() if value is not None}


def _crossed(record_id: str, version: str | None, sent_at_ms: int | None) -> list[Statement]:
    """Return the statements that take one writer off an entry, and cross it out after the last one.

    They do nothing when the record changed since this version of it. sent_at_ms: leave the entry as sent then instead.
    """
    unchanged = f"record_id = ?1 AND ({_VERSION}) IS ?2"
    last = f"{unchanged} AND writers <= 0"
    taken = (f"UPDATE memory_outbox SET writers = writers - 1 WHERE {unchanged}", (record_id, version))
    if sent_at_ms is None:
        return [taken, (f"DELETE FROM memory_outbox WHERE {last}", (record_id, version))]
    sent = f"UPDATE memory_outbox SET state = 'sent', at_ms = ?3, attempts = 0, last_error = NULL WHERE {last}"
    return [taken, (sent, (record_id, version, sent_at_ms))]


def remove_rows(record_id: str) -> list[Statement]:
    """Return the statements that remove search row and full text of a record, while its row still stands."""
    where = "= (SELECT number FROM memory_records WHERE id = ?)"
    return [
        (f"DELETE FROM memory_search WHERE number {where}", (record_id,)),
        (f"DELETE FROM memory_text WHERE rowid {where}", (record_id,)),
    ]


def _namespace(tenant_id: str) -> str:
    return f"agent_memory_semantic:{tenant_id}"
