"""What is still to be done for a tenant: work that has a state of its own in D1 and is retried, unlike what was given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from retain.ports import Sql, Statement

DebtKind = Literal["vectors", "deliveries", "ingests", "erasures", "reindexing", "backups", "restores", "evaluations"]
MOST_COUNTED = 10_000
"""Debts of a kind are counted up to this number, and open ones are sought among so many of a tenant's newest jobs."""
_OPEN_JOBS = """
SELECT at_ms FROM (
  SELECT created_at_ms AS at_ms, state FROM {table} WHERE tenant_id = ? ORDER BY {newest} DESC LIMIT {most})
WHERE state <> 'completed'
"""
_JOBS = "SELECT started_at_ms AS at_ms FROM backup_jobs WHERE tenant_id = ? AND kind = '{kind}' AND state = 'running'"
_DELIVERIES = """
SELECT at_ms FROM webhook_deliveries WHERE tenant_id = ? AND status <> 'delivered' AND status = 'pending'
"""
_WAITING: dict[DebtKind, str] = {
    "vectors": "SELECT at_ms FROM memory_outbox WHERE tenant_id = ? AND state = 'owed'",
    "deliveries": _DELIVERIES,
    "ingests": _OPEN_JOBS.format(table="ingest_jobs", newest="created_at_ms", most=MOST_COUNTED),
    "erasures": "SELECT started_at_ms AS at_ms FROM erasure_receipts WHERE tenant_id = ? AND state = 'running'",
    "reindexing": "SELECT started_at_ms AS at_ms FROM index_jobs WHERE tenant_id = ? AND state <> 'completed'",
    "backups": _JOBS.format(kind="backup"),
    "restores": _JOBS.format(kind="restore"),
    "evaluations": _OPEN_JOBS.format(table="eval_runs", newest="run_id", most=MOST_COUNTED),
}


@dataclass(frozen=True, slots=True)
class Debt:
    """How much of a kind is still to be done. count: up to `MOST_COUNTED`. oldest_at_ms: of those; None without any."""

    kind: DebtKind
    count: int
    oldest_at_ms: int | None


async def debts_of(sql: Sql, tenant_id: str) -> list[Debt]:
    """Return what is owed for a tenant, a row for each kind. One round trip. Raises: Unavailable."""
    results = await sql.batch([_counted(waiting, tenant_id) for waiting in _WAITING.values()])
    rows = [result.rows[0] for result in results]
    return [Debt(kind, int(row["count"]), row["oldest"]) for kind, row in zip(_WAITING, rows, strict=True)]


def _counted(waiting: str, tenant_id: str) -> Statement:
    limited = f"SELECT COUNT(*) AS count, MIN(at_ms) AS oldest FROM ({waiting} LIMIT {MOST_COUNTED})"  # noqa: S608
    return limited, (tenant_id,)
