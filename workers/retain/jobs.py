"""Jobs in D1: work in repeatable slices, continued by the next caller or by cron.

A job is a row that says what to do and how far it has got. Where a second worker would waste work, a lease excludes it;
where each slice is one transaction, the row's cursor or revision does.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from retain.errors import RetainError
from retain.errors.codes import Code, ForeignCode
from retain.ports import Sql, Statement

LEASE_MS = 120_000
"""How long a job stays reserved for its worker after the worker last made progress."""
CALLS_PER_JOB = 5
"""How often cron calls a job: each call does as much as one request does."""

Job = TypeVar("Job")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Continued:
    """What one call did to a job. state: the job's new state. more: whether another call can continue at once."""

    state: str
    more: bool


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases of a table of jobs, with the columns tenant_id, state, lease_until_ms and updated_at_ms.

    key: the column with the job's id. also: further SQL assignments to make when a lease is taken. ms: how long it lasts.
    """

    table: str
    key: str
    also: str = ""
    ms: int = LEASE_MS

    async def take(self, sql: Sql, tenant_id: str, job_id: str, now_ms: int) -> bool:
        """Take the lease of a job; return False when another worker has it, or the job is completed."""
        assignments = ", ".join(filter(None, (self.also, "lease_until_ms = ?", "updated_at_ms = ?")))
        statement = (
            f"UPDATE {self.table} SET {assignments} WHERE {self.key} = ? AND tenant_id = ?"  # noqa: S608
            f" AND state <> 'completed' AND lease_until_ms <= ? RETURNING {self.key}"
        )
        return bool((await sql.run(statement, now_ms + self.ms, now_ms, job_id, tenant_id, now_ms)).rows)

    def extended(self, job_id: str, now_ms: int) -> Statement:
        """Return the statement that renews a lease, for its holder."""
        statement = f"UPDATE {self.table} SET lease_until_ms = ?, updated_at_ms = ? WHERE {self.key} = ?"  # noqa: S608
        return statement, (now_ms + self.ms, now_ms, job_id)

    def renewed(self, job_id: str, now_ms: int) -> Statement:
        """Return the statement that renews a lease which is still held: one that was released stays released."""
        statement = f"UPDATE {self.table} SET lease_until_ms = ? WHERE {self.key} = ? AND lease_until_ms > ?"  # noqa: S608
        return statement, (now_ms + self.ms, job_id, now_ms)


async def noted(what: str, job_id: str, code: Code | ForeignCode, note: Awaitable[object]) -> None:
    """Log what stopped a job, and note it in the job's row. If noting fails, that is logged and nothing is raised."""
    _log.error("%s stopped", what, extra={"job_id": job_id, "code": code})
    try:
        await note
    except RetainError as second:
        _log.warning("the error of %s was not noted", what, extra={"job_id": job_id, "code": second.code})


async def continue_open(
    jobs: Iterable[Job], call: Callable[[Job], Awaitable[Continued]], *, stopped: str = "stopped"
) -> dict[str, int]:
    """Continue each of the jobs for up to five calls; return how many are now in each state.

    A job that raises a RetainError is counted as `stopped`, and `noted` has logged what stopped it. The others continue,
    also after an error that nobody expected. Raises: the last of those, when all jobs were continued.
    """
    states: Counter[str] = Counter()
    unexpected: Exception | None = None
    for job in jobs:
        try:
            states[await _continued(job, call)] += 1
        except RetainError:
            states[stopped] += 1
        except Exception as error:  # noqa: BLE001 -- whatever one job has, the others are not its fault
            unexpected = error
    if unexpected is not None:
        raise unexpected
    return dict(states)


async def _continued(job: Job, call: Callable[[Job], Awaitable[Continued]]) -> str:
    progress = await call(job)
    for _ in range(CALLS_PER_JOB - 1):
        if not progress.more:
            break
        progress = await call(job)
    return progress.state
