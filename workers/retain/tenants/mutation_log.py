"""The mutation log: the part of world history that is not about records.

Triggers write an entry for each mutation in the mutation's own transaction (migrations/0029_mutations.sql), so no program
can forget one, and writers of one tenant do not wait for each other. Entries name things by numbers. What a number means
is in `mutation_subjects` while the thing exists, and removed with it: an erasure leaves entries that point to nothing.
The daily work seals new entries: an entry of the hash chain has the digest of a range of them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from retain.errors import Conflict, InvalidInput
from retain.ports import Clock, Row, Sql, Statement
from retain.retention import DAY_MS
from retain.tenants.history import LAST_ENTRY, ChainVerdict, Change, HistoryEntry, WorldHistory, appending

SEALED = "mutations_sealed"
"""The kind of the chain's entries that seal a range."""
KEPT_MS = 400 * DAY_MS
"""How long entries are kept: a year and a month, as the rows of runs. The chain keeps the digests."""
SEAL_ROWS = 5_000
"""Entries that one seal covers at most, that one page looks at, and that one pruning removes for a tenant."""
SEALS_PER_CALL = 20
GROUP = 20
"""Tenants whose entries are sealed together, by two calls of D1."""
GROUP_ROWS = 500
"""Entries of each that are then sealed; a tenant with more is sealed on its own."""
TENANTS_PER_CALL = 600
"""Tenants of one call: with two calls for each group of them, they leave the rest of the brief what it needs."""
_LATE_MS = 30 * DAY_MS
"""How long an entry may wait for its seal, if the daily work does not run."""

_COLUMNS = "number, kind, subject, version, detail, at_ms, changed_by"
_PAGE = """
SELECT m.number, m.kind, m.subject, s.thing, s.key, m.version, m.detail, m.at_ms, m.changed_by FROM mutation_log m
LEFT JOIN mutation_subjects s ON s.number = m.subject
WHERE m.tenant_id = ?1 AND m.number > ?2 AND m.number <= ?2 + ?3
  AND (?4 IS NULL OR m.kind = ?4) AND (?5 IS NULL OR m.subject = ?5)
ORDER BY m.number LIMIT ?6
"""
_LAST = "SELECT COALESCE(MAX(number), 0) AS number FROM mutation_log WHERE tenant_id = ?"
_SUBJECT = "SELECT number FROM mutation_subjects WHERE tenant_id = ? AND thing = ? AND key = ?"
_LAST_SEAL = (
    "SELECT seq, subject_id FROM world_history INDEXED BY world_history_seals"
    f" WHERE tenant_id = ? AND kind = '{SEALED}' ORDER BY seq DESC LIMIT 1"
)
_SEALS = (
    "SELECT seq, subject_id, digest, at_ms FROM world_history INDEXED BY world_history_seals"
    f" WHERE tenant_id = ? AND kind = '{SEALED}' AND seq > ? ORDER BY seq LIMIT ?"
)
_RANGE = f"SELECT {_COLUMNS} FROM mutation_log WHERE tenant_id = ? AND number > ? AND number <= ? ORDER BY number"
# The walk from tenant to tenant reads one entry of each; DISTINCT would read all of them.
_DUE = f"""
WITH RECURSIVE tenants_in_log (tenant_id) AS (
  SELECT MIN(tenant_id) FROM mutation_log UNION ALL
  SELECT (SELECT MIN(tenant_id) FROM mutation_log m WHERE m.tenant_id > t.tenant_id) FROM tenants_in_log t
  WHERE t.tenant_id IS NOT NULL
)
SELECT tenant_id, sealed, since, old FROM (
  SELECT k.tenant_id, k.sealed,
    (SELECT at_ms FROM mutation_log m WHERE m.tenant_id = k.tenant_id AND m.number > k.sealed ORDER BY number LIMIT 1)
      AS since,
    (SELECT at_ms < ?1 FROM mutation_log m WHERE m.tenant_id = k.tenant_id ORDER BY number LIMIT 1) AS old
  FROM (
    SELECT tenant_id, COALESCE((
      SELECT CAST(substr(subject_id, instr(subject_id, '-') + 1) AS INTEGER)
      FROM world_history h INDEXED BY world_history_seals
      WHERE h.tenant_id = t.tenant_id AND h.kind = '{SEALED}' ORDER BY seq DESC LIMIT 1), 0) AS sealed
    FROM tenants_in_log t WHERE tenant_id IS NOT NULL
  ) k
) WHERE since IS NOT NULL OR old ORDER BY since IS NULL, since, tenant_id LIMIT ?2
"""
# The newest entry always stays: the next one is numbered after it.
_PRUNE = """
DELETE FROM mutation_log WHERE tenant_id = ?1 AND at_ms < ?2
  AND number < (SELECT MIN(number) + ?3 FROM mutation_log WHERE tenant_id = ?1)
  AND number < (SELECT MAX(number) FROM mutation_log WHERE tenant_id = ?1)
"""
_CURSOR = re.compile(r"seals\.(?P<after>[0-9]{1,15})\.(?P<seq>[0-9]{1,15})\.(?P<head>[0-9a-f]{64})")
_RANGES = re.compile(r"(?P<first>[1-9][0-9]*)-(?P<last>[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class MutationFilter:
    """Which entries to list. kind: None for all. thing, key: of one thing that still exists, None for any."""

    kind: str | None = None
    thing: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class MutationPage:
    """Entries in order, and where the next page begins: None at the end. A page with a filter may be empty before it."""

    entries: Sequence[Row]
    cursor: int | None


@dataclass(frozen=True, slots=True)
class Sealed:
    """How many entries of all tenants one call sealed and removed. complete: whether no tenant is left for the next."""

    sealed: int
    removed: int
    complete: bool = True

    def to_json(self) -> dict[str, int]:
        """Return the counts by name."""
        return {"sealed": self.sealed, "removed": self.removed}


class MutationLog:
    """Reads, seals, verifies and prunes the entries of every tenant. Nothing here writes one."""

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock

    async def page(
        self, tenant_id: str, *, after: int, limit: int, only: MutationFilter = MutationFilter()
    ) -> MutationPage:
        """Return up to `limit` entries with numbers greater than `after`, among the next 5,000.

        Each has `thing` and `key` while what it is about exists. Raises: InvalidInput (code `invalid_filter`) for a
            thing without a key, or a key without a thing.
        """
        if (only.thing is None) is not (only.key is None):
            raise InvalidInput("a thing is named by `thing` and `key` together", code="invalid_filter")
        subject: int | None = None
        if only.key is not None:
            found = (await self._sql.run(_SUBJECT, tenant_id, only.thing, only.key)).rows
            if not found:
                return MutationPage([], None)
            subject = int(found[0]["number"])
        last, listed = await self._sql.batch(
            [(_LAST, (tenant_id,)), (_PAGE, (tenant_id, after, SEAL_ROWS, only.kind, subject, limit))]
        )
        end = listed.rows[-1]["number"] if len(listed.rows) == limit else after + SEAL_ROWS
        return MutationPage(listed.rows, int(end) if end < int(last.rows[0]["number"]) else None)

    async def seal(self, tenant_id: str) -> int:
        """Seal the entries that have no seal yet, 100,000 at most; return how many were sealed. Idempotent.

        Raises: Unavailable; what was sealed before stays.
        """
        sealed = 0
        for _ in range(SEALS_PER_CALL):
            covered: list[int] = []

            async def decide(covered: list[int] = covered) -> Change | None:
                last = (await self._sql.run(_LAST_SEAL, tenant_id)).rows
                after = _range(last[0]["subject_id"])[1] if last else 0
                rows = (await self._sql.run(_RANGE, tenant_id, after, after + SEAL_ROWS)).rows
                covered[:] = [int(row["number"]) for row in rows]
                if not rows:
                    return None
                return Change([], [_seal(after, rows)])

            if not await WorldHistory(self._sql, self._clock).transact(tenant_id, decide):
                break
            sealed += len(covered)
            if len(covered) < SEAL_ROWS:
                break
        return sealed

    async def seal_all(self, *, tenants: int = TENANTS_PER_CALL) -> Sealed:
        """Seal the new entries of the tenants that have waited longest; remove what is older than 400 days."""
        old = self._clock() - KEPT_MS
        due = (await self._sql.run(_DUE, old, tenants)).rows
        unsealed = [row for row in due if row["since"] is not None]
        sealed = 0
        for start in range(0, len(unsealed), GROUP):
            sealed += await self._seal_group(unsealed[start : start + GROUP])
        aged = [row["tenant_id"] for row in due if row["old"]][:GROUP]
        pruned: list[Statement] = [(_PRUNE, (tenant_id, old, SEAL_ROWS)) for tenant_id in aged]
        removed = sum(result.changes for result in await self._sql.batch(pruned)) if pruned else 0
        return Sealed(sealed, removed, complete=len(due) < tenants)

    async def _seal_group(self, group: Sequence[Row]) -> int:
        """Seal the first entries of several tenants, each with one seal; one at a time when a chain grows meanwhile."""
        tenants = [row["tenant_id"] for row in group]
        reads: list[Statement] = []
        for row in group:
            first = int(row["sealed"])
            reads += [(LAST_ENTRY, (row["tenant_id"],)), (_RANGE, (row["tenant_id"], first, first + GROUP_ROWS))]
        found = await self._sql.batch(reads)
        appended: list[Statement] = []
        for number, (tenant_id, row) in enumerate(zip(tenants, group, strict=True)):
            last, entries = found[2 * number].rows, found[2 * number + 1].rows
            appended += appending(tenant_id, last, [_seal(int(row["sealed"]), entries)], self._clock())
        try:
            await self._sql.batch(appended)
        except Conflict:
            return sum([await self.seal(tenant_id) for tenant_id in tenants])
        full = [one for one, result in zip(tenants, found[1::2], strict=True) if len(result.rows) == GROUP_ROWS]
        rest = [await self.seal(tenant_id) for tenant_id in full]
        return sum(len(result.rows) for result in found[1::2]) + sum(rest)

    async def verify(self, tenant_id: str, after: int = 0) -> tuple[int | None, int | None]:
        """Compare the entries with their seals, at most 20, from the chain's entry number `after`.

        Return the number of the first seal whose entries differ, None when none does, and where the next call continues,
        None at the end. Seals older than the time for which entries are kept are not compared.
        """
        seals = (await self._sql.run(_SEALS, tenant_id, after, SEALS_PER_CALL)).rows
        for seal in seals:
            if int(seal["at_ms"]) < self._clock() - KEPT_MS + _LATE_MS:
                continue
            first, last = _range(seal["subject_id"])
            rows = (await self._sql.run(_RANGE, tenant_id, first - 1, last)).rows
            if _digest(rows) != seal["digest"]:
                return int(seal["seq"]), None
        return None, int(seals[-1]["seq"]) if len(seals) == SEALS_PER_CALL else None


async def with_log(log: MutationLog, tenant_id: str, verdict: ChainVerdict, after: int = 0) -> ChainVerdict:
    """Return the verdict of a whole chain together with that of the next seals. after: where the call before stopped."""
    wrong, following = await log.verify(tenant_id, after)
    if wrong is not None:
        return ChainVerdict(verdict.entries, verdict.head, "mutations_changed", wrong)
    cursor = None if following is None else f"seals.{following}.{verdict.entries}.{verdict.head}"
    return ChainVerdict(verdict.entries, verdict.head, cursor=cursor)


def seals_cursor(cursor: str | None) -> tuple[int, ChainVerdict] | None:
    """Return where the seals continue and the verdict of the chain before them, None for a cursor of the chain."""
    read = None if cursor is None else _CURSOR.fullmatch(cursor)
    return None if read is None else (int(read["after"]), ChainVerdict(int(read["seq"]), read["head"]))


def _digest(rows: Sequence[Row]) -> str:
    """Return the SHA-256 of entries, over all of their fields.

    An entry that names nobody has one field less, as every entry had before they named anybody.
    """
    names = ("number", "kind", "subject", "version", "detail", "at_ms")
    fields = [[*(row[name] for name in names), *filter(None, [row["changed_by"]])] for row in rows]
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()


def _seal(after: int, rows: Sequence[Row]) -> HistoryEntry:
    """Return the seal of entries that follow the number `after`."""
    return HistoryEntry(SEALED, f"{after + 1}-{rows[-1]['number']}", _digest(rows))


def _range(subject_id: str) -> tuple[int, int]:
    """Return the numbers of the first and the last entry under a seal."""
    read = _RANGES.fullmatch(subject_id)
    return (1, 0) if read is None else (int(read["first"]), int(read["last"]))
