"""Jobs: leases keep a second worker away, a stopped job does not stop the others, an error that stopped one is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import closing

import pytest

from retain.errors import Unavailable
from retain.host.sql import SqliteSql
from retain.jobs import CALLS_PER_JOB, LEASE_MS, Continued, Leases, continue_open, noted

LEASES = Leases("work", "work_id", "attempts = attempts + 1")
TABLE = """
CREATE TABLE work (work_id TEXT, tenant_id TEXT, state TEXT, attempts INTEGER DEFAULT 0,
  lease_until_ms INTEGER DEFAULT 0, updated_at_ms INTEGER DEFAULT 0)
"""


@pytest.fixture
def sql() -> Iterator[SqliteSql]:
    with closing(SqliteSql.open()) as made:
        yield made


async def _with_jobs(sql: SqliteSql) -> None:
    await sql.run(TABLE)
    await sql.run("INSERT INTO work (work_id, tenant_id, state) VALUES ('one', 'acme', 'running')")
    await sql.run("INSERT INTO work (work_id, tenant_id, state) VALUES ('done', 'acme', 'completed')")


async def test_a_lease_is_taken_by_one_worker_until_it_expires(sql: SqliteSql) -> None:
    await _with_jobs(sql)
    assert await LEASES.take(sql, "acme", "one", 1000)
    assert not await LEASES.take(sql, "acme", "one", 1000 + LEASE_MS - 1)
    assert await LEASES.take(sql, "acme", "one", 1000 + LEASE_MS)
    [row] = (await sql.run("SELECT attempts, updated_at_ms FROM work WHERE work_id = 'one'")).rows
    assert (row["attempts"], row["updated_at_ms"]) == (2, 1000 + LEASE_MS)


async def test_a_lease_that_is_extended_lasts_from_then(sql: SqliteSql) -> None:
    await _with_jobs(sql)
    assert await LEASES.take(sql, "acme", "one", 0)
    await sql.batch([LEASES.extended("one", 50_000)])
    assert not await LEASES.take(sql, "acme", "one", LEASE_MS)
    assert await LEASES.take(sql, "acme", "one", 50_000 + LEASE_MS)


@pytest.mark.parametrize(("tenant", "job"), [("acme", "done"), ("other", "one"), ("acme", "never")])
async def test_a_completed_or_unknown_job_has_no_lease(sql: SqliteSql, tenant: str, job: str) -> None:
    await _with_jobs(sql)
    assert not await LEASES.take(sql, tenant, job, 1000)


async def test_jobs_are_continued_until_they_can_wait_and_one_that_stops_does_not_stop_the_others() -> None:
    calls: list[str] = []

    async def call(job: str) -> Continued:
        calls.append(job)
        if job == "broken":
            raise Unavailable("down")
        return Continued("completed" if job == "short" else "running", more=job == "long")

    assert await continue_open(["long", "broken", "short"], call) == {"running": 1, "stopped": 1, "completed": 1}
    assert calls == ["long"] * CALLS_PER_JOB + ["broken", "short"]


async def test_an_error_that_nobody_expected_is_raised_when_the_other_jobs_were_continued() -> None:
    calls: list[str] = []

    async def call(job: str) -> Continued:
        calls.append(job)
        if job == "broken":
            raise KeyError("request")
        return Continued("completed", more=False)

    with pytest.raises(KeyError, match="request"):
        await continue_open(["broken", "one", "two"], call)
    assert calls == ["broken", "one", "two"]


async def test_a_job_that_stops_is_counted_in_the_state_that_the_caller_names() -> None:
    async def call(job: str) -> Continued:
        raise Unavailable(job)

    assert await continue_open(["one"], call, stopped="failed") == {"failed": 1}


async def test_a_failure_to_note_an_error_hides_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def failing() -> None:
        raise Unavailable("down")

    note: Awaitable[None] = failing()
    await noted("an erasure", "job-1", "contended", note)
    assert [(record.levelname, record.__dict__["code"]) for record in caplog.records] == [
        ("ERROR", "contended"),
        ("WARNING", "unavailable"),
    ]
