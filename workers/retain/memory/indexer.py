"""The indexes of records: search rows and full text, written with the record; vectors, written before it and reconciled.

A debt to the vector index is recorded before the index is changed (`retain.memory.index_debts`). `settle` then makes the
index agree with D1, whatever happened in between: it is idempotent and depends on the state alone. A vector without a
record is never shown, since every hit is read from D1.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from retain.errors import RetainError, Unavailable
from retain.ledgers.errors import Trouble, park, settle
from retain.limits.d1_calls import used_up
from retain.limits.deadlines import embedding_ms
from retain.limits.vector_filter import OVER_AT, OWN_PREFIX, indexed_value
from retain.memory import earlier_texts, index_debts, search_rows
from retain.memory.earlier_texts import EarlierText
from retain.memory.index_debts import Owed, changed_since, crossed_out, owed_of, reading
from retain.memory.recall.preparation import PreparedRecord, cut, prepare, signature
from retain.memory.records.events import KnownRecord
from retain.memory.records.record import Record
from retain.memory.records.vector_names import vector_id, vector_namespace
from retain.models.embedding import Embedder, embed_in_time
from retain.ports import Clock, MetadataValue, Row, Sql, Statement, Vector, VectorEntry, VectorIndex

UPSERT_LIMIT = 500
"""Vectors per call. Vectorize takes 1,000 from a Worker."""
DELETE_LIMIT = 1000
"""Ids per call."""
SETTLED_TOGETHER = 20
"""Ids that are settled by one call, while calls of D1 are counted."""
PARKED_AFTER = 3
"""Failures after which a record's debt is in the error ledger as well. The reconciler keeps trying."""
SETTLING_MS = 120_000
"""After this time no further group is begun: an index that hangs costs seconds for each record."""
NEVER = 2**53 - 1
"""When a record is over that has no end: the largest number that JavaScript keeps exactly as one."""
MAX_TRIES = 5
"""How often settling is tried while the record keeps changing."""
LISTED_FORMS: Mapping[str, str] = {**index_debts.LISTED_FORMS, **search_rows.LISTED_FORMS}
"""Of the indexes' statements (`retain.limits.listed_rows`)."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the indexes hold of a record. vectors: one per part, except where the model returned a zero vector."""

    prepared: PreparedRecord
    vectors: Sequence[Vector]


@dataclass(frozen=True, slots=True)
class Settled:
    """How many debts were settled, and how many failed again."""

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

    async def vectors(self) -> int:
        """Return how many vectors the index holds, of all tenants. Raises: Unavailable."""
        return await self._index.count()

    async def read(self, records: Sequence[Record]) -> list[Indexed]:
        """Return what the indexes hold of the records, embedded in one call. Raises: as `embed_in_time`."""
        prepared = [prepare(record.content, record.utterance) for record in records]
        texts = [part for one in prepared for part in one.parts]
        vectors = await embed_in_time(self._embedder, texts, embedding_ms(len(texts)))
        found: list[Indexed] = []
        start = 0
        for one in prepared:
            own = vectors[start : start + len(one.parts)]
            start += len(one.parts)
            found.append(Indexed(one, own if all(any(vector) for vector in own) else [v for v in own if any(v)]))
        return found

    def owe(self, record: Record, parts: int, *, changed: bool = False) -> Statement:
        """Return the statement that records a debt for this record; see `retain.memory.index_debts.owe`."""
        return index_debts.owe(record, parts, self._clock(), changed=changed)

    def debts(self, changes: Mapping[str, tuple[Record, Record]]) -> dict[str, Statement]:
        """Return the statements that record the debts for changed records, by id.

        Those whose vectors keep their metadata owe nothing. changes: each record before and after; its content is the same.
        """
        return {
            record_id: self.owe(after, 0)
            for record_id, (before, after) in changes.items()
            if self.metadata(before) != self.metadata(after)
        }

    def sent(self, record: Record) -> Statement:
        """Return the statement that records that the index was sent the vectors, which it may not show yet."""
        return index_debts.sent(record.id, self._clock())

    def owe_unknown(self, tenant_id: str, records: Sequence[Record]) -> list[Statement]:
        """Return the statement that records debts for new records of a tenant whose contents are not known yet."""
        sized = [(record, len(cut(record.content))) for record in records]
        return [index_debts.owe_unknown(tenant_id, sized, self._clock())]

    async def cancel(self, record_ids: Sequence[str]) -> None:
        """Delete the debts of records of which the index was sent nothing, if that works; else the reconciler does."""
        if record_ids:
            with suppress(RetainError):
                await self._sql.batch([index_debts.cancel(record_ids)])

    def rows(self, record: Record, indexed: Indexed) -> list[Statement]:
        """Return the statements that write search row and full text; they must run after the one that writes the record.

        They do nothing when the record has other content by then: whoever changed it writes its own.
        """
        vectors = indexed.vectors
        return search_rows.written_rows(
            record, indexed.prepared, signature(vectors), len(vectors), self._embedder.model
        )

    def earlier_rows(self, texts: Sequence[EarlierText], indexed: Sequence[Indexed]) -> list[Statement]:
        """Return the statements that index earlier texts; they must run after those that write their records and events."""
        return [
            part
            for text, one in zip(texts, indexed, strict=True)
            for part in earlier_texts.add(text, one.prepared, one.vectors, self.model)
        ]

    async def write(self, records: Sequence[tuple[Record, Indexed]]) -> None:
        """Send the records' vectors to the vector index. Idempotent. Raises: as the index."""
        entries = [
            VectorEntry(vector_id(record.id, number), vector, vector_namespace(record.tenant_id), self.metadata(record))
            for record, indexed in records
            for number, vector in enumerate(indexed.vectors)
        ]
        for start in range(0, len(entries), UPSERT_LIMIT):
            await self._index.upsert(entries[start : start + UPSERT_LIMIT])

    async def try_to_write(self, records: Sequence[tuple[Record, Indexed]]) -> bool:
        """Send the vectors; return False when the index is away, which then stays owed them. Raises: as the index."""
        try:
            await self.write(records)
        except Unavailable as error:
            ids = [record.id for record, _ in records]
            _log.warning("the vector index stays owed", extra={"record_ids": ids, "code": error.code})
            return False
        return True

    async def try_to_send(self, known: Sequence[KnownRecord], indexed: Mapping[str, Indexed]) -> None:
        """Send the vectors of records that have a debt, as a mutation left them, and settle the debts, if that works.

        It is left to the reconciler otherwise. A record that was changed again is settled as by `try_to_settle`. indexed:
        what the indexes hold of some of them, by id; the others are embedded.
        """
        if not known:
            return
        records = [one.record for one in known]
        try:
            missing = [record for record in records if record.id not in indexed]
            found = {**indexed, **dict(zip([one.id for one in missing], await self.read(missing), strict=True))}
            await self.write([(record, found[record.id]) for record in records])
            text, values = index_debts.settled(known, self._clock())
            done = {row["record_id"] for row in (await self._sql.run(text, *values)).rows}
        except RetainError as error:
            await self._note_failure([record.id for record in records], error)
            return
        await self.try_to_settle(*(record.id for record in records if record.id not in done), still_fresh=True)

    async def settle(self, record_id: str) -> None:
        """Make the vector index agree with D1 on this record, and delete its debt.

        Raises: as the ports; the debt stays.
        """
        await self.settle_all([record_id])

    async def settle_all(self, record_ids: Sequence[str], *, still_fresh: frozenset[str] = frozenset()) -> None:
        """Settle those of the records that have a debt, embedded in one call.

        A record that changes meanwhile is settled again, so of two concurrent settlers the last leaves the current state.
        still_fresh: records whose debt stays as `sent`, since the index may not show them yet.
        Raises: as the ports, and Unavailable (code `contended`); the debts stay.
        """
        missing = earlier_texts.missing(record_ids, self.model)
        *read, earlier = await self._sql.batch([*reading(record_ids), missing])
        await self._index_earlier(missing, earlier.rows)
        owed = owed_of(*read)
        for _ in range(MAX_TRIES):
            if not owed:
                return
            owed = await self._settle_once(owed, still_fresh)
        raise Unavailable("a memory kept changing; try again", code="contended")

    async def _index_earlier(self, missing: Statement, rows: Sequence[Row]) -> None:
        """Index the earlier texts that are missing, some at a time. missing: the statement for them. rows: the first."""
        while rows:
            texts = earlier_texts.texts_of(rows)
            added = self.earlier_rows(texts, await self.read([text.record for text in texts]))
            rows = (await self._sql.batch([*added, missing]))[-1].rows

    async def _settle_once(self, owed: Sequence[Owed], still_fresh: frozenset[str]) -> list[Owed]:
        """Settle these debts; return those that are still owed because their record changed meanwhile."""
        records = [one.record for one in owed if one.record is not None]
        indexed = list(zip(records, await self.read(records), strict=True))
        await self.write(indexed)
        kept = {record.id: len(one.vectors) for record, one in indexed}
        await self._delete_surplus(owed, kept)
        statements = [statement for record, one in indexed for statement in self.rows(record, one)]
        for one in owed:
            stays_sent = one.record is not None and one.record_id in still_fresh
            statements += crossed_out(one, self._clock() if stays_sent else None)
        _, records_now, versions_now = reading([one.record_id for one in owed])
        *_, found, versions = await self._sql.batch([*statements, records_now, versions_now])
        return changed_since(owed, kept, found, versions)

    async def _delete_surplus(self, owed: Sequence[Owed], kept: Mapping[str, int]) -> None:
        """Delete the vectors that the index may have of the records beyond those that it was sent."""
        surplus = [
            vector_id(one.record_id, number) for one in owed for number in range(kept.get(one.record_id, 0), one.parts)
        ]
        for start in range(0, len(surplus), DELETE_LIMIT):
            await self._index.delete_by_ids(surplus[start : start + DELETE_LIMIT])

    async def try_to_settle(self, *record_ids: str, still_fresh: bool = False) -> bool:
        """Settle now if that works, else leave all of it to the reconciler; return whether it worked.

        still_fresh: whether those records are, as in `settle_all`.
        """
        if not record_ids:
            return True
        try:
            await self.settle_all(record_ids, still_fresh=frozenset(record_ids if still_fresh else []))
        except RetainError as error:
            await self._note_failure(record_ids, error)
            return False
        return True

    async def reconcile(self, limit: int = 500) -> Settled:
        """Settle the debts older than the grace time, and delete those whose vectors the index shows by now.

        Up to `limit` records, those due for longest first. One that failed is retried after a pause that doubles with
        each failure, up to an hour, so records that cannot be settled do not hold up others: those of a group that fails
        are settled one by one. It ends with the calls of D1 that the invocation may make, if these are limited, and after
        two minutes.
        """
        ends_at_ms = self._clock() + SETTLING_MS
        _, due, _ = await self._sql.batch(index_debts.due(self._clock(), limit))
        ids = [str(row["record_id"]) for row in due.rows]
        settled: list[str] = []
        failed = 0
        for start in range(0, len(ids), SETTLED_TOGETHER):
            if used_up() or self._clock() >= ends_at_ms:
                break
            group = ids[start : start + SETTLED_TOGETHER]
            try:
                await self.settle_all(group, still_fresh=frozenset(group))
                settled += group
                continue
            except Exception as error:  # noqa: BLE001 -- whatever one record has, the others are not its fault
                code = error.code if isinstance(error, RetainError) else "internal"
                _log.warning("records are settled one by one", extra={"records": len(group), "code": code})
            for record_id in group:
                if used_up() or self._clock() >= ends_at_ms:
                    break
                if await self._settled_alone(record_id):
                    settled.append(record_id)
                elif not used_up():
                    failed += 1
        await self._unpark(due.rows, frozenset(settled))
        return Settled(len(settled), failed)

    async def _settled_alone(self, record_id: str) -> bool:
        """Settle one record's debt; return whether that worked. An error that nobody expected is a failure like others."""
        try:
            return await self.try_to_settle(record_id, still_fresh=True)
        except Exception:  # noqa: BLE001 -- as in `reconcile`
            _log.exception("a record cannot be settled", extra={"record_ids": [record_id]})
            await self._note_failure([record_id], RetainError("an unexpected error occurred; it was logged"))
            return False

    async def _unpark(self, debts: Sequence[Row], settled: Set[str]) -> None:
        """Settle the entries in the error ledger of those debts that are now settled."""
        failed = [debt for debt in debts if debt["attempts"] >= PARKED_AFTER and debt["record_id"] in settled]
        if failed:
            await settle(
                self._sql, self._clock(), *((debt["tenant_id"], "vectors", debt["record_id"]) for debt in failed)
            )

    async def _note_failure(self, record_ids: Sequence[str], error: RetainError) -> None:
        _log.warning("vector index not settled", extra={"record_ids": record_ids, "code": error.code})
        now = self._clock()
        try:
            noted = await self._sql.batch([index_debts.failed(record_id, error.code, now) for record_id in record_ids])
        except RetainError as second:
            _log.warning("index debts not reachable", extra={"record_ids": record_ids, "code": second.code})
            return
        debts = [row for result in noted for row in result.rows if int(row["attempts"]) >= PARKED_AFTER]
        if debts:
            await park(self._sql, *(_trouble(debt, error, now) for debt in debts))

    def metadata(self, record: Record) -> dict[str, MetadataValue]:
        """Return what the index stores with a vector: fields to filter on, the fact's parts, and a closed record's end.

        `agent_id` and `agent_type` are both the type of the agent whose scope it is, "" outside an agent's scope. The
        index's specification has a filter on `agent_id`; Retain's own word is `agent_type`.
        """
        agent = record.scope_id.removeprefix("agent.") if record.scope_id.startswith("agent.") else ""
        run_id = record.source.get("run_id")
        values: dict[str, MetadataValue | None] = {
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
            "valid_to": record.valid_to_ms,
            "superseded_by": None if record.valid_to_ms is None else record.superseded_by,
            "learned_from_run_id": run_id if isinstance(run_id, str) else None,
        }
        return {name: value for name, value in values.items() if value is not None} | self._declared(record)

    def _declared(self, record: Record) -> dict[str, MetadataValue]:
        """Return the properties that the deployment declares: when the record is over, and its own metadata."""
        found: dict[str, MetadataValue] = {}
        for name, kind in self._index.filterable.items():
            if name == OVER_AT:
                found[name] = min(
                    [end for end in (record.valid_to_ms, record.expires_at_ms) if end is not None] or [NEVER]
                )
            elif name.startswith(OWN_PREFIX):
                kept = indexed_value(record.metadata.get(name.removeprefix(OWN_PREFIX)), kind)
                if kept is not None:
                    found[name] = kept
        return found


def _trouble(debt: Row, error: RetainError, now_ms: int) -> Trouble:
    record_id, tenant_id, scope_id = debt["record_id"], debt["tenant_id"], debt["scope_id"]
    return Trouble(
        "vectors", record_id, error.code, now_ms, tenant_id, scope_id=scope_id, attempts=int(debt["attempts"])
    )
