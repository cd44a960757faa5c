"""Semantic memory of one scope: store, search, edit, close and delete records.

A stored record belongs to the scope. A search finds the records of the scope and its ancestors, or of a wider view.
Records of the scope and its descendants can be changed. D1 holds records and events; the vector index is written first, and
a debt to it is recorded before that, so a record appears whole or not at all (see `retain.memory.indexer`).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from retain.errors import Conflict, InvalidInput, NotFound, RetainError, UnknownScope
from retain.identifiers import check_id, new_id
from retain.limits.pages import cut, sized
from retain.limits.room import RECALL_BYTES, Room
from retain.memory.earlier_texts import keep
from retain.memory.indexer import Indexer
from retain.memory.recall.recall import Hit, ReadAlong, Recall, RecallQuery, RecallResult
from retain.memory.recall.sources.fresh import KeptSignatures
from retain.memory.recall.sources.same_words import same_in, visible_scopes, with_its_words
from retain.memory.records.events import EventData, EventKind, KnownRecord, LearningEvent, changed
from retain.memory.records.limits import check
from retain.memory.records.record import EDITABLE, NewRecord, Record, RecordSource, composed
from retain.memory.records.rows import (
    LAST_EVENT,
    Written,
    append_event,
    as_stored,
    change_of,
    event_of,
    known_of,
    remove_record,
)
from retain.memory.records.supersession import Supersession
from retain.memory.scope import Scope, View, holding, registration
from retain.memory.search_rows import remove_rows
from retain.memory.writing.calls import LearnedFact, StoreCall, StoreResult, Writer
from retain.memory.writing.group import GroupWriter
from retain.models.embedding import Embedder
from retain.models.reranking import Reranker
from retain.ports import Clock, Sql, Statement, VectorIndex
from retain.tenants.attribution import acting_name
from retain.tenants.history import Change, WorldHistory

__all__ = ["Hit", "RecallQuery", "RecallResult", "SemanticMemory", "StoreResult"]

EVENTS_PER_PAGE = 200
_EVENTS = sized(
    "SELECT * FROM memory_events WHERE record_id = ? AND event_id > ? ORDER BY event_id LIMIT ?", "event_id", "data"
)
_OWN_RECORDS = f"""
SELECT r.*, {LAST_EVENT} FROM memory_records r
WHERE +r.tenant_id = ? AND +r.scope_id = ? AND r.id IN (SELECT value FROM json_each(?))
"""
_Decide = Callable[[KnownRecord, Supersession], Awaitable[tuple[Record, list[Written | Statement]]]]
"""Returns a record as it changes, and what is written for that."""


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
        view: View | None = None,
        reranker: Reranker | None = None,
        writer: Writer | None = None,
        room: Room | None = None,
        kept: KeptSignatures | None = None,
    ) -> None:
        """view: what a search sees, when that is not the scope's own path. writer: stores, together for all who share it.

        room: which recalls of the isolate share, None where the request has taken what it needs. kept: what they
        have read of what the index may not show yet, None where only this memory's own recalls share it.
        Raises: InvalidInput for another tenant's view.
        """
        self.scope = scope
        self.view = View(scope) if view is None else view
        if self.view.tenant_id != scope.tenant_id:
            raise InvalidInput("the view belongs to another tenant", code="invalid_scope")
        self._sql = sql
        self._clock = clock
        self._indexer = Indexer(sql, index, embedder, clock)
        self._writer = writer or GroupWriter(sql, clock, self._indexer)
        self._history = WorldHistory(sql, clock)
        self._room = room
        self._recall = Recall(self.view, sql, index, embedder, clock, reranker=reranker, kept=kept)

    async def store(self, new: NewRecord, source: RecordSource) -> StoreResult:
        """Store the content; return when it is durable and can be found. Idempotent by content.

        A newer fact of equal subject and predicate closes the older one's validity; both stay readable. Content that was
        closed before the new statement, or has expired, becomes valid again; what a person closed, only a person reopens.
        Other fields of known content are added where the record has none, and the result names those that it keeps
        (see `retain.memory.records.retelling`).
        A vector index that is away does not stop it: the record is durable and found by its words and its signature, the
        index is owed its vectors, and the result says so.
        Raises: Unavailable, UpstreamFailed when another step failed; then no record exists, unless the answer of the commit
            was lost. Repeating the call is right in both cases: it returns the record's id.
        """
        return (await self.store_all([new], source))[0]

    async def store_all(
        self, news: Sequence[NewRecord], source: RecordSource | Sequence[RecordSource]
    ) -> list[StoreResult]:
        """Store several contents in order, all of them or none; as `store`. source: one for all, or one for each."""
        sources = [source] * len(news) if isinstance(source, RecordSource) else source
        return await self.store_stated(news, sources, (), ())

    async def learn(self, facts: Sequence[LearnedFact], also: Sequence[Statement] = ()) -> None:
        """Learn what was stated, in order (`retain.memory.writing.learning`). Idempotent.

        also: statements of the caller's own tables, executed in the same transaction.
        Raises: as `store`; then the call may be repeated.
        """
        await self.store_stated((), (), facts, also)

    async def store_stated(
        self,
        news: Sequence[NewRecord],
        sources: Sequence[RecordSource],
        facts: Sequence[LearnedFact],
        also: Sequence[Statement],
    ) -> list[StoreResult]:
        """Store contents as `store_all` does, and learn facts as `learn` does, all in one transaction."""
        name = acting_name()
        call = StoreCall(self.scope, tuple(news), tuple(sources), self._clock(), name, tuple(facts), tuple(also))
        return await self._writer.store(call)

    async def store_stated_once(self, new: NewRecord, source: RecordSource) -> StoreResult:
        """Store the content as `store` does, unless a visible record states it in the same words already.

        That record is stored again if it is the scope's, so that fields which it lacks are added; one of another scope is
        kept as it is. Raises: as `store`.
        """
        scopes = visible_scopes(self.view)
        call = StoreCall(self.scope, (new,), (source,), self._clock(), acting_name(), compared=scopes)
        return (await self._writer.store(call))[0]

    async def known_as(self, contents: Sequence[str]) -> list[Record | None]:
        """Return of each content the visible record that states it in the same words, None without one. One round trip."""
        if not contents:
            return []
        scopes, now = visible_scopes(self.view), self._clock()
        asked = [with_its_words(self.view.tenant_id, scopes, content, now) for content in contents]
        known = map(same_in, await self._sql.batch(asked), contents)
        return [None if one is None else one.record for one in known]

    async def search(self, wanted: RecallQuery, *, register: bool = True) -> list[Hit]:
        """Return the hits of `recall`. Raises: as that."""
        return (await self.recall(wanted, register=register)).hits

    async def recall(
        self, wanted: RecallQuery, along: ReadAlong | None = None, *, register: bool = True
    ) -> RecallResult:
        """Return the visible records that match the query, best first, and what the recall had to do without.

        register: whether a scope that D1 does not have, or has in the agent's earlier house, is registered first, in one
        more round trip. False refuses it: for a scope that comes from a name alone. along: as `Recall.search`.
        Raises: as `Recall.search`; Unavailable (code `no_memory_left`) when too many recalls are under way.
        """
        async with nullcontext() if self._room is None else self._room.held(RECALL_BYTES):
            return await self._recalled(wanted, along, register=register)

    async def _recalled(self, wanted: RecallQuery, along: ReadAlong | None, *, register: bool) -> RecallResult:
        try:
            return await self._recall.search(wanted, along)
        except UnknownScope as error:
            if not register:
                raise
            try:
                known = [scope.parent or scope if scope.kind == "user" else scope for scope in self.view.starts]
                await self._sql.batch([part for scope in known for part in registration(scope)])
            except Conflict:
                raise error from None  # the tenant was erased
        return await self._recall.search(wanted, along)

    async def get(self, record_id: str) -> tuple[Record, list[LearningEvent]]:
        """Return a record at or below the scope, or visible, with all of its events, oldest first.

        Raises: NotFound; InvalidInput.
        """
        known, events, more = await self.page_of(record_id)
        while more:
            _, others, more = await self.page_of(record_id, after=events[-1].event_id)
            events += others
        return known.record, events

    async def page_of(
        self, record_id: str, *, after: str = "", limit: int = EVENTS_PER_PAGE
    ) -> tuple[KnownRecord, list[LearningEvent], bool]:
        """Return a record as `get` does, a page of its events, and whether more follow.

        after: the id of the event after which the page begins.
        """
        known = await self._owned(record_id, visible=self.view.nodes)
        rows, more = cut((await self._sql.run(_EVENTS, known.record.id, after, limit + 1)).rows, limit)
        return known, [event_of(row) for row in rows], more

    async def edit(
        self, record_id: str, changes: EventData, source: RecordSource, *, based_on: str | None = None
    ) -> Record:
        """Change fields of a record at or below the scope; the old values stay in its events.

        based_on: the id of the event that must be the record's last one, unless the record already has these values.
        Raises: InvalidInput for a field that cannot be edited or a value that does not fit; Conflict (code
            `duplicate_content`) when the scope has the new content already, or (code `memory_changed`) when another event
            is the last one; NotFound; Unavailable.
        """
        unknown = sorted(set(changes) - set(EDITABLE))
        if unknown or not changes:
            raise InvalidInput(
                f"only these fields can be edited: {', '.join(EDITABLE)}", code="invalid_edit", fields=unknown
            )
        subject = changes.get("subject")
        changes = {**changes, "subject": composed(subject)} if isinstance(subject, str) else changes
        owned = await self._owned(record_id)
        before = owned.record
        _check_edit(before, changes)
        _check_base(owned, based_on, changes)
        edited = changed(before, _event("edited", record_id, changes, source, self._clock()))
        [indexed] = await self._indexer.read([edited])

        async def edit(known: KnownRecord, supersession: Supersession) -> tuple[Record, list[Written | Statement]]:
            _check_base(known, based_on, changes)
            event = _event("edited", record_id, changes, source, supersession.at_ms)
            record = (await supersession.edit(known, event)).record
            same = record.content == edited.content
            now = indexed if same else (await self._indexer.read([record]))[0]
            kept = keep(record_id) if "content" in changes else []
            return record, [*supersession.parts, *kept, *self._indexer.rows(record, now)]

        meant = edited.content != before.content
        await self._sql.batch([self._indexer.owe(edited, len(indexed.vectors), changed=meant)])
        try:
            sent = await self._indexer.try_to_write([(edited, indexed)])
            return await self._change(record_id, edit, owed=True, settle=sent)
        except RetainError as error:
            await self._indexer.try_to_settle(record_id, still_fresh=True)
            if isinstance(error, Conflict) and error.code != "memory_changed":
                raise Conflict("the scope has this content already", code="duplicate_content") from error
            raise

    async def invalidate(
        self, record_id: str, at_ms: int, source: RecordSource, *, based_on: str | None = None
    ) -> Record:
        """End the record's validity at `at_ms`; one that was to begin later never does. based_on: as in `edit`.

        Raises: Conflict (code `memory_changed`); NotFound; Unavailable.
        """

        async def close(known: KnownRecord, supersession: Supersession) -> tuple[Record, list[Written | Statement]]:
            _check_base(known, based_on, {"valid_to_ms": at_ms})
            return (await supersession.close(known, at_ms, source.to_json())).record, supersession.parts

        return await self._change(record_id, close)

    async def restore(self, record_id: str, source: RecordSource, *, based_on: str | None = None) -> Record:
        """Make a closed record valid again; one that another fact replaced, from now. based_on: as in `edit`.

        Raises: Conflict (code `memory_changed`); NotFound; Unavailable.
        """

        async def restore(known: KnownRecord, supersession: Supersession) -> tuple[Record, list[Written | Statement]]:
            _check_base(known, based_on, {"valid_to_ms": None})
            return (await supersession.restore(known, source.to_json())).record, supersession.parts

        return await self._change(record_id, restore)

    async def delete(self, record_id: str, source: RecordSource) -> None:
        """Delete a record at or below the scope: once this returns, it cannot be found, and replaces no other fact.

        Raises: NotFound; Unavailable, after which the call may be repeated.
        """

        async def remove(known: KnownRecord, supersession: Supersession) -> tuple[Record, list[Written | Statement]]:
            record = known.record
            deleted = known.follow(_event("deleted", record.id, {}, source, supersession.at_ms))
            await supersession.remove(record)
            return record, [
                append_event(record.tenant_id, deleted),
                self._indexer.owe(record, 0),
                *remove_rows(record.id),
                remove_record(record.id),
                *supersession.parts,
            ]

        await self._change(record_id, remove, owed=True)

    async def delete_all(self, record_ids: Sequence[str], source: RecordSource) -> list[str]:
        """Delete those of the records that the scope itself has, in one change, as `delete`; return their ids. Idempotent.

        Raises: Unavailable, after which the call may be repeated.
        """
        debts: dict[str, Statement] = {}
        deleted_ids: list[str] = []

        async def change(at_ms: int) -> Change | None:
            nonlocal debts, deleted_ids
            values = (self.scope.tenant_id, self.scope.scope_id, json.dumps(list(record_ids)))
            found = [known_of(row) for row in (await self._sql.run(_OWN_RECORDS, *values)).rows]
            deleted_ids = [known.record.id for known in found]
            supersession = Supersession(self._sql, at_ms)
            await supersession.remove(*[known.record for known in found])
            parts: list[Written | Statement] = []
            for known in found:
                deleted = known.follow(_event("deleted", known.record.id, {}, source, at_ms))
                parts += [append_event(self.scope.tenant_id, deleted), self._indexer.owe(known.record, 0)]
                parts += [*remove_rows(known.record.id), remove_record(known.record.id)]
            debts = self._indexer.debts(supersession.changes)
            return change_of([*parts, *supersession.parts, *debts.values()]) if found else None

        await self._history.transact_at(self.scope.tenant_id, change)
        await self._indexer.try_to_settle(*sorted({*record_ids, *debts}), still_fresh=True)
        return deleted_ids

    async def _change(self, record_id: str, decide: _Decide, *, owed: bool = False, settle: bool = True) -> Record:
        """Commit `decide`'s change and return its record: a read after the commit might fail or see more.

        Then settle the vectors of the records that it changes, if that works. owed: the caller records this record's debt.
        settle: False while the vector index is away, so that it is not waited for again.
        """
        decided: list[Record] = []
        debts: dict[str, Statement] = {}

        async def change(at_ms: int) -> Change:
            nonlocal debts
            supersession = Supersession(self._sql, at_ms)
            record, parts = await decide(await self._owned(record_id), supersession)
            decided.append(record)
            debts = self._indexer.debts(supersession.changes)
            if owed:
                debts.pop(record_id, None)
            return change_of([*parts, *debts.values()])

        await self._history.transact_at(self.scope.tenant_id, change)
        own = [record_id] if owed else []
        if settle:
            await self._indexer.try_to_settle(*own, *sorted(debts), still_fresh=True)
        return as_stored(decided[-1])

    async def _owned(self, record_id: str, visible: Sequence[Scope] = ()) -> KnownRecord:
        """Return a record at or below the scope, or in one of the `visible` ones. Raises: NotFound; InvalidInput."""
        within, names = holding(self.scope, "r.scope_id")
        rows = (
            await self._sql.run(
                f"SELECT r.*, {LAST_EVENT} FROM memory_records r WHERE r.tenant_id = ?1 AND r.id = ?3"
                f" AND ({within} OR r.scope_id IN (SELECT value FROM json_each(?4)))",
                *names,
                check_id(record_id),
                json.dumps([scope.scope_id for scope in visible]),
            )
        ).rows
        if not rows:
            raise NotFound("there is no such memory", code="no_such_memory")
        return known_of(rows[0])


def _event(kind: EventKind, record_id: str, data: EventData, source: RecordSource, at_ms: int) -> LearningEvent:
    return LearningEvent(new_id(), record_id, kind, data, source.to_json(), at_ms)


def _check_base(known: KnownRecord, based_on: str | None, changes: EventData) -> None:
    """Refuse a change of a record that changed after the event on which it is based. Raises: Conflict.

    One that would change nothing is not refused: it may be the same request again.
    """
    if based_on in (None, known.last_event_id):
        return
    if any(getattr(known.record, name) != value for name, value in changes.items()):
        raise Conflict(
            "the memory has changed after the event that if-match names",
            code="memory_changed",
            last_event_id=known.last_event_id,
        )


def _check_edit(record: Record, changes: EventData) -> None:
    """Raise InvalidInput or LimitExceeded for values that a record cannot have."""
    if not isinstance(changes.get("content", ""), str) or not isinstance(changes.get("metadata", {}), Mapping):
        raise InvalidInput("content must be text, and metadata an object", code="invalid_edit")
    check(replace(record, **changes))
