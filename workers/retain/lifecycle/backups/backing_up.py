"""Backups: the pages of a tenant's export, kept in the object store.

A page is written to the store before the job's row says so, and the same page again after a crash. While something of the
tenant is being erased, its backup waits: the erasure also goes through the pages that are there (`erasure/backups.py`). So a
worker that was slower than its lease writes nothing of what it has read.
"""

from __future__ import annotations

from collections.abc import Sequence

from retain.errors import RetainError
from retain.lifecycle.backups.jobs import BackupJob, BackupJobs
from retain.lifecycle.backups.objects import FORMAT, BackupObjects, Manifest
from retain.lifecycle.export import Page, export_page
from retain.lifecycle.stores import Stores
from retain.retention import DAY_MS

PAGES_PER_CALL = 20
"""Pages that one call writes: each takes up to 40 calls of D1, KV or R2, and an invocation has 1,000."""
REMOVED_PAGES = 200
"""Most pages that one call removes of a backup that is too old."""
LISTED_TENANTS = 20
"""Tenants whose backups one call lists, to find those that are too old and that D1 has no row of."""
DAILY_MS = 20 * 3_600_000
"""How old a tenant's newest backup is before the daily work makes another one."""
_END = "."

_DUE = """
SELECT t.tenant_id, MAX(COALESCE(b.started_at_ms, 0)) AS last_at_ms FROM tenants t
LEFT JOIN backup_jobs b ON b.tenant_id = t.tenant_id AND b.kind = 'backup'
WHERE NOT EXISTS (SELECT 1 FROM eval_scratches s WHERE s.scratch_id = t.tenant_id)
  AND NOT EXISTS (SELECT 1 FROM erasure_receipts e WHERE e.tenant_id = t.tenant_id AND e.state = 'running')
GROUP BY t.tenant_id HAVING last_at_ms <= ? ORDER BY last_at_ms, t.tenant_id LIMIT ?
"""
_OLD = """
SELECT job_id, tenant_id, kind FROM backup_jobs WHERE started_at_ms < ? AND state = 'completed'
ORDER BY started_at_ms LIMIT ?
"""
# Some of the tenants, others each day, until all had their turn.
_SOME = """
SELECT tenant_id FROM tenants ORDER BY tenant_id
LIMIT ?1 OFFSET ?1 * (?2 % MAX(1, ((SELECT COUNT(*) FROM tenants) + ?1 - 1) / ?1))
"""
_AGE = "UPDATE backup_jobs SET started_at_ms = 0 WHERE job_id = ?"
_FORGET = "DELETE FROM backup_jobs WHERE job_id = ?"


class Backups:
    """The backups of every tenant. kept_days: how long one is kept, fewer than the ids of erased users are."""

    def __init__(self, stores: Stores, kept_days: int) -> None:
        self._stores = stores
        self._jobs = BackupJobs(stores)
        self._kept_ms = kept_days * DAY_MS

    def of(self, tenant_id: str) -> BackupObjects:
        """Return the objects of a tenant's backups."""
        return BackupObjects(self._stores.objects, tenant_id)

    async def advance(self, tenant_id: str) -> BackupJob:
        """Start a backup of the tenant or continue the open one, for up to 20 pages; return its state.

        Raises: Conflict (code `erasure_running`); what stopped it, with the job resumable.
        """
        return await self.resume(await self._jobs.opened(tenant_id, "backup", {}))

    async def resume(self, job: BackupJob) -> BackupJob:
        """Continue a backup for up to 20 pages. Raises: what stopped it, with the job resumable."""
        await self._jobs.refuse_while_erasing(job.tenant_id)
        taken = await self._jobs.take(job)
        if taken is None:
            return await self._jobs.get(job.tenant_id, job.job_id)
        job = taken
        try:
            for _ in range(PAGES_PER_CALL):
                if job.cursor == _END:
                    break
                page = await export_page(self._stores, job.tenant_id, job.cursor)
                held = await self._jobs.hold(job)
                if held is None:
                    break
                job = held
                moved = await self._write_page(job, page)
                if moved is None:
                    break
                job = moved
            if job.cursor == _END:
                await self._complete(job)
            await self._jobs.release(job)
        except RetainError as error:
            await self._jobs.fail(job, error.code)
            raise
        return await self._jobs.get(job.tenant_id, job.job_id)

    async def _write_page(self, job: BackupJob, page: Page) -> BackupJob | None:
        """Write the next page; return the job as it is then, None if an erasure or another worker came between."""
        objects = self.of(job.tenant_id)
        await objects.put_page(job.job_id, job.pages, page.text)
        counts = {
            "lines": job.counts.get("lines", 0) + len(page.lines) - 1,
            "bytes": job.counts.get("bytes", 0) + len(page.text.encode()),
        }
        moved = await self._jobs.move(job, page.cursor or _END, counts)
        if moved is None and not await self._jobs.overtaken(job):
            await objects.remove_page(job.job_id, job.pages)
        return moved

    async def _complete(self, job: BackupJob) -> None:
        objects, now = self.of(job.tenant_id), self._stores.clock()
        lines, size = job.counts.get("lines", 0), job.counts.get("bytes", 0)
        await objects.complete(
            Manifest(FORMAT, job.job_id, job.tenant_id, job.started_at_ms, now, job.pages, lines, size)
        )
        if not await self._jobs.complete(job) and not await self._jobs.overtaken(job):
            await objects.withdraw(job.job_id)

    async def manifests(self, tenant_id: str) -> list[Manifest]:
        """Return the tenant's complete backups that are not too old, oldest first."""
        oldest = self._stores.clock() - self._kept_ms
        return [one for one in await self.of(tenant_id).all() if one.began_at_ms >= oldest]

    async def remove(self, tenant_id: str, backup_id: str) -> None:
        """Remove a backup; of a large one the daily work removes the rest of the pages.

        Raises: InvalidInput; NotFound (code `no_such_backup`).
        """
        await self.of(tenant_id).get(backup_id)
        gone = await self.of(tenant_id).remove(backup_id, limit=REMOVED_PAGES)
        await self._stores.sql.run(_FORGET if gone else _AGE, backup_id)

    async def prune(self, limit: int) -> int:
        """Remove backups that are too old, and the rows of as old restores; return how many. Bounded.

        Those that D1 does not know, as after the loss of the database, are found by listing the backups of some tenants.
        """
        rows = (await self._stores.sql.run(_OLD, self._stores.clock() - self._kept_ms, limit)).rows
        for row in rows:
            of_backup = row["kind"] == "backup"
            if not of_backup or await self.of(row["tenant_id"]).remove(row["job_id"], limit=REMOVED_PAGES):
                await self._stores.sql.run(_FORGET, row["job_id"])
        return len(rows) + await self._prune_unknown(limit - len(rows))

    async def _prune_unknown(self, limit: int) -> int:
        """Remove up to `limit` backups that are too old, by what the object store has; return how many."""
        now = self._stores.clock()
        tried = 0
        for row in (await self._stores.sql.run(_SOME, LISTED_TENANTS, now // DAY_MS)).rows if limit else ():
            objects = self.of(row["tenant_id"])
            for backup_id in (await objects.made_before(now - self._kept_ms))[: limit - tried]:
                await objects.wear_away(backup_id, limit=REMOVED_PAGES)
                tried += 1
        return tried

    async def due(self, limit: int) -> Sequence[str]:
        """Return the tenants without a backup of the last 20 hours, the one with the oldest first.

        A tenant of which something is being erased is not among them.
        """
        rows = (await self._stores.sql.run(_DUE, self._stores.clock() - DAILY_MS, limit)).rows
        return [row["tenant_id"] for row in rows]
