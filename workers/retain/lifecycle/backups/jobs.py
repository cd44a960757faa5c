"""The jobs of backups and restores in D1. A tenant has at most one open job of each kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from retain.errors import Conflict, NotFound
from retain.errors.codes import Code, ForeignCode
from retain.identifiers import check_id, new_id
from retain.jobs import LEASE_MS, Leases, noted
from retain.json_text import read_own_json
from retain.ledgers.errors import Trouble, park, settle
from retain.lifecycle.stores import Stores
from retain.ports import Row, Statement
from retain.shards.place import in_tenant

JobKind = Literal["backup", "restore"]

_START = """
INSERT INTO backup_jobs (job_id, tenant_id, kind, state, request, started_at_ms, updated_at_ms)
VALUES (?, ?, ?, 'running', ?, ?, ?) ON CONFLICT DO NOTHING
"""
_OPEN = "SELECT * FROM backup_jobs WHERE tenant_id = ? AND kind = ? AND state = 'running'"
_JOB = "SELECT * FROM backup_jobs WHERE job_id = ? AND tenant_id = ?"
_ERASING = "SELECT 1 FROM erasure_receipts WHERE tenant_id = ? AND state = 'running' LIMIT 1"
_NOT_ERASING = """NOT EXISTS (SELECT 1 FROM erasure_receipts e WHERE e.tenant_id = backup_jobs.tenant_id
  AND e.state = 'running')"""
_OWN = f"job_id = ?1 AND state = 'running' AND lease_until_ms = ?2 AND {_NOT_ERASING}"
_HELD = f"{_OWN} AND lease_until_ms > ?3"
"""After its lease an erasure does not wait for the worker any more."""
_HOLD = f"UPDATE backup_jobs SET lease_until_ms = ?4 WHERE {_HELD} RETURNING job_id"
# What a restore wrote was guarded, and may have taken longer than the lease.
_MOVE = f"""
UPDATE backup_jobs SET cursor = ?5, pages = pages + 1, counts = ?6, error = NULL, lease_until_ms = ?4, updated_at_ms = ?3
WHERE {_OWN} AND (kind = 'restore' OR lease_until_ms > ?3) RETURNING job_id
"""
_COMPLETE = f"""
UPDATE backup_jobs SET state = 'completed', completed_at_ms = ?3, updated_at_ms = ?3, error = NULL, lease_until_ms = 0
WHERE {_OWN} RETURNING job_id
"""
# A job without anything is refused, and the transaction with it.
_STILL_HELD = f"INSERT INTO backup_jobs (job_id) SELECT NULL WHERE NOT EXISTS (SELECT 1 FROM backup_jobs WHERE {_HELD})"
_NOTE = "UPDATE backup_jobs SET error = ?4, updated_at_ms = ?3, lease_until_ms = 0 WHERE job_id = ?1 AND lease_until_ms = ?2"
_ABANDON = "DELETE FROM backup_jobs WHERE job_id = ? AND state = 'running'"
_ABANDON_STOPPED = f"{_ABANDON} AND error IS NOT NULL AND lease_until_ms <= ? RETURNING job_id"
_RELEASE = "UPDATE backup_jobs SET lease_until_ms = 0 WHERE job_id = ? AND lease_until_ms = ?"
_ALL_OPEN = """
SELECT * FROM backup_jobs WHERE state = 'running' AND NOT EXISTS (SELECT 1 FROM erasure_receipts e
  WHERE e.state = 'running' AND e.tenant_id IN (backup_jobs.tenant_id, backup_jobs.request ->> '$.from'))
ORDER BY updated_at_ms, job_id LIMIT ?
"""
_LEASES = Leases("backup_jobs", "job_id")


@dataclass(frozen=True, slots=True)
class BackupJob:
    """A backup or a restore. pages: written or restored so far. counts: how much, by what. error: what stopped it.

    lease_until_ms: until when a worker has it, which also tells workers apart.
    """

    job_id: str
    tenant_id: str
    kind: JobKind
    state: str
    request: Mapping[str, Any]
    cursor: str | None
    pages: int
    counts: Mapping[str, int]
    error: str | None
    lease_until_ms: int
    started_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None

    def to_json(self) -> Mapping[str, object]:
        """Return the job as HTTP answers have it."""
        return {name: getattr(self, name) for name in self.__slots__ if name not in ("cursor", "lease_until_ms")}


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

        Each is asked for where it lives. Raises: Conflict (code `erasure_running`); Unavailable.
        """
        for tenant_id in dict.fromkeys(tenants):
            with in_tenant(tenant_id):
                erasing = await self._sql.run(_ERASING, tenant_id)
            if erasing.rows:
                raise Conflict(
                    "an erasure of the tenant is running; ask again when it is complete", code="erasure_running"
                )

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

    async def take(self, job: BackupJob) -> BackupJob | None:
        """Take the job's lease; return the job as it is then, None when another worker has it, or it is completed."""
        now = self._clock()
        if not await _LEASES.take(self._sql, job.tenant_id, job.job_id, now):
            return None
        taken = await self.get(job.tenant_id, job.job_id)
        return taken if taken.lease_until_ms == now + LEASE_MS else None

    async def release(self, job: BackupJob) -> None:
        """Give the lease back, if the worker still has it."""
        await self._sql.run(_RELEASE, job.job_id, job.lease_until_ms)

    async def hold(self, job: BackupJob) -> BackupJob | None:
        """Renew the lease before what was read is written; return the job, None if an erasure or another worker came."""
        now = self._clock()
        until = now + LEASE_MS
        held = await self._sql.run(_HOLD, job.job_id, job.lease_until_ms, now, until)
        return replace(job, lease_until_ms=until) if held.rows else None

    def still_held(self, job: BackupJob) -> Statement:
        """Return the statement that fails its batch if an erasure or another worker came."""
        return _STILL_HELD, (job.job_id, job.lease_until_ms, self._clock())

    async def move(self, job: BackupJob, cursor: str, counts: Mapping[str, int]) -> BackupJob | None:
        """Note that a page is done; return the job, None if an erasure or another worker came."""
        now = self._clock()
        until = now + LEASE_MS
        moved = await self._sql.run(_MOVE, job.job_id, job.lease_until_ms, now, until, cursor, json.dumps(counts))
        if not moved.rows:
            return None
        return replace(job, cursor=cursor, pages=job.pages + 1, counts=counts, error=None, lease_until_ms=until)

    async def overtaken(self, job: BackupJob) -> bool:
        """Return whether another worker has noted the job's next page, or completed the job."""
        rows = (await self._sql.run(_JOB, job.job_id, job.tenant_id)).rows
        return bool(rows) and (int(rows[0]["pages"]) > job.pages or rows[0]["state"] == "completed")

    async def complete(self, job: BackupJob) -> bool:
        """Complete the job; return False if an erasure or another worker came, or the job is gone."""
        now = self._clock()
        done = bool((await self._sql.run(_COMPLETE, job.job_id, job.lease_until_ms, now)).rows)
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
        """Note what stopped the job for now, unless another worker has it, and park it in the error ledger."""
        now = self._clock()
        note = self._sql.run(_NOTE, job.job_id, job.lease_until_ms, now, code)
        await noted(f"a {job.kind}", job.job_id, code, note)
        await park(self._sql, Trouble("backup", job.job_id, code, now, job.tenant_id))


def _job(row: Row) -> BackupJob:
    shown = {name: row[name] for name in BackupJob.__slots__}
    return BackupJob(**{**shown, "request": read_own_json(row["request"]), "counts": read_own_json(row["counts"])})
