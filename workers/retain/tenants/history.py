"""World history: the hash-chained log of a tenant's mutations, and the transactions that write it.

An entry has what happened and a digest, never the content, so erasing data leaves the chain intact.
Every mutation of a tenant's memory is one transaction with its history entries. The entries' numbers continue from the
last one read before, so two mutations that decide on the same state cannot both commit: the second decides again. So a
tenant's mutations are serialisable, whatever they read.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from retain.errors import Conflict, Contended, InvalidInput
from retain.limits.listed_rows import listed
from retain.ports import Clock, Row, Sql, SqlResult, Statement

GENESIS = "0" * 64
"""The previous hash of a tenant's first entry."""
MAX_TRIES = 20
FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.5
"""Bounds of the random pause before a mutation is tried again. It doubles with each try, so that many writers spread out."""

_CURSOR = re.compile(r"(?P<seq>0|[1-9][0-9]{0,14})\.(?P<head>[0-9a-f]{64})(?:\.(?P<event>[0-9A-Z]{0,26}))?")
LAST_ENTRY = "SELECT seq, hash, at_ms FROM world_history WHERE tenant_id = ? ORDER BY seq DESC LIMIT 1"
_APPEND = """
INSERT INTO world_history (tenant_id, seq, kind, subject_id, digest, at_ms, previous_hash, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_APPEND_LISTED = f"""
INSERT INTO world_history (tenant_id, seq, kind, subject_id, digest, at_ms, previous_hash, hash)
SELECT {", ".join(f"one.value ->> {place}" for place in range(8))} FROM json_each(?) one
"""
PAGES_PER_CALL = 100
"""Pages that one call verifies: with two queries each, they stay well within the queries that D1 allows an invocation.

Source: https://developers.cloudflare.com/d1/platform/limits/
"""

# Without statistics the planner takes the index on the tenant alone, and reads all of its rows for each entry.
_ERASED_LATER = """
  (EXISTS (SELECT 1 FROM world_history x INDEXED BY world_history_erased_records
           WHERE x.tenant_id = h.tenant_id AND x.subject_id = h.subject_id AND x.kind = 'record_erased' AND x.seq > h.seq)
   OR EXISTS (SELECT 1 FROM world_history x INDEXED BY world_history_erased_tenants
              WHERE x.tenant_id = h.tenant_id AND x.kind = 'tenant_erased' AND x.seq > h.seq))
"""
_MISSING_EVENT = f"""
SELECT h.seq FROM world_history h
WHERE h.tenant_id = ? AND h.seq > ? AND h.seq <= ? AND substr(h.kind, 1, 7) = 'record_' AND h.kind <> 'record_erased'
  AND NOT EXISTS (SELECT 1 FROM memory_events e INDEXED BY memory_events_by_record
                  WHERE e.record_id = h.subject_id AND e.tenant_id = h.tenant_id AND e.digest = h.digest)
  AND NOT {_ERASED_LATER}
ORDER BY h.seq LIMIT 1
"""
_PROVED_EVENTS = f"""
SELECT e.*, h.seq, {_ERASED_LATER} AS erased FROM memory_events e
LEFT JOIN world_history h INDEXED BY world_history_by_digest ON h.tenant_id = e.tenant_id AND h.digest = e.digest
WHERE e.tenant_id = ? AND e.event_id > ? ORDER BY e.event_id LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """Something that happened. subject_id: what it happened to. digest: of the event's content, see `digest_of`."""

    kind: str
    subject_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a mutation decided: the statements that do it, and its history entries."""

    statements: Sequence[Statement]
    entries: Sequence[HistoryEntry]


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """The result of a verification.

    entries, head: how many entries from the first are chained correctly, and the last one's hash. problem: None, or
    `entry_changed` (an entry is changed, added, missing or misplaced), `event_changed`, `event_removed`, `event_added`
    or `event_not_erased` (of the learning stream), or `head_differs` (from a kept head). broken_at: the number of the
    first wrong entry, 0 for an event without an entry. cursor: where the next call continues, None at the end.
    """

    entries: int
    head: str
    problem: str | None = None
    broken_at: int | None = None
    cursor: str | None = None


def digest_of(nonce: str, data: str) -> str:
    """Return the SHA-256 of a nonce and data, in hexadecimal. Without the nonce it reveals nothing about the data."""
    return hashlib.sha256(f"{nonce}\n{data}".encode()).hexdigest()


def chain_hash(previous: str, tenant_id: str, seq: int, entry: HistoryEntry, at_ms: int) -> str:
    """Return the hash of an entry: SHA-256 over the previous hash and all of the entry's fields."""
    text = json.dumps([previous, tenant_id, seq, entry.kind, entry.subject_id, entry.digest, at_ms])
    return hashlib.sha256(text.encode()).hexdigest()


def follow(tenant_id: str, rows: Sequence[Row], seq: int = 0, previous: str = GENESIS) -> tuple[int, str]:
    """Return the number and hash of the last entry, in order, that is chained correctly from `seq` and `previous`."""
    for row in rows:
        entry = HistoryEntry(row["kind"], row["subject_id"], row["digest"])
        expected = chain_hash(previous, tenant_id, seq + 1, entry, row["at_ms"])
        if row["seq"] != seq + 1 or row["previous_hash"] != previous or row["hash"] != expected:
            break
        seq, previous = seq + 1, expected
    return seq, previous


@dataclass(frozen=True, slots=True)
class _Last:
    """A tenant's last entry."""

    seq: int
    hash: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class StateRead:
    """What a mutation decides on: the tenant's last entry, and the results of what was read in the same moment."""

    last: _Last
    results: Sequence[SqlResult]


class WorldHistory:
    """The world history of every tenant, and the one way to change a tenant's memory."""

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock

    async def transact(self, tenant_id: str, decide: Callable[[], Awaitable[Change | None]]) -> bool:
        """Decide and commit, as one serialisable mutation of the tenant; return False when there was nothing to do.

        decide: reads what it needs and returns the change, or None. It may be called again, so it must not have
        side effects.
        Raises: Conflict when a constraint forbids the change itself; Contended when other mutations kept committing first,
            although each try waits for a random time; what `decide` raises.
        """

        async def decide_then(_: int, __: Sequence[SqlResult]) -> Change | None:
            return await decide()

        return await self.transact_on(tenant_id, (), decide_then)

    async def transact_at(self, tenant_id: str, decide: Callable[[int], Awaitable[Change | None]]) -> bool:
        """Decide and commit as `transact` does, and give `decide` the mutation's time: that of its history entries.

        It is the clock's, and not earlier than that of the tenant's mutation before, even if the clock of the machine that
        wrote it is ahead. So the order of times is the order of mutations. What a mutation writes is recorded at its time,
        so a read as of any time knows all of the mutation or nothing.
        """

        async def decide_at(at_ms: int, _: Sequence[SqlResult]) -> Change | None:
            return await decide(at_ms)

        return await self.transact_on(tenant_id, (), decide_at)

    async def see(self, tenant_id: str, reading: Sequence[Statement] = ()) -> StateRead:
        """Return the tenant's last entry, and what these statements read in the same moment."""
        if not reading:
            return StateRead(await self._head(tenant_id), ())
        last, *results = await self._sql.batch([(LAST_ENTRY, (tenant_id,)), *reading])
        return StateRead(_last_of(last.rows), results)

    async def transact_on(
        self,
        tenant_id: str,
        reading: Sequence[Statement],
        decide: Callable[[int, Sequence[SqlResult]], Awaitable[Change | None]],
        seen: StateRead | None = None,
    ) -> bool:
        """Decide and commit as `transact_at` does, and give `decide` the results of the statements `reading` as well.

        They are read together with the tenant's last entry. seen: what `see` returned for them, for the first try: it may
        be as old as one likes, because a mutation since then makes the commit fail.
        """
        for number in range(MAX_TRIES):
            if seen is None:
                seen = await self.see(tenant_id, reading)
            head = seen.last
            at_ms = max(self._clock(), head.at_ms)
            change = await decide(at_ms, seen.results)
            if change is None:
                return False
            try:
                await self._sql.batch([*change.statements, *_appended(tenant_id, head, change.entries, at_ms)])
            except Conflict:
                if await self._head(tenant_id) == head:
                    raise
                await asyncio.sleep(_pause_s(number))
                seen = None
                continue
            return True
        raise Contended("too many changes to the tenant's memory at once; try again")

    async def page(self, tenant_id: str, *, after: int, limit: int) -> list[Row]:
        """Return up to `limit` entries with numbers greater than `after`, in order."""
        result = await self._sql.run(
            "SELECT seq, kind, subject_id, digest, at_ms, previous_hash, hash FROM world_history"
            " WHERE tenant_id = ? AND seq > ? ORDER BY seq LIMIT ?",
            tenant_id,
            after,
            limit,
        )
        return result.rows

    async def verify(
        self, tenant_id: str, cursor: str | None = None, *, page: int = 1000, pages: int = PAGES_PER_CALL
    ) -> ChainVerdict:
        """Recompute the tenant's chain and compare it with the events that exist, up to `pages` pages from the cursor.

        Detects a changed, removed, added or reordered entry, and a changed, added or removed learning event. When the
        last entries were removed, `head` differs from the one kept elsewhere (`retain.lifecycle.heads`). The caller keeps
        the cursor: it holds what was verified so far, and one that somebody else changed proves nothing.
        Raises: InvalidInput (code `invalid_cursor`).
        """
        seq, head, event = _position(cursor)
        for _ in range(pages):
            if event is None:
                rows = await self.page(tenant_id, after=seq, limit=page)
                followed = follow(tenant_id, rows, seq, head)
                if followed[0] < seq + len(rows):
                    return ChainVerdict(*followed, "entry_changed", followed[0] + 1)
                missing = await self._sql.run(_MISSING_EVENT, tenant_id, seq, followed[0])
                if missing.rows:
                    return ChainVerdict(*followed, "event_removed", int(missing.rows[0]["seq"]))
                seq, head = followed
                event = "" if len(rows) < page else None
            else:
                events = (await self._sql.run(_PROVED_EVENTS, tenant_id, event, page)).rows
                for row in events:
                    problem = _problem_of(row)
                    if problem is not None:
                        return ChainVerdict(seq, head, problem, int(row["seq"] or 0))
                if len(events) < page:
                    return ChainVerdict(seq, head)
                event = events[-1]["event_id"]
        return ChainVerdict(seq, head, cursor=f"{seq}.{head}" if event is None else f"{seq}.{head}.{event}")

    async def _head(self, tenant_id: str) -> _Last:
        rows = (await self._sql.run(LAST_ENTRY, tenant_id)).rows
        return _last_of(rows)


def _last_of(rows: Sequence[Row]) -> _Last:
    return _Last(int(rows[0]["seq"]), rows[0]["hash"], int(rows[0]["at_ms"])) if rows else _Last(0, GENESIS, 0)


def appending(tenant_id: str, last: Sequence[Row], entries: Sequence[HistoryEntry], now_ms: int) -> list[Statement]:
    """Return the statements that append entries to a tenant's chain. They conflict if it has grown.

    last: the result of `LAST_ENTRY`, read before what the entries are about.
    """
    before = _last_of(last)
    return _appended(tenant_id, before, entries, max(now_ms, before.at_ms))


def _appended(tenant_id: str, last: _Last, entries: Sequence[HistoryEntry], at_ms: int) -> list[Statement]:
    """Return the statements that append the entries."""
    seq, previous = last.seq, last.hash
    statements: list[Statement] = []
    for entry in entries:
        seq += 1
        current = chain_hash(previous, tenant_id, seq, entry, at_ms)
        values = (tenant_id, seq, entry.kind, entry.subject_id, entry.digest, at_ms, previous, current)
        statements.append((_APPEND, values))
        previous = current
    return listed(statements, {_APPEND: _APPEND_LISTED})


def _pause_s(tries: int) -> float:
    """Return a random pause before the next try. tries: how many there were before."""
    return random.uniform(0, min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**tries))  # noqa: S311 -- spreads writers, hides nothing


def _problem_of(event: Row) -> str | None:
    """Return the problem of a learning event's row that `_PROVED_EVENTS` joined with its entry, or None."""
    if event["seq"] is None:
        # The digest covers the whole event: if it still matches, the event was added; if not, it was changed.
        return "event_added" if event["digest"] == event_digest(event) else "event_changed"
    if event["digest"] != event_digest(event):
        return "event_changed"
    return "event_not_erased" if event["erased"] else None


def _position(cursor: str | None) -> tuple[int, str, str | None]:
    """Return the last verified entry's number and hash, and the last verified event's id, None before the first.

    Raises: InvalidInput (code `invalid_cursor`).
    """
    if cursor is None:
        return 0, GENESIS, None
    read = _CURSOR.fullmatch(cursor)
    if read is None:
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    return int(read["seq"]), read["head"], read["event"]


def event_digest(event: Row) -> str:
    """Return the digest of a learning event's row, over all of its fields."""
    names = ("event_id", "tenant_id", "record_id", "kind", "data", "source", "at_ms")
    return digest_of(event["nonce"], json.dumps([event[name] for name in names]))
