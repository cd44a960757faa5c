"""The stores of a group of calls: prepare their contents, record the index debts, commit together.

The vectors are written before the records, and a debt is recorded before that, so a group that fails or dies leaves no
visible record (see `retain.memory.indexer`). If the index is away, the debts stay, and the records are stored all the same.
Everything that the decision reads is read at once with the tenant's last
mutation, before embedding, so that known content is not embedded; if another mutation was committed since, it is read again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.errors import QuotaExceeded, RetainError
from retain.memory.indexer import Indexed, Indexer
from retain.memory.records.derived import restated
from retain.memory.records.events import KnownRecord
from retain.memory.records.record import Record
from retain.memory.records.retelling import additions, outcome
from retain.memory.records.rows import LAST_EVENT, change_of, known_of
from retain.memory.records.supersession import Foreseen, Supersession, foreseeing
from retain.memory.scope import Scope, registration
from retain.memory.writing.calls import Stated, StoreCall, StoreResult
from retain.ports import Clock, Sql, SqlResult, Statement
from retain.tenants.attribution import attributed
from retain.tenants.history import Change, WorldHistory
from retain.tenants.quotas import TenantQuotas, asking, quotas_in

_KNOWN = f"""
SELECT r.*, {LAST_EVENT} FROM json_each(?2) one CROSS JOIN memory_records r
WHERE r.tenant_id = ?1 AND r.scope_id = one.value ->> 0 AND r.content_hash = one.value ->> 1
"""
_HELD_OF_USERS = """
SELECT value AS user_id, (SELECT max_memories_per_user FROM tenants WHERE tenant_id = ?1) AS most,
  (SELECT COALESCE(SUM(records), 0) FROM scopes WHERE tenant_id = ?1 AND user_id = value) AS held
FROM json_each(?2)
"""
_Key = tuple[str, str]
"""A scope's id and the hash of a content in it: equal keys are one record."""


@dataclass(frozen=True, slots=True)
class _Owed:
    """A new record with a debt to the vector index, and what the indexes hold of it. sent: the index has its vectors."""

    record: Record
    indexed: Indexed
    sent: bool


class Storing:
    """Stores the contents of calls of one tenant, each call's all or none, in order. An object serves one call of `run`."""

    def __init__(self, tenant_id: str, sql: Sql, clock: Clock, indexer: Indexer, calls: Sequence[StoreCall]) -> None:
        self._tenant_id = tenant_id
        self._sql = sql
        self._clock = clock
        self._indexer = indexer
        self._scopes: dict[Scope, str | None] = {}
        for call in calls:
            self._scopes.setdefault(call.scope, call.acting)
        self._users = [call.scope.user_id for call in calls]
        self._calls: list[list[tuple[_Key, Stated]]] = []
        self._contents: list[tuple[_Key, Stated]] = []
        for call in calls:
            last_id = self._contents[-1][1].record.id if self._contents else ""
            self._calls.append([(_key(one), one) for one in call.stated(last_id)])
            self._contents += self._calls[-1]
        self._foreseeing = foreseeing(tenant_id, [stated.record for _, stated in self._contents])
        self._owed: dict[_Key, _Owed] = {}
        self._outcomes: list[list[StoreResult] | Exception] | None = None if self._contents else [[] for _ in calls]
        self._reindexed: list[str] = []

    async def run(self) -> list[list[StoreResult] | Exception]:
        """Store the contents and return each call's results, in order, when all are durable and can be found.

        A call that the tenant's limits refuse has its QuotaExceeded instead.
        Raises: Unavailable, UpstreamFailed; then nothing is visible, unless the answer of the commit was lost.
        """
        history, reading = WorldHistory(self._sql, self._clock), self._reading()
        try:
            while (
                self._outcomes is None
            ):  # repeated if a known record is deleted before the transaction: then it is new
                seen = await history.see(self._tenant_id, reading)
                known = _known(seen.results[0])
                await self._owe(known, quotas_in(seen.results[2].rows[0]))
                if self._owed or any(self._changes(known[key].record, one) for key, one in self._contents):
                    await history.transact_on(self._tenant_id, reading, self._decide, seen)
                else:
                    self._outcomes = [
                        [kept_as_it_is(known[key].record, one) for key, one in contents] for contents in self._calls
                    ]
        except RetainError:
            sent = [owed.record.id for owed in self._owed.values() if owed.sent]
            await self._indexer.try_to_settle(*sent, still_fresh=True)
            raise
        if all(owed.sent for owed in self._owed.values()):  # an index that is away is not waited for again
            await self._indexer.try_to_settle(*self._unused(), *self._reindexed, still_fresh=True)
        return self._outcomes

    def _reading(self) -> list[Statement]:
        """Return what is read: known contents, what users and the tenant hold, and competing facts, if there can be any."""
        keys = sorted({key for key, _ in self._contents})
        users = sorted({user_id for user_id in self._users if user_id is not None})
        return [
            (_KNOWN, (self._tenant_id, json.dumps(keys))),
            (_HELD_OF_USERS, (self._tenant_id, json.dumps(users))),
            asking(self._tenant_id, self._clock()),
            *([] if self._foreseeing is None else [self._foreseeing.statement]),
        ]

    def _changes(self, record: Record, stated: Stated) -> bool:
        """Return whether storing the content again may change the record."""
        now = self._clock()
        again = restated(record, stated.record, stated.since_ms, now)
        return again is not None or bool(additions(record, stated.record, now))

    async def _owe(self, known: Mapping[_Key, KnownRecord], quotas: TenantQuotas) -> None:
        """Embed the contents that are neither known nor owed, record their debts, and write their vectors.

        Raises: QuotaExceeded (code `memory_quota`) if the tenant has no room for all of them.
        """
        fresh: dict[_Key, Record] = {}
        for key, stated in self._contents:
            if key not in known and key not in self._owed:
                fresh.setdefault(key, stated.record)
        if not fresh:
            return
        quotas.check_memories(len(fresh))
        records = list(fresh.values())
        pairs = list(zip(records, await self._indexer.read(records), strict=True))
        owed = [self._indexer.owe(record, len(indexed.vectors)) for record, indexed in pairs]
        await self._sql.batch([*self._registrations(), *owed])
        self._owed |= {key: _Owed(*pair, sent=True) for key, pair in zip(fresh, pairs, strict=True)}
        if not await self._indexer.try_to_write(pairs):
            self._owed |= {key: _Owed(*pair, sent=False) for key, pair in zip(fresh, pairs, strict=True)}

    def _registrations(self) -> list[Statement]:
        """Return the statements that register the scopes, each in the name of its first caller."""
        by_name: dict[str | None, dict[Statement, None]] = {}
        for scope, name in self._scopes.items():
            by_name.setdefault(name, {}).update(dict.fromkeys(registration(scope)))
        return [part for name, statements in by_name.items() for part in attributed(name, [*statements])]

    async def _decide(self, at_ms: int, read: Sequence[SqlResult]) -> Change | None:
        """Return the change that stores new records and changes known ones; set the outcomes. Repeatable.

        at_ms: the mutation's time. A new record is valid from when it was stated, which is earlier: it is embedded first.
        """
        self._outcomes, self._reindexed = None, []
        known, room = _known(read[0]), _Room(read[1])
        supersession = Supersession(
            self._sql, at_ms, None if self._foreseeing is None else Foreseen(self._foreseeing, read[3])
        )
        outcomes: list[list[StoreResult] | Exception] = []
        for user_id, contents in zip(self._users, self._calls, strict=True):
            new = {key for key, _ in contents if key not in known}
            if not new <= self._owed.keys():
                return None
            refusal = room.take(user_id, len(new))
            outcomes.append(refusal or [await self._decided(supersession, known, key, one) for key, one in contents])
        debts = self._indexer.debts(supersession.changes)
        self._outcomes, self._reindexed = outcomes, sorted(debts)
        return change_of([*supersession.parts, *debts.values()]) if supersession.parts else None

    async def _decided(
        self, supersession: Supersession, known: dict[_Key, KnownRecord], key: _Key, stated: Stated
    ) -> StoreResult:
        """Let the mutation store one content; return its result."""
        if (held := known.get(key)) is not None:
            return _result(*await supersession.repeat(held, stated.record, stated.since_ms), stated)
        owed = self._owed[key]
        sent = [self._indexer.sent(owed.record)] if owed.sent else []
        known[key] = await supersession.add(owed.record, [*self._indexer.rows(owed.record, owed.indexed), *sent])
        return StoreResult(owed.record.id, created=True, degraded=() if owed.sent else ("vectors",))

    def _unused(self) -> list[str]:
        """Return the records with a debt that were not stored: refused, or stored by another writer meanwhile."""
        stored = {result.id for results in self._outcomes or [] if isinstance(results, list) for result in results}
        return [owed.record.id for owed in self._owed.values() if owed.record.id not in stored]


class _Room:
    """How many more memories the users may have, while a transaction creates some."""

    def __init__(self, read: SqlResult) -> None:
        """Take the result of `_HELD_OF_USERS`."""
        self._held = {row["user_id"]: int(row["held"]) for row in read.rows}
        self._most = {row["user_id"]: None if row["most"] is None else int(row["most"]) for row in read.rows}

    def take(self, user_id: str | None, created: int) -> QuotaExceeded | None:
        """Take room for so many memories of the user; return the error (code `user_memory_limit`) if there is none."""
        if user_id is None or not created:
            return None
        most = self._most[user_id]
        if most is not None and self._held[user_id] + created > most:
            return QuotaExceeded(
                "the user has as many memories as the tenant allows; delete or erase some",
                code="user_memory_limit",
                limit=most,
            )
        self._held[user_id] += created
        return None


def _key(stated: Stated) -> _Key:
    return stated.record.scope_id, stated.record.content_hash


def _known(read: SqlResult) -> dict[_Key, KnownRecord]:
    """Return the records of the result of `_KNOWN`."""
    return {(row["scope_id"], row["content_hash"]): known_of(row) for row in read.rows}


def kept_as_it_is(record: Record, stated: Stated) -> StoreResult:
    """Return the result for known content whose record does not change."""
    return _result(record, record, stated)


def _result(before: Record, after: Record, stated: Stated) -> StoreResult:
    retold = outcome(before, after, stated.record, stated.since_ms)
    return StoreResult(after.id, False, retold.merged, retold.kept)
