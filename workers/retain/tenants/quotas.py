"""Quotas: how many memories a tenant may hold, and how many runs and tokens it may spend in a day.

The number of a tenant replaces that of the deployment, which is the row `*`; without either there is no limit. Triggers
count (migrations/0037_quotas.sql). Memories are also bounded there, in the transaction that stores them, so concurrent
stores cannot pass the limit together; runs and tokens are bounded when a run begins, by what has reached D1 by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from retain.errors import NotFound, QuotaExceeded
from retain.limits.storage import memory_quota
from retain.ports import Row, Sql, Statement
from retain.retention import DAY_MS

EVERY_TENANT: Final = "*"
"""The row of `quotas` with the deployment's numbers."""
_LIMITS = ("memories", "runs_a_day", "tokens_a_day")
_OF_TENANT = """
SELECT
  COALESCE(own.memories, every.memories) AS memories, COALESCE(own.runs_a_day, every.runs_a_day) AS runs_a_day,
  COALESCE(own.tokens_a_day, every.tokens_a_day) AS tokens_a_day,
  COALESCE(used.memories, 0) AS held, CASE used.day WHEN ?2 THEN used.runs ELSE 0 END AS runs,
  CASE used.day WHEN ?2 THEN used.tokens ELSE 0 END AS tokens,
  EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = ?1 AND closed) AS erased
FROM (SELECT 1) LEFT JOIN quotas own ON own.tenant_id = ?1 LEFT JOIN quotas every ON every.tenant_id = '*'
  LEFT JOIN tenant_use used ON used.tenant_id = ?1
"""
_NUMBERS = "SELECT memories, runs_a_day, tokens_a_day FROM quotas WHERE tenant_id = ?"
_ADD = "INSERT INTO quotas (tenant_id) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM quotas WHERE tenant_id = ?1)"
_SET: Mapping[str, str] = {name: f"UPDATE quotas SET {name} = ? WHERE tenant_id = ?" for name in _LIMITS}


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit and what is used of it. most: None without a limit."""

    most: int | None
    used: int

    def allows(self, more: int) -> bool:
        """Return whether so many more fit."""
        return self.most is None or self.used + more <= self.most

    def to_json(self) -> dict[str, int | None]:
        """Return the quota as HTTP answers have it."""
        return {"most": self.most, "used": self.used}


@dataclass(frozen=True, slots=True)
class TenantQuotas:
    """The quotas that hold for a tenant."""

    memories: Quota
    runs_a_day: Quota
    tokens_a_day: Quota

    def to_json(self) -> dict[str, dict[str, int | None]]:
        """Return the quotas as HTTP answers have them."""
        return {name: getattr(self, name).to_json() for name in _LIMITS}

    def check_memories(self, more: int) -> None:
        """Check that so many more memories fit. Raises: QuotaExceeded (code `memory_quota`)."""
        if not self.memories.allows(more):
            raise memory_quota()

    def check_run(self, *, counted: bool = False) -> None:
        """Check that another run may begin today. counted: whether it is among the runs of its day already.

        Raises: QuotaExceeded (code `run_quota`, `token_quota`).
        """
        if not (counted or self.runs_a_day.allows(1)):
            raise QuotaExceeded(
                "the tenant has begun as many runs today as it may; the next day begins at 00:00 UTC",
                code="run_quota",
                limit=self.runs_a_day.most,
            )
        self.check_tokens()

    def check_tokens(self) -> None:
        """Check that tokens may be spent today. Raises: QuotaExceeded (code `token_quota`)."""
        if not self.tokens_a_day.allows(1):
            raise QuotaExceeded(
                "the tenant has spent as many tokens today as it may; the next day begins at 00:00 UTC",
                code="token_quota",
                limit=self.tokens_a_day.most,
            )


def asking(tenant_id: str, now_ms: int) -> Statement:
    """Return the statement whose only row `quotas_in` takes."""
    return _OF_TENANT, (tenant_id, now_ms // DAY_MS)


def quotas_in(row: Row) -> TenantQuotas:
    """Return the quotas in the row of `asking`.

    Raises: NotFound (code `unknown_tenant`) for a tenant that was erased and not registered again. Who asks may not know of
    it yet: an isolate remembers a tenant for a minute, and what an object begins then would stay.
    """
    if row["erased"]:
        raise NotFound("the tenant was erased", code="unknown_tenant")
    return TenantQuotas(
        Quota(row["memories"], int(row["held"])),
        Quota(row["runs_a_day"], int(row["runs"])),
        Quota(row["tokens_a_day"], int(row["tokens"])),
    )


async def quotas_of(sql: Sql, tenant_id: str, now_ms: int) -> TenantQuotas:
    """Return the quotas that hold for a tenant. Raises: as `quotas_in`; Unavailable."""
    text, values = asking(tenant_id, now_ms)
    return quotas_in((await sql.run(text, *values)).rows[0])


async def numbers_of(sql: Sql, place: str) -> dict[str, int | None]:
    """Return the numbers that are set for a tenant, or for `EVERY_TENANT`. Raises: Unavailable."""
    rows = (await sql.run(_NUMBERS, place)).rows
    return {name: rows[0][name] if rows else None for name in _LIMITS}


async def set_numbers(sql: Sql, place: str, numbers: Mapping[str, int | None]) -> None:
    """Set the numbers of a tenant, or of `EVERY_TENANT`; None takes one away, and absent ones stay. Idempotent."""
    changes: list[Statement] = [(_SET[name], (number, place)) for name, number in numbers.items()]
    if changes:
        await sql.batch([(_ADD, (place,)), *changes])
