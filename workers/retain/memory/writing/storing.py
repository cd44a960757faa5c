"""The stores of a group of calls: prepare their contents, record the index debts, commit together.

The vectors are written before the records, and a debt is recorded before that, so a group that fails or dies leaves no
visible record (see `retain.memory.indexer`). If the index is away, the debts stay, and the records are stored all the same.
Everything that the decision reads is read at once with the tenant's last mutation, in the transaction that records the
debts of what is not known, and before embedding, so that known content is not embedded; if another mutation was committed
since, it is read again. So a store is two round trips to D1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from retain.errors import QuotaExceeded, RetainError
from retain.limits.listed_rows import listed
from retain.memory.index_debts import OWED, cancel
from retain.memory.indexer import LISTED_FORMS, Indexed, Indexer
from retain.memory.recall.sources.same_words import same_in, with_its_words
from retain.memory.records.derived import about, restated
from retain.memory.records.events import KnownRecord
from retain.memory.records.record import Record
from retain.memory.records.retelling import additions, outcome
from retain.memory.records.rows import LAST_EVENT, RECORD_FORMS, change_of, known_of
from retain.memory.records.supersession import Foreseen, Supersession, foreseeing
from retain.memory.scope import Scope, registration
from retain.memory.writing.calls import Stated, StoreCall, StoreResult
from retain.memory.writing.learning import FactStatement, close_opposites, met
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
_REGISTERING = f"""{OWED} AND NOT EXISTS (
  SELECT 1 FROM erased_users e WHERE e.tenant_id = ?1 AND e.user_id = ?7 AND e.last_run_id >= ?8)"""
"""The condition on registering a scope: a debt of a new record, unless all are of runs before its user's erasure."""
_FORMS = {**RECORD_FORMS, **LISTED_FORMS}
_Key = tuple[str, str]
"""A scope's id and the hash of a content in it: equal keys are one record."""


@dataclass(frozen=True, slots=True)
class _Owed:
    """A new record with a debt to the vector index, and what the indexes hold of it. sent: the index has its vectors."""

    record: Record
    indexed: Indexed
    sent: bool


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one call asks to store, each with its key, and to learn."""

    call: StoreCall
    contents: Sequence[tuple[_Key, Stated]]
    facts: Sequence[tuple[_Key, FactStatement]]

    def in_known_words(self, found: Iterator[SqlResult], known: dict[_Key, KnownRecord]) -> _Asked:
        """Return what is asked, with the words of the records that state the same; these are added to `known`.

        found: what the statements of `compared` read, of this call and of those after it.
        """
        if not self.call.compared:
            return self
        contents: list[tuple[_Key, Stated]] = []
        for key, stated in self.contents:
            same = same_in(next(found), stated.record.content)
            if same is None:
                contents.append((key, stated))
                continue
            in_its_words = replace(stated.record, content=same.record.content, utterance=same.record.utterance)
            contents.append((_key(same.record), replace(stated, record=in_its_words)))
            known.setdefault(_key(same.record), same)
        return replace(self, contents=contents)


class Storing:
    """Stores the contents of calls of one tenant, each call's all or none, in order. An object serves one call of `run`."""

    def __init__(self, tenant_id: str, sql: Sql, clock: Clock, indexer: Indexer, calls: Sequence[StoreCall]) -> None:
        self._tenant_id = tenant_id
        self._sql = sql
        self._clock = clock
        self._indexer = indexer
        self._calls = _asked(calls)
        self._contents = [one for asked in self._calls for one in asked.contents]
        self._facts = [one for asked in self._calls for one in asked.facts]
        learned = [(one.record, one.fact.opposites) for _, one in self._facts]
        self._foreseeing = foreseeing(tenant_id, [stated.record for _, stated in self._contents], learned)
        self._candidates = self._to_create()
        self._owed: dict[_Key, _Owed] = {}
        self._rounds = 0
        self._outcomes: list[list[StoreResult] | Exception] | None = None
        self._created: set[str] = set()
        self._reindexed: list[KnownRecord] = []

    async def run(self) -> list[list[StoreResult] | Exception]:
        """Store the contents and return each call's results, in order, when all are durable and can be found.

        A call that the tenant's limits refuse has its QuotaExceeded instead.
        Raises: Unavailable, UpstreamFailed; then nothing is visible, unless the answer of the commit was lost.
        """
        if not any(asked.contents or asked.facts or asked.call.also for asked in self._calls):
            return [[] for _ in self._calls]
        try:
            while self._outcomes is None:  # again if a known record is deleted before the transaction: then it is new
                await self._round()
        except RetainError:
            await self._indexer.cancel([record.id for record in self._unprepared.values()])
            sent = [owed.record.id for owed in self._owed.values() if owed.sent]
            await self._indexer.try_to_settle(*sent, still_fresh=True)
            raise
        if all(owed.sent for owed in self._owed.values()):  # an index that is away is not waited for again
            await self._indexer.try_to_settle(*self._unused(), still_fresh=True)
            vectors = {owed.record.id: owed.indexed for owed in self._owed.values()}
            await self._indexer.try_to_send(self._reindexed, vectors)
        return self._outcomes

    async def _round(self) -> None:
        """Read, prepare what is new, and commit; set the outcomes, unless the state changed too much meanwhile."""
        history, reading = WorldHistory(self._sql, self._clock), self._reading()
        seen = await history.see(self._tenant_id, [*reading, *self._owing()])
        known, calls = self._known(seen.results)
        await self._prepare(known, calls, self._foreseen(seen.results), quotas_in(seen.results[2].rows[0]))
        self._rounds += 1
        if (
            self._owed
            or self._facts
            or any(asked.call.also or asked.call.compared for asked in self._calls)
            or any(self._changes(known[key].record, one) for key, one in self._contents)
        ):
            await history.transact_on(self._tenant_id, reading, self._decide, seen)
        else:
            self._outcomes = [[kept_as_it_is(known[key].record, one) for key, one in asked.contents] for asked in calls]

    def _reading(self) -> list[Statement]:
        """Return what is read: known contents, what users and the tenant hold, and competing facts, if there can be any."""
        keys = sorted({key for key, _ in (*self._contents, *self._facts)})
        users = sorted({asked.call.scope.user_id for asked in self._calls} - {None}, key=str)
        return [
            (_KNOWN, (self._tenant_id, json.dumps(keys))),
            (_HELD_OF_USERS, (self._tenant_id, json.dumps(users))),
            asking(self._tenant_id, self._clock()),
            *([] if self._foreseeing is None else [self._foreseeing.statement]),
            *[
                with_its_words(self._tenant_id, asked.call.compared, stated.record.content, self._clock())
                for asked in self._calls
                if asked.call.compared
                for _, stated in asked.contents
            ],
        ]

    def _known(self, read: Sequence[SqlResult]) -> tuple[dict[_Key, KnownRecord], list[_Asked]]:
        """Return the known records, and the calls with the contents that are known in the same words as their records."""
        known = {(row["scope_id"], row["content_hash"]): known_of(row) for row in read[0].rows}
        found = iter(read[3 if self._foreseeing is None else 4 :])
        return known, [asked.in_known_words(found, known) for asked in self._calls]

    def _foreseen(self, read: Sequence[SqlResult]) -> Foreseen | None:
        return None if self._foreseeing is None else Foreseen(self._foreseeing, read[3])

    def _to_create(self) -> dict[_Key, Record]:
        """Return the records that may have to be created, by their keys."""
        found: dict[_Key, Record] = {}
        for key, stated in self._contents:
            found.setdefault(key, stated.record)
        for key, one in self._facts:
            if not one.fact.denied:
                found.setdefault(key, one.record)
        return found

    def _owing(self) -> list[Statement]:
        """Return the statements that record the debts of the contents that are not known, and register the scopes if any is.

        Each scope is registered in the name of its first caller. A caller with rows of its own has registered it with these:
        nothing of a user who is erased meanwhile is written before the transaction that finds the rows gone.
        """
        if not self._candidates:
            return []
        named: dict[Scope, str | None] = {}
        last_run: dict[Scope, str] = {}
        for asked in self._calls:
            call = asked.call
            if not call.also:
                named.setdefault(call.scope, call.acting)
                last_run[call.scope] = max(last_run.get(call.scope, ""), call.last_run_id)
        by_name: dict[str | None, dict[Statement, None]] = {}
        ids = json.dumps([record.id for record in self._candidates.values()])
        for scope, name in named.items():
            registering = registration(scope, _REGISTERING, ids, scope.user_id, last_run[scope])
            by_name.setdefault(name, {}).update(dict.fromkeys(registering))
        registered = [part for name, statements in by_name.items() for part in attributed(name, [*statements])]
        return [*self._indexer.owe_unknown(self._tenant_id, list(self._candidates.values())), *registered]

    def _changes(self, record: Record, stated: Stated) -> bool:
        """Return whether storing the content again may change the record."""
        now = self._clock()
        again = restated(record, stated.record, stated.since_ms, now)
        return again is not None or bool(additions(record, stated.record, now))

    async def _prepare(
        self,
        known: Mapping[_Key, KnownRecord],
        calls: Sequence[_Asked],
        foreseen: Foreseen | None,
        quotas: TenantQuotas,
    ) -> None:
        """Embed the contents that are neither known nor prepared, and write their vectors.

        Facts that are known in other words are not new, unless what the call does before them changes that.
        Raises: QuotaExceeded (code `memory_quota`) if the tenant has no room for all of them.
        """
        reworded: set[_Key] = set()
        if foreseen is not None and not self._rounds:
            reworded = {key for key, one in self._facts if _is_known(one, foreseen)}
        wanted = {key for asked in calls for key, _ in (*asked.contents, *asked.facts)}
        fresh = {
            key: record
            for key, record in self._candidates.items()
            if key in wanted and key not in known and key not in self._owed and key not in reworded
        }
        if not fresh:
            return
        quotas.check_memories(len(fresh))
        pairs = list(zip(fresh.values(), await self._indexer.read(list(fresh.values())), strict=True))
        self._owed |= {key: _Owed(*pair, sent=True) for key, pair in zip(fresh, pairs, strict=True)}
        if not await self._indexer.try_to_write(pairs):
            self._owed |= {key: _Owed(*pair, sent=False) for key, pair in zip(fresh, pairs, strict=True)}

    async def _decide(self, at_ms: int, read: Sequence[SqlResult]) -> Change | None:
        """Return the change that stores new records and changes known ones; set the outcomes. Repeatable.

        at_ms: the mutation's time. A new record is valid from when it was stated, which is earlier: it is embedded first.
        """
        self._outcomes, self._reindexed, self._created = None, [], set()
        (known, calls), room, foreseen = self._known(read), _Room(read[1]), self._foreseen(read)
        unsent = [record.id for key, record in self._unprepared.items() if key not in known]
        supersession = Supersession(self._sql, at_ms, foreseen)
        outcomes: list[list[StoreResult] | Exception] = []
        also: list[Statement] = []
        for asked in calls:
            new = {key for key, _ in asked.contents if key not in known}
            if not new <= self._owed.keys():
                return None
            new |= {key for key, _ in asked.facts if key not in known and key in self._owed}
            refusal = room.take(asked.call.scope.user_id, len(new))
            if refusal is not None:
                outcomes.append(refusal)
                continue
            results = [await self._decided(supersession, known, key, one) for key, one in asked.contents]
            for key, one in asked.facts:
                if foreseen is None or not await self._learned(supersession, foreseen, known, key, one, results):
                    return None
            outcomes.append(results)
            also += asked.call.also
        debts = self._indexer.debts(supersession.changes)
        self._outcomes, self._reindexed = outcomes, [supersession.changed(record_id) for record_id in sorted(debts)]
        cancelled = [cancel(unsent)] if unsent else []
        change = change_of([*supersession.parts, *debts.values(), *cancelled, *also])
        return Change(listed(change.statements, _FORMS), change.entries) if change.statements else None

    async def _decided(
        self, supersession: Supersession, known: dict[_Key, KnownRecord], key: _Key, stated: Stated
    ) -> StoreResult:
        """Let the mutation store one content; return its result."""
        if (held := known.get(key)) is not None:
            if held.record.scope_id != stated.record.scope_id:
                return kept_as_it_is(held.record, stated)
            return _result(*await supersession.repeat(held, stated.record, stated.since_ms), stated)
        owed = self._owed[key]
        known[key] = await self._added(supersession, owed, owed.record)
        return StoreResult(owed.record.id, created=True, degraded=() if owed.sent else ("vectors",))

    async def _learned(
        self,
        supersession: Supersession,
        foreseen: Foreseen,
        known: dict[_Key, KnownRecord],
        key: _Key,
        stated: FactStatement,
        results: Sequence[StoreResult],
    ) -> bool:
        """Let the mutation learn one fact; return False if it has to be stored, and is not prepared for that.

        results: of the call's contents, which may state it.
        """
        record, by = stated.record, stated.fact.stated_by
        if by is not None:
            record = replace(record, source={**record.source, "record_id": results[by].id})
        what = met(record, await supersession.about([about(record)], self._tenant_id), foreseen)
        if what.ignored:
            return True
        if not stated.fact.denied:
            held = what.valid or known.get(key)
            if held is not None:
                again = replace(record, content=held.record.content)
                await supersession.repeat(held, again, record.valid_from_ms)
            elif (owed := self._owed.get(key)) is not None:
                known[key] = await self._added(supersession, owed, replace(owed.record, source=record.source))
            else:
                return False
        await close_opposites(supersession, FactStatement(record, stated.fact))
        return True

    async def _added(self, supersession: Supersession, owed: _Owed, record: Record) -> KnownRecord:
        self._created.add(record.id)
        sent = [self._indexer.sent(record)] if owed.sent else []
        return await supersession.add(record, [*self._indexer.rows(record, owed.indexed), *sent])

    @property
    def _unprepared(self) -> dict[_Key, Record]:
        """The candidates that may have a debt, and of which the index was sent nothing, nor will be."""
        return {key: record for key, record in self._candidates.items() if key not in self._owed}

    def _unused(self) -> list[str]:
        """Return the records of which the index was sent vectors, but which were not stored: refused, or known by then."""
        return [owed.record.id for owed in self._owed.values() if owed.record.id not in self._created]


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


def _asked(calls: Sequence[StoreCall]) -> list[_Asked]:
    """Return what the calls ask for: each record has a greater id than the one before."""
    found: list[_Asked] = []
    last_id = ""
    for call in calls:
        stated = call.stated(last_id)
        last_id = stated[-1].record.id if stated else last_id
        count = len(call.news)
        facts = [FactStatement(one.record, fact) for one, fact in zip(stated[count:], call.facts, strict=True)]
        contents = [(_key(one.record), one) for one in stated[:count]]
        found.append(_Asked(call, contents, [(_key(one.record), one) for one in facts]))
    return found


def _key(record: Record) -> _Key:
    return record.scope_id, record.content_hash


def _is_known(stated: FactStatement, foreseen: Foreseen) -> bool:
    """Return whether a fact is known in whatever words, or a person decided otherwise, so that nothing is stored."""
    record = stated.record
    what = met(record, foreseen.facts([about(record)], record.valid_from_ms) or (), foreseen)
    return what.ignored or what.valid is not None


def kept_as_it_is(record: Record, stated: Stated) -> StoreResult:
    """Return the result for known content whose record does not change."""
    return _result(record, record, stated)


def _result(before: Record, after: Record, stated: Stated) -> StoreResult:
    retold = outcome(before, after, stated.record, stated.since_ms)
    return StoreResult(after.id, False, retold.merged, retold.kept)
