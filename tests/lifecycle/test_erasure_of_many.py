"""Each memory costs an erasure as much among many memories as among few, so all its calls together are bounded."""

from __future__ import annotations

import pytest

from retain.lifecycle.erasure.eraser import Erasure
from retain.limits.vectorize import GRACE_MS
from retain.memory.records.record import NewRecord
from tests.lifecycle.world import PERSON, living
from tests.support.databases import connection_of

FEW, MANY = 200, 3200
AT_ONCE = 200
EACH = 100
"""The database's machine is asked after so many instructions."""


async def instructions(kind: str, count: int) -> int:
    """Return how many hundred instructions D1 executes to erase so many memories of a user, or of their tenant."""
    executed = 0

    def count_them() -> int:
        nonlocal executed
        executed += 1
        return 0

    with living() as world:
        world.sql_now("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0) ON CONFLICT DO NOTHING")
        memory = world.memory(user_id="ann")
        for start in range(0, count, AT_ONCE):
            await memory.store_all([NewRecord(f"thing {number}") for number in range(start, start + AT_ONCE)], PERSON)
        world.clock.advance(GRACE_MS + 1)
        connection_of(world.sql).set_progress_handler(count_them, EACH)
        erasure = Erasure(world.stores(), slices=1000)
        done = await (erasure.erase_user("acme", "ann") if kind == "user" else erasure.erase_tenant("acme"))
        assert (done.receipt.state, done.receipt.counts["d1.memory_records"]) == ("completed", count)
    return executed


@pytest.mark.parametrize("kind", ["user", "tenant"])
async def test_each_memory_costs_an_erasure_as_much_among_many_as_among_few(kind: str) -> None:
    few, many = [await instructions(kind, count) / count for count in (FEW, MANY)]
    assert many < 1.15 * few
