"""One call that stores contents in a scope: prepare them, record the index debts, commit together, return the ids.

The vectors are written before the records, and a debt is recorded before that, so a call that fails or dies leaves no
visible record (see `retain.memory.indexer`). If the index is away, the debt stays, and the records are stored all the same.
Which content is new is decided twice: before embedding, so that known content is not embedded, and inside the transaction,
which sees what other writers did meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from retain.errors import QuotaExceeded, RetainError
from retain.identifiers import new_id
from retain.json_text import Json, JsonObject
from retain.memory.indexer import Indexed, Indexer
from retain.memory.records.derived import restated
from retain.memory.records.events import KnownRecord
from retain.memory.records.record import EDITABLE, NewRecord, Record, RecordSource
from retain.memory.records.retelling import additions, outcome
from retain.memory.records.rows import LAST_EVENT, change_of, known_of
from retain.memory.records.supersession import Supersession
from retain.memory.scope import Scope, registration
from retain.ports import Clock, Sql
from retain.tenants.history import Change, WorldHistory
from retain.tenants.quotas import quotas_of

_KNOWN = f"""
SELECT r.*, {LAST_EVENT} FROM memory_records r
WHERE r.tenant_id = ? AND r.scope_id = ? AND r.content_hash IN (SELECT value FROM json_each(?))
"""

_HELD_OF_USER = """
SELECT (SELECT max_memories_per_user FROM tenants WHERE tenant_id = ?1) AS most,
  (SELECT COALESCE(SUM(records), 0) FROM scopes WHERE tenant_id = ?1 AND user_id = ?2) AS held
"""


@dataclass(frozen=True, slots=True)
class StoreResult:
    """What `store` did. created: False when the scope had equal content already.

    merged, kept: then, the outcome for the given fields, as `retain.memory.records.retelling.Retold`.
    degraded: `vectors` when the vector index was away and is owed the record's vectors.
    """

    id: str
    created: bool
    merged: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    degraded: tuple[Literal["vectors"], ...] = ()

    def to_json(self) -> JsonObject:
        """Return the result as the answers of HTTP and of tools have it: with `degraded` only if it is."""
        result: dict[str, Json] = {"id": self.id, "created": self.created}
        result |= {"merged": list(self.merged), "kept": list(self.kept)}
        return result if not self.degraded else result | {"degraded": list(self.degraded)}


@dataclass(frozen=True, slots=True)
class Stated:
    """A content as a new record. since_ms: when it became valid as the caller said, None if not said."""

    record: Record
    since_ms: int | None


@dataclass(frozen=True, slots=True)
class _Owed:
    """A new record with a debt to the vector index, and what the indexes hold of it. sent: the index has its vectors."""

    record: Record
    indexed: Indexed
    sent: bool


class Storing:
    """Stores contents in one scope, all of them or none. An object serves one call of `run`.

    stated: each content, in order; equal contents may repeat.
    """

    def __init__(self, scope: Scope, sql: Sql, clock: Clock, indexer: Indexer, stated: Sequence[Stated]) -> None:
        self._scope = scope
        self._sql = sql
        self._clock = clock
        self._indexer = indexer
        self._contents = [(one.record.content_hash, one) for one in stated]
        self._owed: dict[str, _Owed] = {}
        self._results: list[StoreResult] | None = None if stated else []
        self._reindexed: list[str] = []

    async def run(self) -> list[StoreResult]:
        """Store the contents and return each one's result, in order, when all are durable and can be found.

        Raises: Unavailable, UpstreamFailed; then nothing is visible, unless the answer of the commit was lost.
        """
        try:
            while self._results is None:  # repeated if a known record is deleted before the transaction: then it is new
                known = await self._known()
                await self._owe(known)
                if self._owed or any(self._changes(known[content].record, one) for content, one in self._contents):
                    await WorldHistory(self._sql, self._clock).transact_at(self._scope.tenant_id, self._decide)
                else:
                    self._results = [kept_as_it_is(known[content].record, one) for content, one in self._contents]
        except RetainError:
            for owed in [one for one in self._owed.values() if one.sent]:
                await self._indexer.try_to_settle(owed.record.id, still_fresh=True)
            raise
        if all(owed.sent for owed in self._owed.values()):  # an index that is away is not waited for again
            await self._indexer.try_to_settle(*self._reindexed, still_fresh=True)
        return self._results

    async def _known(self) -> dict[str, KnownRecord]:
        """Return the records of the contents that the scope has, by hash."""
        contents = json.dumps(sorted({content for content, _ in self._contents}))
        rows = (await self._sql.run(_KNOWN, self._scope.tenant_id, self._scope.scope_id, contents)).rows
        return {row["content_hash"]: known_of(row) for row in rows}

    def _changes(self, record: Record, stated: Stated) -> bool:
        """Return whether storing the content again may change the record."""
        now = self._clock()
        again = restated(record, stated.record, stated.since_ms, now)
        return again is not None or bool(additions(record, stated.record, now))

    async def _owe(self, known: Mapping[str, KnownRecord]) -> None:
        """Embed the contents that are neither known nor owed, record their debts, and write their vectors."""
        fresh: dict[str, Record] = {}
        for content, stated in self._contents:
            if content not in known and content not in self._owed:
                fresh.setdefault(content, stated.record)
        if not fresh:
            return
        (await quotas_of(self._sql, self._scope.tenant_id, self._clock())).check_memories(len(fresh))
        records = list(fresh.values())
        pairs = list(zip(records, await self._indexer.read(records), strict=True))
        owed = [self._indexer.owe(record, len(indexed.vectors)) for record, indexed in pairs]
        await self._sql.batch([*registration(self._scope), *owed])
        self._owed |= {content: _Owed(*pair, sent=True) for content, pair in zip(fresh, pairs, strict=True)}
        if not await self._indexer.try_to_write(pairs):
            self._owed |= {content: _Owed(*pair, sent=False) for content, pair in zip(fresh, pairs, strict=True)}

    async def _decide(self, at_ms: int) -> Change | None:
        """Return the change that stores new records and changes known ones; set the results. Repeatable.

        at_ms: the mutation's time. A new record is valid from when it was stated, which is earlier: it is embedded first.
        """
        self._results, self._reindexed = None, []
        known = await self._known()
        results: list[StoreResult] = []
        supersession = Supersession(self._sql, at_ms)
        for content, stated in self._contents:
            if (held := known.get(content)) is not None:
                result = _result(*await supersession.repeat(held, stated.record, stated.since_ms), stated)
            elif (owed := self._owed.get(content)) is not None:
                record = owed.record
                sent = [self._indexer.sent(record)] if owed.sent else []
                known[content] = await supersession.add(record, [*self._indexer.rows(record, owed.indexed), *sent])
                result = StoreResult(record.id, created=True, degraded=() if owed.sent else ("vectors",))
            else:
                return None
            results.append(result)
        await self._require_room(sum(result.created for result in results))
        debts = self._indexer.debts(supersession.changes)
        self._results, self._reindexed = results, sorted(debts)
        return change_of([*supersession.parts, *debts.values()]) if supersession.parts else None

    async def _require_room(self, created: int) -> None:
        """Check that the scope's user may have so many more memories, in the transaction that creates them.

        Raises: QuotaExceeded (code `user_memory_limit`).
        """
        user_id = self._scope.user_id
        if user_id is None or not created:
            return
        [row] = (await self._sql.run(_HELD_OF_USER, self._scope.tenant_id, user_id)).rows
        most = row["most"]
        if most is not None and int(row["held"]) + created > int(most):
            raise QuotaExceeded(
                "the user has as many memories as the tenant allows; delete or erase some",
                code="user_memory_limit",
                limit=int(most),
            )


def kept_as_it_is(record: Record, stated: Stated) -> StoreResult:
    """Return the result for known content whose record does not change."""
    return _result(record, record, stated)


def _result(before: Record, after: Record, stated: Stated) -> StoreResult:
    retold = outcome(before, after, stated.record, stated.since_ms)
    return StoreResult(after.id, False, retold.merged, retold.kept)


def stated_in(scope: Scope, new: NewRecord, source: RecordSource, now_ms: int) -> Stated:
    """Return the content as a new record of the scope, with a new id."""
    record = Record(
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
    return Stated(record, new.valid_from_ms)


def _valid_from(new: NewRecord, now_ms: int) -> int:
    """Return when a new record becomes valid: as given, else when it was uttered (at most now), else now."""
    if new.valid_from_ms is not None:
        return new.valid_from_ms
    uttered_ms = new.utterance.at_ms if new.utterance is not None else None
    return now_ms if uttered_ms is None else min(uttered_ms, now_ms)
