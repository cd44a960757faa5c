"""The reconciler takes index debts in turn: one that cannot be settled does not hold up the others."""

from __future__ import annotations

import pytest

from retain.limits.vectorize import GRACE_MS
from retain.memory.index_debts import FIRST_PAUSE_MS, LONGEST_PAUSE_MS
from tests.memory.semantic.agreement import check_agreement
from tests.memory.semantic.indexes import RefusingIndex
from tests.memory.semantic.substrate import PERSON, Substrate


async def owed(substrate: Substrate) -> dict[str, int]:
    """Return the index debts: each record's number of failures."""
    rows = await substrate.rows("SELECT record_id, attempts FROM memory_outbox WHERE state = 'owed'")
    return {row["record_id"]: row["attempts"] for row in rows}


async def owe(substrate: Substrate, record_ids: list[str]) -> None:
    """Leave index debts for these records, one per millisecond, as writers that died would."""
    for record_id in record_ids:
        await substrate.d1.batch([substrate.indexer().owe(await substrate.record(record_id), 1)])
        substrate.clock.advance(1)
    substrate.clock.advance(GRACE_MS)


async def test_debts_that_fail_do_not_hold_up_others(substrate: Substrate) -> None:
    ids = [await substrate.store(f"Parcel number {number} is late.") for number in range(7)]
    substrate.clock.advance(3_600_000)
    await substrate.indexer().reconcile()
    await owe(substrate, ids)
    index = RefusingIndex(substrate.vectors, set(ids[:4]))
    substrate.index = index
    settled = 0
    for _ in range(4):
        settled += (await substrate.indexer().reconcile(limit=2)).settled
        substrate.clock.advance(1)
    assert settled == 3
    assert (await owed(substrate)).keys() == set(ids[:4])
    index.refused.clear()
    for _ in range(2):
        substrate.clock.advance(FIRST_PAUSE_MS)
        await substrate.indexer().reconcile(limit=2)
    assert await owed(substrate) == {}
    await check_agreement(substrate)


async def test_new_debts_do_not_hold_up_those_that_failed(substrate: Substrate) -> None:
    """However many are added later, the one that has waited longest comes first."""
    first = await substrate.store("Parcel number 0 is late.")
    index = RefusingIndex(substrate.vectors, {first})
    substrate.index = index
    await owe(substrate, [first])
    assert (await substrate.indexer().reconcile(limit=1)).failed == 1
    index.refused.clear()
    substrate.clock.advance(FIRST_PAUSE_MS)
    later = [await substrate.store(f"Parcel number {number} is late.") for number in (1, 2)]
    await owe(substrate, later)
    await substrate.indexer().reconcile(limit=1)
    assert (await owed(substrate)).keys() == set(later)


async def test_the_pause_doubles_up_to_an_hour_and_ends_when_the_record_changes(substrate: Substrate) -> None:
    record_id = await substrate.store("Parcel number 0 is late.")
    index = RefusingIndex(substrate.vectors, {record_id})
    substrate.index = index
    await owe(substrate, [record_id])
    pauses = []
    for _ in range(8):
        assert (await substrate.indexer().reconcile()).failed == 1
        [row] = await substrate.rows("SELECT due_at_ms FROM memory_outbox")
        pauses.append(row["due_at_ms"] - substrate.clock())
        substrate.clock.set(row["due_at_ms"] - 1)
        assert (await substrate.indexer().reconcile()).failed == 0
        substrate.clock.advance(1)
    assert pauses == [min(FIRST_PAUSE_MS * 2**n, LONGEST_PAUSE_MS) for n in range(8)]
    assert (await substrate.indexer().reconcile()).failed == 1
    index.refused.clear()
    await substrate.memory().edit(record_id, {"content": "Parcel number 0 came."}, PERSON)
    await substrate.reconcile()
    assert await owed(substrate) == {}
    await check_agreement(substrate)


@pytest.mark.parametrize("failures", [0, 40])
async def test_an_entry_that_failed_often_is_still_taken(substrate: Substrate, failures: int) -> None:
    record_id = await substrate.store("Parcel number 0 is late.")
    substrate.index = RefusingIndex(substrate.vectors, {record_id})
    await owe(substrate, [record_id])
    await substrate.d1.run("UPDATE memory_outbox SET attempts = ?", failures)
    await substrate.indexer().reconcile()
    substrate.index = substrate.vectors
    substrate.clock.advance(LONGEST_PAUSE_MS)
    assert (await substrate.indexer().reconcile()).settled == 1
