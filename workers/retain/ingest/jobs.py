"""Ingest jobs: the progress and outcome of a request, as a row of D1.

A job is `running` until everything is done, then `completed`; it is `failed` when it stopped at an error. `running` and
`failed` jobs continue when the request is repeated, and automatically with the daily cron. Whoever works on a job holds
its lease. Two may work at once when a lease expires too early; nothing is stored twice by that.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Literal

from retain.errors import InvalidInput, NotFound, RetainError, Unavailable
from retain.errors.codes import ForeignCode, UnavailableCode
from retain.ingest.messages import Rejection
from retain.jobs import LEASE_MS
from retain.json_text import read_own_json
from retain.memory.scope import Scope
from retain.ports import Clock, Row, Sql, SqlResult, Statement
from retain.retention import TEXT_KEPT_MS, RetentionRule

State = Literal["running", "completed", "failed"]
Stage = Literal["storing", "extraction", "learning"]

MAX_ATTEMPTS = 5
"""Attempts without progress after which the cron no longer continues a job."""

JOB_ID = re.compile(r"[0-9a-f]{32}")
_LEASE = """
UPDATE ingest_jobs SET state = 'running', error = NULL, attempts = attempts + 1, lease_until_ms = ?, updated_at_ms = ?
WHERE job_id = ? AND tenant_id = ? AND scope_id = ? AND state <> 'completed' AND lease_until_ms <= ? RETURNING *
"""
_ADVANCED = """
UPDATE ingest_jobs SET
  stored = (SELECT COUNT(*) FROM ingest_messages m WHERE m.job_id = ingest_jobs.job_id AND m.state <> 'received'),
  extracted = (SELECT COALESCE(SUM(m.fact_count), 0) FROM ingest_messages m
               WHERE m.job_id = ingest_jobs.job_id AND m.state = 'learned'),
  attempts = 0, lease_until_ms = ?, updated_at_ms = ?
WHERE job_id = ?
"""
_ALSO_STORED = """
UPDATE ingest_jobs SET stored = stored + ?, extracted = extracted + ?, attempts = 0, lease_until_ms = ?, updated_at_ms = ?
WHERE job_id = ?
"""
"""A job that is completed counts again."""
_ALL_WAITED = "INSERT INTO ingest_jobs (job_id) SELECT NULL WHERE changes() <> ?"
"""A job without an id is refused, and the transaction with it."""
_QUEUE = (
    "UPDATE ingest_jobs SET lease_until_ms = 0, attempts = 0, updated_at_ms = ? WHERE job_id = ? AND state = 'running'"
)
_COMPLETE = """
UPDATE ingest_jobs SET state = 'completed', error = NULL,
  (stored, extracted) = (SELECT COUNT(*), COALESCE(SUM(m.fact_count), 0) FROM ingest_messages m WHERE m.job_id = ?2),
  lease_until_ms = 0, updated_at_ms = ?1, completed_at_ms = ?1
WHERE job_id = ?2 AND state = 'running'
  AND NOT EXISTS (SELECT 1 FROM ingest_messages m WHERE m.job_id = ?2 AND m.state <> 'learned')
"""
_FAIL = """
UPDATE ingest_jobs SET state = 'failed', error = ?, lease_until_ms = 0, updated_at_ms = ?
WHERE job_id = ? AND state <> 'completed'
"""
_OPEN = """
SELECT * FROM ingest_jobs WHERE state <> 'completed' AND lease_until_ms <= ? AND attempts < ?
ORDER BY updated_at_ms, job_id LIMIT ?
"""
# The first condition is that of an index.
_GIVE_UP = """
UPDATE ingest_jobs SET state = 'failed', error = ?, updated_at_ms = ?
WHERE state <> 'completed' AND state = 'running' AND lease_until_ms <= ? AND attempts >= ? RETURNING *
"""
_OLD_JOBS = """
SELECT job_id FROM ingest_jobs WHERE state = 'completed' AND completed_at_ms < ? ORDER BY completed_at_ms, job_id LIMIT ?
"""
_GIVEN_UP = """
SELECT job_id FROM ingest_jobs WHERE state <> 'completed' AND updated_at_ms < ? ORDER BY updated_at_ms, job_id LIMIT ?
"""
JOB_RULES = (
    RetentionRule(
        "ingest_jobs",
        TEXT_KEPT_MS,
        (
            # The positions of the messages stay: without them, the same request would store them again.
            f"UPDATE ingest_messages SET job_id = NULL, message_index = NULL WHERE job_id IN ({_OLD_JOBS})",
            f"DELETE FROM ingest_jobs WHERE job_id IN ({_OLD_JOBS}) RETURNING tenant_id",
        ),
        100,
    ),
    RetentionRule(
        "waiting_ingests",
        TEXT_KEPT_MS,
        (
            # A message that was not stored loses its position, too: the same request stores it after all.
            f"DELETE FROM ingest_messages WHERE state = 'received' AND job_id IN ({_GIVEN_UP})",
            "UPDATE ingest_messages SET state = 'learned', facts = NULL, role = NULL, job_id = NULL, message_index = NULL"
            f" WHERE job_id IN ({_GIVEN_UP})",
            f"DELETE FROM ingest_jobs WHERE job_id IN ({_GIVEN_UP}) RETURNING tenant_id",
        ),
        20,
    ),
)
"""What jobs stored stays, and so do the positions of their messages. What was not stored until long after the last attempt
is removed: its text, and facts that were not stored."""


@dataclass(frozen=True, slots=True)
class IngestJob:
    """The state of a job. lease_until_ms: until then somebody works on it."""

    job_id: str
    scope: Scope
    conversation: str
    state: State
    received: int
    stored: int
    duplicate: int
    extracted: int
    rejections: tuple[Rejection, ...]
    error: dict[str, object] | None
    lease_until_ms: int
    created_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None

    def to_json(self) -> dict[str, object]:
        """Return the job as HTTP answers have it."""
        return {
            "job_id": self.job_id,
            "state": self.state,
            "conversation": self.conversation,
            "agent_type": self.scope.agent_type,
            "house": None if self.scope.agent_type else self.scope.house,
            "user_id": self.scope.user_id,
            "received": self.received,
            "stored": self.stored,
            "duplicate": self.duplicate,
            "rejected": len(self.rejections),
            "extracted": self.extracted,
            "rejections": [rejection.to_json() for rejection in self.rejections],
            "error": self.error,
            "created_at_ms": self.created_at_ms,
            "updated_at_ms": self.updated_at_ms,
            "completed_at_ms": self.completed_at_ms,
        }


@dataclass(frozen=True, slots=True)
class Taken:
    """A request's messages on arrival: how many there are, how many are known, and which cannot be stored."""

    received: int
    duplicate: int
    rejections: tuple[Rejection, ...]


class IngestFailed(Unavailable):
    """Send the request again: its job stopped at an error, and resumes where it stopped.

    details: `job_id`; `stage`, `cause` (a code) and `reason` of the error; `stored`, how many messages are stored.
    """

    code: UnavailableCode | ForeignCode = "ingest_failed"

    def __init__(self, job: IngestJob) -> None:
        stage, cause, reason = (str((job.error or {}).get(name)) for name in ("stage", "code", "message"))
        super().__init__(
            "the ingest stopped at an error; the same request sent again resumes it",
            job_id=job.job_id,
            stored=job.stored,
            stage=stage,
            cause=cause,
            reason=reason,
        )


def job_id_of(scope: Scope, conversation: str, messages_digest: str) -> str:
    """Return the id of a request's job: a digest of tenant, scope and request, 32 hexadecimal digits."""
    request = json.dumps([scope.tenant_id, scope.scope_id, conversation, messages_digest])
    return hashlib.sha256(request.encode()).hexdigest()[:32]


def check_job_id(value: str) -> str:
    """Return a job's id unchanged. Raises: InvalidInput (code `invalid_job_id`)."""
    if JOB_ID.fullmatch(value) is None:
        raise InvalidInput("a job's id must have 32 hexadecimal digits", code="invalid_job_id")
    return value


def no_such_job() -> NotFound:
    """Return the error for a job that does not exist."""
    return NotFound("there is no such job", code="no_such_job")


def finding(tenant_id: str, job_id: str) -> Statement:
    """Return the statement that reads a job of the tenant, for `job_in`."""
    return "SELECT * FROM ingest_jobs WHERE job_id = ? AND tenant_id = ?", (job_id, tenant_id)


def all_waited(messages: int) -> Statement:
    """Return the statement that refuses its transaction unless the statement before it changed so many messages.

    Else somebody else has stored some of them by now, or they were erased. Raises, when it runs: ConstraintViolated.
    """
    return _ALL_WAITED, (messages,)


def job_in(read: SqlResult) -> IngestJob | None:
    """Return the job that was read, None if there is none."""
    return _job(read.rows[0]) if read.rows else None


class Jobs:
    """The jobs of a deployment."""

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock

    async def find(self, tenant_id: str, job_id: str) -> IngestJob | None:
        """Return a job of the tenant, None if it does not exist."""
        text, values = finding(tenant_id, job_id)
        return job_in(await self._sql.run(text, *values))

    async def get(self, tenant_id: str, job_id: str) -> IngestJob:
        """Return a job of the tenant. Raises: InvalidInput; NotFound (code `no_such_job`)."""
        job = await self.find(tenant_id, check_job_id(job_id))
        if job is None:
            raise no_such_job()
        return job

    def opened(self, job_id: str, scope: Scope, conversation: str, taken: Taken, *, leased: bool) -> Statement:
        """Return the statement that opens a job. Raises, when it runs: Conflict when it is open already.

        leased: whether whoever opens it has its lease.
        """
        now = self._clock()
        return (
            "INSERT INTO ingest_jobs (job_id, tenant_id, scope_id, agent_type, house, user_id, conversation, state,"
            " received, duplicate, rejections, created_at_ms, updated_at_ms, attempts, lease_until_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?)",
            (
                job_id,
                scope.tenant_id,
                scope.scope_id,
                scope.agent_type,
                scope.house,
                scope.user_id,
                conversation,
                taken.received,
                taken.duplicate,
                json.dumps([rejection.to_json() for rejection in taken.rejections]),
                now,
                now,
                int(leased),
                now + LEASE_MS if leased else 0,
            ),
        )

    def leasing(self, scope: Scope, job_id: str) -> Statement:
        """Return the statement that takes a job's lease, if the job is the scope's; its row is the job then (`job_in`)."""
        now = self._clock()
        return _LEASE, (now + LEASE_MS, now, job_id, scope.tenant_id, scope.scope_id, now)

    async def lease(self, job: IngestJob) -> bool:
        """Take the job's lease; return False when somebody else works on the job, or it is done."""
        text, values = self.leasing(job.scope, job.job_id)
        return bool((await self._sql.run(text, *values)).rows)

    def advanced(self, job_id: str) -> Statement:
        """Return the statement that recounts progress from the messages and extends the lease."""
        now = self._clock()
        return _ADVANCED, (now + LEASE_MS, now, job_id)

    def also_stored(self, job_id: str, messages: int, facts: int) -> Statement:
        """Return the statement that adds so many messages, with their facts, to the progress and extends the lease."""
        now = self._clock()
        return _ALSO_STORED, (messages, facts, now + LEASE_MS, now, job_id)

    def completed(self, job_id: str) -> Statement:
        """Return the statement that marks the job as completed, if all of it is done."""
        return _COMPLETE, (self._clock(), job_id)

    async def complete(self, job: IngestJob) -> bool:
        """Mark the job as completed, if all of it is done; return whether it was marked."""
        text, values = self.completed(job.job_id)
        return bool((await self._sql.run(text, *values)).changes)

    async def queue(self, job: IngestJob) -> None:
        """Give the lease up, so that the job is continued by whoever comes next. It does not count as a failed attempt."""
        await self._sql.run(_QUEUE, self._clock(), job.job_id)

    async def fail(self, job: IngestJob, stage: Stage, error: RetainError) -> bool:
        """Record that the job stopped at an error; return False if it is completed or erased by now."""
        stopped = json.dumps({"stage": stage, "code": error.code, "message": error.message})
        return bool((await self._sql.run(_FAIL, stopped, self._clock(), job.job_id)).changes)

    async def interrupted(self, limit: int) -> list[IngestJob]:
        """Return jobs that are not done and that nobody works on, the one that was tried least recently first."""
        rows = (await self._sql.run(_OPEN, self._clock(), MAX_ATTEMPTS, limit)).rows
        return [_job(row) for row in rows]

    async def give_up(self) -> list[IngestJob]:
        """Let the jobs fail that were interrupted too often without progress; return them."""
        now = self._clock()
        error = json.dumps({"stage": "storing", "code": "interrupted", "message": "the job was interrupted too often"})
        return [_job(row) for row in (await self._sql.run(_GIVE_UP, error, now, now, MAX_ATTEMPTS)).rows]


def _job(row: Row) -> IngestJob:
    done = row["completed_at_ms"]
    return IngestJob(
        job_id=row["job_id"],
        scope=Scope(row["tenant_id"], row["agent_type"], row["house"], user_id=row["user_id"]),
        conversation=row["conversation"],
        state=row["state"],
        received=int(row["received"]),
        stored=int(row["stored"]),
        duplicate=int(row["duplicate"]),
        extracted=int(row["extracted"]),
        rejections=tuple(Rejection(**rejection) for rejection in read_own_json(row["rejections"])),
        error=None if row["error"] is None else read_own_json(row["error"]),
        lease_until_ms=int(row["lease_until_ms"]),
        created_at_ms=int(row["created_at_ms"]),
        updated_at_ms=int(row["updated_at_ms"]),
        completed_at_ms=None if done is None else int(done),
    )
