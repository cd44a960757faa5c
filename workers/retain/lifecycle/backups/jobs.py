"""The jobs of backups and restores in D1. A tenant has at most one open job of each kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from retain.errors import Conflict, NotFound
from retain.errors.codes import Code, ForeignCode
from retain.identifiers import check_id, new_id
from retain.jobs import LEASE_MS, Leases, noted
from retain.json_text import read_own_json
from retain.ledgers.errors import Trouble, park, settle
from retain.lifecycle.stores import Stores
from retain.ports import Row, Statement

JobKind = Literal["backup", "restore"]

_START = """
INSERT INTO backup_jobs (job_id, tenant_id, kind, state, request, started_at_ms, updated_at_ms)
VALUES (?, ?, ?, 'running', ?, ?, ?) ON CONFLICT DO NOTHING
"""
_OPEN = "SELECT * FROM backup_jobs WHERE tenant_id = ? AND kind = ? AND state = 'running'"
_JOB = "SELECT * FROM backup_jobs WHERE job_id = ? AND tenant_id = ?"
_ERASING = """
SELECT 1 FROM erasure_receipts WHERE tenant_id IN (SELECT value FROM json_each(?)) AND state = 'running' LIMIT 1
"""
_NOT_ERASING = """NOT EXISTS (SELECT 1 FROM erasure_receipts e WHERE e.tenant_id = backup_jobs.tenant_id
  AND e.state = 'running')"""
_MOVE = f"""
UPDATE backup_jobs SET cursor = ?, pages = pages + 1, counts = ?, error = NULL, lease_until_ms = ?, updated_at_ms = ?
WHERE job_id = ? AND state = 'running' AND pages = ? AND {_NOT_ERASING} RETURNING job_id
"""
_COMPLETE = f"""
UPDATE backup_jobs SET state = 'completed', completed_at_ms = ?, updated_at_ms = ?, error = NULL, lease_until_ms = 0
WHERE job_id = ? AND state = 'running' AND {_NOT_ERASING} RETURNING job_id
"""
_NOTE = "UPDATE backup_jobs SET error = ?, updated_at_ms = ?, lease_until_ms = 0 WHERE job_id = ? AND state = 'running'"
_ABANDON = "DELETE FROM backup_jobs WHERE job_id = ? AND state = 'running'"
_ABANDON_STOPPED = f"{_ABANDON} AND error IS NOT NULL AND lease_until_ms <= ? RETURNING job_id"
_RELEASE = "UPDATE backup_jobs SET lease_until_ms = 0 WHERE job_id = ?"
_ALL_OPEN = """
SELECT * FROM backup_jobs WHERE state = 'running' AND NOT EXISTS (SELECT 1 FROM erasure_receipts e
  WHERE e.state = 'running' AND e.tenant_id IN (backup_jobs.tenant_id, backup_jobs.request ->> '$.from'))
ORDER BY updated_at_ms, job_id LIMIT ?
"""
_LEASES = Leases("backup_jobs", "job_id")


@dataclass(frozen=True, slots=True)
class BackupJob:
    """A backup or a restore. pages: written or restored so far. counts: how much, by what. error: what stopped it."""

    job_id: str
    tenant_id: str
    kind: JobKind
    state: str
    request: Mapping[str, Any]
    cursor: str | None
    pages: int
    counts: Mapping[str, int]
    error: str | None
    started_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None

    def to_json(self) -> Mapping[str, object]:
        """Return the job as HTTP answers have it."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "cursor"}


class BackupJobs:
    """The jobs of all tenants."""

    def __init__(self, stores: Stores) -> None:
        self._sql = stores.sql
        self._clock = stores.clock

    async def opened(self, tenant_id: str, kind: JobKind, request: Mapping[str, object]) -> BackupJob:
        """Return the tenant's open job of a kind, or start one with this request.

        Raises: as `refuse_while_erasing`.
        """
        await self.refuse_while_erasing(tenant_id)
        now = self._clock()
        start: Statement = (_START, (new_id(), tenant_id, kind, json.dumps(request), now, now))
        return _job((await self._sql.batch([start, (_OPEN, (tenant_id, kind))]))[1].rows[0])

    async def refuse_while_erasing(self, *tenants: str) -> None:
        """Refuse work while something of a tenant is being erased: it would keep, or bring back, what is to go.

        Raises: Conflict (code `erasure_running`).
        """
        if (await self._sql.run(_ERASING, json.dumps(tenants))).rows:
            raise Conflict("an erasure of the tenant is running; ask again when it is complete", code="erasure_running")

    async def find_open(self, tenant_id: str, kind: JobKind) -> BackupJob | None:
        """Return the tenant's open job of a kind, or None."""
        rows = (await self._sql.run(_OPEN, tenant_id, kind)).rows
        return _job(rows[0]) if rows else None

    async def all_open(self, limit: int) -> list[BackupJob]:
        """Return open jobs, least recently updated first, without those that wait for an erasure."""
        return [_job(row) for row in (await self._sql.run(_ALL_OPEN, limit)).rows]

    async def get(self, tenant_id: str, job_id: str) -> BackupJob:
        """Return a job. Raises: InvalidInput; NotFound (code `no_such_job`)."""
        rows = (await self._sql.run(_JOB, check_id(job_id), tenant_id)).rows
        if not rows:
            raise NotFound("there is no such job", code="no_such_job")
        return _job(rows[0])

    async def take(self, job: BackupJob) -> bool:
        """Take the job's lease; return False when another worker has it, or the job is completed."""
        return await _LEASES.take(self._sql, job.tenant_id, job.job_id, self._clock())

    async def release(self, job: BackupJob) -> None:
        """Give the lease back."""
        await self._sql.run(_RELEASE, job.job_id)

    async def move(self, job: BackupJob, cursor: str, counts: Mapping[str, int]) -> bool:
        """Note that a page is done; return False if an erasure has begun, or another worker was faster."""
        now = self._clock()
        values = (cursor, json.dumps(counts), now + LEASE_MS, now, job.job_id, job.pages)
        return bool((await self._sql.run(_MOVE, *values)).rows)

    async def overtaken(self, job: BackupJob) -> bool:
        """Return whether another worker has noted the job's next page, or completed the job."""
        rows = (await self._sql.run(_JOB, job.job_id, job.tenant_id)).rows
        return bool(rows) and (int(rows[0]["pages"]) > job.pages or rows[0]["state"] == "completed")

    async def complete(self, job: BackupJob) -> bool:
        """Complete the job; return False if an erasure has begun, or the job is gone."""
        now = self._clock()
        done = bool((await self._sql.run(_COMPLETE, now, now, job.job_id)).rows)
        if done:
            await settle(self._sql, now, (job.tenant_id, "backup", job.job_id))
        return done

    async def abandon(self, job: BackupJob) -> None:
        """Remove an open job that can never be completed, with what is parked of it."""
        await self._sql.run(_ABANDON, job.job_id)
        await settle(self._sql, self._clock(), (job.tenant_id, "backup", job.job_id))

    async def abandon_stopped(self, job: BackupJob) -> None:
        """Remove an open job that stopped at an error and that no worker has in hand, with what is parked of it."""
        now = self._clock()
        if (await self._sql.run(_ABANDON_STOPPED, job.job_id, now)).rows:
            await settle(self._sql, now, (job.tenant_id, "backup", job.job_id))

    async def fail(self, job: BackupJob, code: Code | ForeignCode) -> None:
        """Note what stopped the job for now, and park it in the error ledger."""
        now = self._clock()
        await noted(f"a {job.kind}", job.job_id, code, self._sql.run(_NOTE, code, now, job.job_id))
        await park(self._sql, Trouble("backup", job.job_id, code, now, job.tenant_id))


def _job(row: Row) -> BackupJob:
    shown = {name: row[name] for name in BackupJob.__slots__}
    return BackupJob(**{**shown, "request": read_own_json(row["request"]), "counts": read_own_json(row["counts"])})
