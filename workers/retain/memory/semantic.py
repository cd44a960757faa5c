"""Semantic memory as one scope reaches it: store, search, delete, and the life of a record.

What is stored belongs to the scope. What is found is visible from it: itself and the scopes around it. What may be
changed lies at or below it. D1 holds records and events; the vector index is written first and owed before that, so a
record appears whole or not at all (see `retain.memory.indexer`).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retain.errors import Conflict, InvalidInput, NotFound, RetainError, UnknownScope
from retain.identifiers import check_id, new_id
from retain.memory.indexer import Indexed, Indexer, remove_rows
from retain.memory.recall.recall import Hit, Recall, RecallQuery
from retain.memory.records.events import EDITABLE, EventKind, KnownRecord, LearningEvent, apply
from retain.memory.records.record import NewRecord, Record, RecordSource, check_content, check_metadata, content_hash
from retain.memory.records.rows import (
    LAST_EVENT,
    Written,
    append_event,
    as_stored,
    event_of,
    known_of,
    remove_record,
    write_record,
)
from retain.memory.records.supersession import Telling, Validity
from retain.memory.scope import BELOW, Scope, registration
from retain.models.embedding import Embedder
from retain.models.reranking import Reranker
from retain.ports import Clock, Sql, Statement, VectorIndex
from retain.tenants.history import Change, WorldHistory

__all__ = ["Hit", "RecallQuery", "SemanticMemory", "StoreResult"]


@dataclass(frozen=True, slots=True)
class StoreResult:
    """What `store` did. created: False when an equal content was there already."""

    id: str
    created: bool


class SemanticMemory:
    """The semantic memory of one scope."""

    def __init__(
        self,
        scope: Scope,
        sql: Sql,
        index: VectorIndex,
        embedder: Embedder,
        clock: Clock,
        *,
        reranker: Reranker | None = None,
    ) -> None:
        self.scope = scope
        self._sql = sql
        self._clock = clock
        self._indexer = Indexer(sql, index, embedder, clock)
        self._history = WorldHistory(sql, clock)
        self._recall = Recall(scope, sql, index, embedder, clock, reranker=reranker)

    async def store(self, new: NewRecord, source: RecordSource) -> StoreResult:
        """Remember the content; return when it is durable and can be found. Idempotent by content.

        A newer fact of equal subject and predicate closes the older one's validity; both stay readable. A content that was
        closed before the new statement, or has expired, holds anew; what a person closed, when a person says it again.
        Raises: Unavailable, UpstreamFailed when a step failed; then no entry exists, but for one case: the answer of the
            commit was lost. Repeating the call is right in both: it returns the entry's id.
        """
        return (await self.store_all([new], source))[0]

    async def store_all(
        self, news: Sequence[NewRecord], source: RecordSource | Sequence[RecordSource]
    ) -> list[StoreResult]:
        """Remember several new contents, all of them or none; as `store`, in order. source: of all, or of each."""
        sources = [source] * len(news) if isinstance(source, RecordSource) else source
        told = [self._record(new, origin) for new, origin in zip(news, sources, strict=True)]
        contents = [_hash(record) for record in told]
        ready: dict[str, tuple[Record, Indexed]] = {}
        ids: dict[str, str] = {}

        async def tell() -> Change | None:
            known = await self._standing(contents)
            ids.clear()
            telling = Telling(self._sql, self._clock)
            for record, content in zip(told, contents, strict=True):
                standing = known.get(content)
                if standing is None and content in ready:
                    new, indexed = ready[content]
                    await telling.anew(new, [*self._indexer.rows(new, indexed), self._indexer.sent(new)])
                    known[content] = standing = Validity(new.id, new.valid_to_ms, new.expires_at_ms)
                elif standing is None or not await telling.again(standing, record):
                    return None  # it was deleted meanwhile: it is told as a new one
                ids[content] = standing.record_id
            return _change_of(telling.parts) if telling.parts else None

        try:
            while len(ids) < len(set(contents)):
                known = await self._standing(contents)
                fresh = [record for record in told if _hash(record) not in known.keys() | ready.keys()]
                await self._make_ready({_hash(record): record for record in reversed(fresh)}, ready)
                if ready or any(standing.is_over(self._clock()) for standing in known.values()):
                    await self._history.transact(self.scope.tenant_id, tell)
                else:
                    ids = {content: standing.record_id for content, standing in known.items()}
        except RetainError:
            for record, _ in ready.values():
                await self._indexer.try_to_settle(record.id, still_fresh=True)
            raise
        created = {record.id for record, _ in ready.values()}
        results: list[StoreResult] = []
        for content in contents:
            results.append(StoreResult(ids[content], ids[content] in created))
            created.discard(ids[content])
        return results

    async def search(self, wanted: RecallQuery, *, register: bool = True) -> list[Hit]:
        """Return what is visible from the scope and fits the query, best first.

        register: a scope that D1 does not have, or has elsewhere since its agent moved to another house, is registered
        first, in one more round trip. Without, it is refused: for a scope that only its name vouches for.
        Raises: as `Recall.search`.
        """
        try:
            return await self._recall.search(wanted)
        except UnknownScope as error:
            if not register:
                raise
            try:
                await self._sql.batch(registration(self.scope))
            except Conflict:
                raise error from None  # the tenant was erased
        return await self._recall.search(wanted)

    async def get(self, record_id: str) -> tuple[Record, list[LearningEvent]]:
        """Return a record at or below the scope with its events, oldest first. Raises: NotFound; InvalidInput."""
        record = (await self._owned(record_id)).record
        rows = (
            await self._sql.run("SELECT * FROM memory_events WHERE record_id = ? ORDER BY event_id", record.id)
        ).rows
        return record, [event_of(row) for row in rows]

    async def edit(self, record_id: str, changes: Mapping[str, Any], source: RecordSource) -> Record:
        """Change fields of a record at or below the scope; the old values stay in its events.

        Raises: InvalidInput for a field that cannot be edited or a value that does not fit; Conflict (code
            `duplicate_content`) when the scope holds the new content already; NotFound; Unavailable.
        """
        unknown = sorted(set(changes) - set(EDITABLE))
        if unknown or not changes:
            raise InvalidInput(f"editable are {', '.join(EDITABLE)}", code="invalid_edit", fields=unknown)
        before = (await self._owned(record_id)).record
        _check_edit(before, changes)
        edited = apply(before, self._event("edited", record_id, changes, source))
        assert edited is not None
        [indexed] = await self._indexer.read([edited])

        async def edit(known: KnownRecord) -> tuple[Record, list[Written | Statement]]:
            event = known.follow(self._event("edited", record_id, changes, source))
            changed = apply(known.record, event)
            assert changed is not None
            same = changed.content == edited.content
            now = indexed if same else (await self._indexer.read([changed]))[0]
            written = append_event(changed.tenant_id, event)
            return changed, [written, write_record(changed), *self._indexer.rows(changed, now)]

        meant = edited.content != before.content
        await self._sql.batch([self._indexer.owe(edited, len(indexed.vectors), changed=meant)])
        try:
            await self._indexer.write([(edited, indexed)])
            changed = await self._change(record_id, edit)
        except Conflict as error:
            await self._indexer.try_to_settle(record_id, still_fresh=True)
            raise Conflict("the scope holds this content already", code="duplicate_content") from error
        except RetainError:
            await self._indexer.try_to_settle(record_id, still_fresh=True)
            raise
        await self._indexer.try_to_settle(record_id, still_fresh=True)
        return changed

    async def invalidate(self, record_id: str, at_ms: int, source: RecordSource) -> Record:
        """Say that the record holds no longer than until `at_ms`. Raises: NotFound; Unavailable."""
        return await self._note(record_id, "invalidated", {"valid_to_ms": at_ms}, source)

    async def restore(self, record_id: str, source: RecordSource) -> Record:
        """Say that the record holds after all. Raises: NotFound; Unavailable."""
        return await self._note(record_id, "restored", {}, source)

    async def delete(self, record_id: str, source: RecordSource) -> None:
        """Forget a record at or below the scope: it is not found from the moment this returns.

        Raises: NotFound; Unavailable, after which the call may be repeated.
        """

        async def remove(known: KnownRecord) -> tuple[Record, list[Written | Statement]]:
            record = known.record
            return record, [
                append_event(record.tenant_id, known.follow(self._event("deleted", record.id, {}, source))),
                self._indexer.owe(record, 0),
                *remove_rows(record.id),
                remove_record(record.id),
            ]

        await self._change(record_id, remove)
        await self._indexer.try_to_settle(record_id)

    def _record(self, new: NewRecord, source: RecordSource) -> Record:
        now = self._clock()
        return Record(
            id=new_id(),
            tenant_id=self.scope.tenant_id,
            scope_id=self.scope.scope_id,
            kind=new.kind,
            content=new.content,
            metadata=new.metadata,
            subject=new.subject,
            predicate=new.predicate,
            object=new.object,
            confidence=new.confidence,
            importance=new.importance,
            valid_from_ms=_valid_from(new, now),
            valid_to_ms=None,
            expires_at_ms=new.expires_at_ms,
            recorded_at_ms=now,
            updated_at_ms=now,
            superseded_by=None,
            edited=source.origin == "person",
            utterance=new.utterance,
            source=source.to_json(),
        )

    async def _make_ready(self, fresh: Mapping[str, Record], ready: dict[str, tuple[Record, Indexed]]) -> None:
        """Owe and give the vector index what new records become; add them to `ready` as soon as they are owed."""
        if not fresh:
            return
        records = list(fresh.values())
        indexed = await self._indexer.read(records)
        owed = [self._indexer.owe(record, len(one.vectors)) for record, one in zip(records, indexed, strict=True)]
        await self._sql.batch([*registration(self.scope), *owed])
        pairs = list(zip(records, indexed, strict=True))
        ready |= zip(fresh, pairs, strict=True)
        await self._indexer.write(pairs)

    async def _note(self, record_id: str, kind: EventKind, data: Mapping[str, Any], source: RecordSource) -> Record:
        async def note(known: KnownRecord) -> tuple[Record, list[Written | Statement]]:
            event = known.follow(self._event(kind, record_id, data, source))
            changed = apply(known.record, event)
            assert changed is not None
            return changed, [append_event(changed.tenant_id, event), write_record(changed)]

        return await self._change(record_id, note)

    async def _change(
        self, record_id: str, decide: Callable[[KnownRecord], Awaitable[tuple[Record, list[Written | Statement]]]]
    ) -> Record:
        """Commit what `decide` makes of the record, and return that: a read after the commit might fail or see more."""
        decided: list[Record] = []

        async def change() -> Change:
            record, parts = await decide(await self._owned(record_id))
            decided.append(record)
            return _change_of(parts)

        await self._history.transact(self.scope.tenant_id, change)
        return as_stored(decided[-1])

    async def _owned(self, record_id: str) -> KnownRecord:
        rows = (
            await self._sql.run(
                f"SELECT r.*, {LAST_EVENT} FROM memory_records r"
                f" WHERE r.tenant_id = ?1 AND r.id = ?3 AND r.scope_id IN ({BELOW})",
                self.scope.tenant_id,
                self.scope.scope_id,
                check_id(record_id),
            )
        ).rows
        if not rows:
            raise NotFound("there is no such memory", code="no_such_memory")
        return known_of(rows[0])

    async def _standing(self, contents: Sequence[str]) -> dict[str, Validity]:
        """Return what the scope knows of the contents, by hash."""
        rows = (
            await self._sql.run(
                "SELECT id, content_hash, valid_to_ms, expires_at_ms FROM memory_records"
                " WHERE tenant_id = ? AND scope_id = ? AND content_hash IN (SELECT value FROM json_each(?))",
                self.scope.tenant_id,
                self.scope.scope_id,
                json.dumps(list(contents)),
            )
        ).rows
        return {row["content_hash"]: Validity(row["id"], row["valid_to_ms"], row["expires_at_ms"]) for row in rows}

    def _event(self, kind: EventKind, record_id: str, data: Mapping[str, Any], source: RecordSource) -> LearningEvent:
        return LearningEvent(new_id(), record_id, kind, data, source.to_json(), self._clock())


def _valid_from(new: NewRecord, now_ms: int) -> int:
    """Return since when a new record holds: as it says, else when it was said, else now."""
    if new.valid_from_ms is not None:
        return new.valid_from_ms
    said = new.utterance.at_ms if new.utterance is not None else None
    return now_ms if said is None else min(said, now_ms)


def _hash(record: Record) -> str:
    return content_hash(record.content, record.utterance)


def _change_of(parts: Sequence[Written | Statement]) -> Change:
    statements: list[Statement] = []
    entries = []
    for part in parts:
        if isinstance(part, Written):
            statements += part.statements
            entries.append(part.entry)
        else:
            statements.append(part)
    return Change(statements, entries)


def _check_edit(record: Record, changes: Mapping[str, Any]) -> None:
    """Raise InvalidInput or LimitExceeded for values that a record cannot have."""
    if not isinstance(changes.get("content", ""), str) or not isinstance(changes.get("metadata", {}), Mapping):
        raise InvalidInput("content is text and metadata an object", code="invalid_edit")
    check_content(changes.get("content", record.content))
    check_metadata(changes.get("metadata", record.metadata))
    NewRecord(
        content=changes.get("content", record.content),
        **{name: changes.get(name, getattr(record, name)) for name in EDITABLE if name != "content"},
    )
