"""One call that stores contents in a scope: prepare them, record the index debts, commit together, return the ids.

The vectors are written before the records, and a debt is recorded before that, so a call that fails or dies leaves no
visible record (see `retain.memory.indexer`). Which content is new is decided twice: before embedding, so that known
content is not embedded, and inside the transaction, which sees what other writers did meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.errors import RetainError
from retain.identifiers import new_id
from retain.memory.indexer import Indexed, Indexer
from retain.memory.records.record import EDITABLE, NewRecord, Record, RecordSource
from retain.memory.records.rows import change_of
from retain.memory.records.supersession import Supersession, Validity
from retain.memory.scope import Scope, registration
from retain.ports import Clock, Sql
from retain.tenants.history import Change, WorldHistory

_KNOWN = """
SELECT id, content_hash, valid_to_ms, expires_at_ms FROM memory_records
WHERE tenant_id = ? AND scope_id = ? AND content_hash IN (SELECT value FROM json_each(?))
"""


@dataclass(frozen=True, slots=True)
class StoreResult:
    """What `store` did. created: False when the scope had equal content already."""

    id: str
    created: bool


@dataclass(frozen=True, slots=True)
class _Owed:
    """A new record with a debt to the vector index, and what the indexes hold of it."""

    record: Record
    indexed: Indexed


class Storing:
    """Stores contents in one scope, all of them or none. An object serves one call of `run`.

    records: each content as a new record, in order; equal contents may repeat.
    """

    def __init__(self, scope: Scope, sql: Sql, clock: Clock, indexer: Indexer, records: Sequence[Record]) -> None:
        self._scope = scope
        self._sql = sql
        self._clock = clock
        self._indexer = indexer
        self._contents = [(record.content_hash, record) for record in records]
        self._owed: dict[str, _Owed] = {}
        self._ids: dict[str, str] | None = None if records else {}

    async def run(self) -> list[StoreResult]:
        """Store the contents and return each one's result, in order, when all are durable and can be found.

        Raises: Unavailable, UpstreamFailed; then nothing is visible, unless the answer of the commit was lost.
        """
        try:
            while self._ids is None:  # repeated if a known record is deleted before the transaction: then it is new
                known = await self._known()
                await self._owe(known)
                if self._owed or any(validity.is_over(self._clock()) for validity in known.values()):
                    await WorldHistory(self._sql, self._clock).transact(self._scope.tenant_id, self._decide)
                else:
                    self._ids = {content: validity.record_id for content, validity in known.items()}
        except RetainError:
            for owed in self._owed.values():
                await self._indexer.try_to_settle(owed.record.id, still_fresh=True)
            raise
        return self._results(self._ids)

    async def _known(self) -> dict[str, Validity]:
        """Return the validity of the contents that the scope has, by hash."""
        contents = json.dumps([content for content, _ in self._contents])
        rows = (await self._sql.run(_KNOWN, self._scope.tenant_id, self._scope.scope_id, contents)).rows
        return {row["content_hash"]: Validity(row["id"], row["valid_to_ms"], row["expires_at_ms"]) for row in rows}

    async def _owe(self, known: Mapping[str, Validity]) -> None:
        """Embed the contents that are neither known nor owed, record their debts, and write their vectors."""
        fresh: dict[str, Record] = {}
        for content, record in self._contents:
            if content not in known and content not in self._owed:
                fresh.setdefault(content, record)
        if not fresh:
            return
        records = list(fresh.values())
        pairs = list(zip(records, await self._indexer.read(records), strict=True))
        owed = [self._indexer.owe(record, len(indexed.vectors)) for record, indexed in pairs]
        await self._sql.batch([*registration(self._scope), *owed])
        self._owed |= {content: _Owed(*pair) for content, pair in zip(fresh, pairs, strict=True)}
        await self._indexer.write(pairs)

    async def _decide(self) -> Change | None:
        """Return the change that stores new records and reopens those no longer valid; set the ids. Repeatable."""
        self._ids = None
        known = await self._known()
        ids: dict[str, str] = {}
        supersession = Supersession(self._sql, self._clock)
        for content, record in self._contents:
            if (validity := known.get(content)) is not None:
                if not await supersession.repeat(validity, record):
                    return None
            elif (owed := self._owed.get(content)) is not None:
                new = owed.record
                await supersession.add(new, [*self._indexer.rows(new, owed.indexed), self._indexer.sent(new)])
                validity = known[content] = Validity(new.id, new.valid_to_ms, new.expires_at_ms)
            else:
                return None
            ids[content] = validity.record_id
        self._ids = ids
        return change_of(supersession.parts) if supersession.parts else None

    def _results(self, ids: Mapping[str, str]) -> list[StoreResult]:
        """Return each content's result; of equal contents only the first counts as created."""
        created = {owed.record.id for owed in self._owed.values()}
        results: list[StoreResult] = []
        for content, _ in self._contents:
            results.append(StoreResult(ids[content], ids[content] in created))
            created.discard(ids[content])
        return results


def record_for(scope: Scope, new: NewRecord, source: RecordSource, now_ms: int) -> Record:
    """Return the content as a new record of the scope, with a new id."""
    return Record(
        **{name: getattr(new, name) for name in EDITABLE},
        id=new_id(),
        tenant_id=scope.tenant_id,
        scope_id=scope.scope_id,
        valid_from_ms=_valid_from(new, now_ms),
        valid_to_ms=None,
        recorded_at_ms=now_ms,
        updated_at_ms=now_ms,
        superseded_by=None,
        edited=source.origin == "person",
        utterance=new.utterance,
        source=source.to_json(),
    )


def _valid_from(new: NewRecord, now_ms: int) -> int:
    """Return when a new record becomes valid: as given, else when it was uttered (at most now), else now."""
    if new.valid_from_ms is not None:
        return new.valid_from_ms
    uttered_ms = new.utterance.at_ms if new.utterance is not None else None
    return now_ms if uttered_ms is None else min(uttered_ms, now_ms)
