"""Counting reads does not cost a write per read, and copies wait until no older isolate answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from retain.errors import Unavailable
from retain.items.rekeying.compatible import PROBE_EVERY, ReadOutcome
from retain.items.rekeying.reads import FLUSH_MS, PERMIT_MS, SETTLE_MS
from tests.items.rekeying.deployment import Deployment
from tests.support.faults import Fault, Faults


@pytest.fixture
async def deployment() -> AsyncIterator[Deployment]:
    made = Deployment()
    yield made
    made.close()


async def test_a_thousand_reads_a_minute_cost_one_write(deployment: Deployment) -> None:
    await deployment.to_phase_2()
    faults = Faults(lambda owner: None)
    isolate = deployment.isolate(True, True, sql=faults.wrap("sql", deployment.sql, faults.life("sql")))
    for minute in range(3):
        for _ in range(1000):
            isolate.reads.found("warm", ReadOutcome.CANONICAL)
        await deployment.settled()
        assert len([point for _, point in faults.trace if point == "sql.batch"]) == minute
        deployment.clock.advance(FLUSH_MS)
    isolate.reads.found("warm", ReadOutcome.LEGACY)
    isolate.reads.repaired("warm", True)
    await deployment.settled()
    rows = await deployment.rows("SELECT canonical, legacy, repaired FROM namespace_reads")
    assert rows == [{"canonical": 3000, "legacy": 1, "repaired": 1}]


async def test_counts_that_could_not_be_written_are_kept(deployment: Deployment) -> None:
    await deployment.to_phase_2()
    faults = Faults(lambda owner: None)
    faults.plan(Fault(Unavailable("no"), point="sql.batch"))
    isolate = deployment.isolate(True, True, sql=faults.wrap("sql", deployment.sql, faults.life("sql")))
    isolate.reads.found("cold", ReadOutcome.UNREAD)
    await isolate.reads.flush()
    assert await deployment.rows("SELECT 1 FROM namespace_reads") == []
    await isolate.reads.flush()
    await isolate.reads.flush()
    assert await deployment.rows("SELECT tier, unread FROM namespace_reads") == [
        {"tier": "cold", "unread": PROBE_EVERY}
    ]


async def test_nothing_is_counted_before_a_migration_begins(deployment: Deployment) -> None:
    isolate = deployment.isolate(False, False)
    isolate.reads.found("warm", ReadOutcome.LEGACY)
    await isolate.reads.flush()
    assert await deployment.rows("SELECT 1 FROM namespace_reads") == []


async def test_copies_are_permitted_from_two_minutes_after_phase_2_began_and_withdrawn_after_it(
    deployment: Deployment,
) -> None:
    await deployment.isolate(False, True).migration().advance(1)
    isolate = deployment.isolate(True, True)
    assert not await isolate.reads.may_repair()
    await isolate.migration().advance(2)
    deployment.clock.advance(SETTLE_MS - 1)
    assert not await isolate.reads.may_repair()
    deployment.clock.advance(PERMIT_MS)
    assert await isolate.reads.may_repair()
    await isolate.migration().roll_back(1)
    assert await isolate.reads.may_repair()  # it checks at most twice per minute
    deployment.clock.advance(PERMIT_MS)
    assert not await isolate.reads.may_repair()
