"""Reindexing: rebuilds a tenant's search rows, full text and vectors from its records, while recall continues.

A job works in slices, in the order in which records were stored, and can be resumed after any failure. Until its turn, a
record keeps its old rows; if they are of another embedding model, it is found by words alone, since recall compares
vectors of one model only. The job completes in a mutation of the tenant that finds every record indexed for the model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from retain.errors import NotFound, RetainError, Unavailable
from retain.errors.codes import Code, ForeignCode
from retain.identifiers import check_id, new_id
from retain.jobs import noted
from retain.json_text import JsonObject
from retain.ledgers.errors import Trouble, park, settle
from retain.lifecycle.stores import Stores
from retain.lifecycle.surplus import remove_surplus
from retain.limits.vectorize import LAG_MS
from retain.memory.indexer import Indexer
from retain.memory.records.rows import record_of
from retain.ports import Row, Statement
from retain.tenants.history import Change, HistoryEntry, digest_of

SLICE_RECORDS = 50
"""Records that are embedded together."""
SLICES_PER_CALL = 4

_START = """
INSERT INTO index_jobs (job_id, tenant_id, model, state, cursor, done, refused, total, started_at_ms, updated_at_ms)
SELECT ?1, ?2, ?3, 'running', 0, 0, 0, (SELECT COUNT(*) FROM memory_records WHERE tenant_id = ?2), ?4, ?4
WHERE NOT EXISTS (SELECT 1 FROM index_jobs WHERE tenant_id = ?2 AND state <> 'completed')
"""
_RESUME = """
UPDATE index_jobs SET state = 'running', error = NULL, updated_at_ms = ?3,
  cursor = CASE WHEN model = ?2 AND refused = 0 THEN cursor ELSE 0 END,
  done = CASE WHEN model = ?2 AND refused = 0 THEN done ELSE 0 END,
  total = (SELECT COUNT(*) FROM memory_records WHERE tenant_id = ?1), refused = 0, model = ?2
WHERE tenant_id = ?1 AND state <> 'completed' AND (state = 'failed' OR model <> ?2)
"""
_OPEN = "SELECT * FROM index_jobs WHERE tenant_id = ? AND state <> 'completed'"
_JOB = "SELECT * FROM index_jobs WHERE job_id = ? AND tenant_id = ?"
_SLICE = """
SELECT r.*, o.state = 'sent' AND o.at_ms >= ? AS fresh, MAX(COALESCE(s.parts, 0), COALESCE(o.parts, 0)) AS parts
FROM memory_records r LEFT JOIN memory_search s ON s.number = r.number LEFT JOIN memory_outbox o ON o.record_id = r.id
WHERE r.tenant_id = ? AND r.number > ? ORDER BY r.number LIMIT ?
"""
_FIRST_UNINDEXED = """
SELECT MIN(r.number) AS number FROM memory_records r LEFT JOIN memory_search s ON s.number = r.number
WHERE r.tenant_id = ? AND (r.number > ? OR s.embedding_model IS NOT ?)
"""
_ADVANCE = """
UPDATE index_jobs SET cursor = ?, done = done + ?, refused = refused + ?, updated_at_ms = ?
WHERE job_id = ? AND state = 'running' AND cursor = ? AND model = ?
"""

_FAIL = "UPDATE index_jobs SET state = 'failed', error = ?, updated_at_ms = ? WHERE job_id = ? AND state = 'running'"


@dataclass(frozen=True, slots=True)
class IndexJob:
    """The progress of a reindexing. state: running, completed or failed. refused: records that could not be indexed."""

    job_id: str
    model: str
    state: str
    done: int
    refused: int
    total: int
    error: str | None
    started_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None

    def to_json(self) -> JsonObject:
        """Return the job as shown."""
        return {name: getattr(self, name) for name in self.__slots__}


class Reindexing:
    """Rebuilds tenants' indexes, each by one job at a time."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def advance(self, tenant_id: str) -> IndexJob:
        """Start a job or continue the open one, for up to 200 records; return its state.

        Call it until the job is completed. A failed job resumes at its cursor, or starts again if it refused records or
        if its model is not the configured one.
        Raises: what stopped it, with the job failed and resumable.
        """
        sql, now = self._stores.sql, self._stores.clock()
        indexer = self._stores.indexer()
        opened = await sql.batch(
            [
                (_START, (new_id(), tenant_id, indexer.model, now)),
                (_RESUME, (tenant_id, indexer.model, now)),
                (_OPEN, (tenant_id,)),
            ]
        )
        job_id: str = opened[-1].rows[0]["job_id"]
        try:
            for _ in range(SLICES_PER_CALL):
                row = (await sql.run(_JOB, job_id, tenant_id)).rows[0]
                if row["state"] != "running":
                    break
                await self._slice(indexer, tenant_id, row)
        except RetainError as error:
            await self._fail(tenant_id, job_id, error.code)
            raise
        job = await self.job(tenant_id, job_id)
        if job.state == "completed":
            await settle(sql, self._stores.clock(), (tenant_id, "reindexing", job_id))
        return job

    async def job(self, tenant_id: str, job_id: str) -> IndexJob:
        """Return the state of a job. Raises: InvalidInput; NotFound (code `no_such_job`)."""
        rows = (await self._stores.sql.run(_JOB, check_id(job_id), tenant_id)).rows
        if not rows:
            raise NotFound("there is no such job", code="no_such_job")
        return IndexJob(**{name: rows[0][name] for name in IndexJob.__slots__})

    async def open_tenants(self) -> list[str]:
        """Return up to 100 tenants whose job is not completed, least recently updated first."""
        rows = await self._stores.sql.run(
            "SELECT tenant_id FROM index_jobs WHERE state <> 'completed' ORDER BY updated_at_ms, tenant_id LIMIT 100"
        )
        return [row["tenant_id"] for row in rows.rows]

    async def _slice(self, indexer: Indexer, tenant_id: str, job: Row) -> None:
        sql, now = self._stores.sql, self._stores.clock()
        cursor = int(job["cursor"])
        rows = (await sql.run(_SLICE, now - LAG_MS, tenant_id, cursor, SLICE_RECORDS)).rows
        if not rows:
            await self._finish(tenant_id, job)
            return
        records = [record_of(row) for row in rows]
        fresh = frozenset(row["id"] for row in rows if row["fresh"])
        await sql.batch([indexer.owe(record, int(row["parts"])) for record, row in zip(records, rows, strict=True)])
        refused = 0
        try:
            await indexer.settle_all([record.id for record in records], still_fresh=fresh)
        except Unavailable:
            raise
        except RetainError:
            # At least one record cannot be indexed. Index the others; it stays owed, and the job cannot complete.
            worked = [await indexer.try_to_settle(record.id) for record in records]
            refused = worked.count(False)
        await sql.run(_ADVANCE, rows[-1]["number"], len(rows), refused, now, job["job_id"], cursor, job["model"])

    async def _finish(self, tenant_id: str, job: Row) -> None:
        """Complete the job if every record is indexed for its model; else return to the first that is not."""
        sql, clock = self._stores.sql, self._stores.clock
        job_id, model = job["job_id"], job["model"]
        if int(job["refused"]):
            await self._fail(tenant_id, job_id, "records_refused")
            return

        await remove_surplus(sql, tenant_id)

        async def decide() -> Change | None:
            first = (await sql.run(_FIRST_UNINDEXED, tenant_id, int(job["cursor"]), model)).rows[0]["number"]
            if first is not None:
                return None
            now = clock()
            content = json.dumps([job_id, model, int(job["done"]), now])
            statements: list[Statement] = [
                (
                    "UPDATE index_jobs SET state = 'completed', updated_at_ms = ?, completed_at_ms = ? WHERE job_id = ?",
                    (now, now, job_id),
                ),
            ]
            return Change(statements, [HistoryEntry("reindexed", job_id, digest_of(job_id, content))])

        if await self._stores.history().transact(tenant_id, decide):
            return
        first = (await sql.run(_FIRST_UNINDEXED, tenant_id, int(job["cursor"]), model)).rows[0]["number"]
        if first is not None:
            await sql.run(
                "UPDATE index_jobs SET cursor = ? WHERE job_id = ? AND state = 'running'", int(first) - 1, job_id
            )

    async def _fail(self, tenant_id: str, job_id: str, code: Code | ForeignCode) -> None:
        now = self._stores.clock()
        await noted("a reindexing", job_id, code, self._stores.sql.run(_FAIL, code, now, job_id))
        await park(self._stores.sql, Trouble("reindexing", job_id, code, now, tenant_id))
