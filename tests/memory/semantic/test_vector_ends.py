"""The vectors of a closed record carry when it ended and what replaced it; those of an open one do not, in any history."""

from __future__ import annotations

from typing import Any

import pytest

from retain.memory.records.record import NewRecord
from tests.memory.semantic.agreement import check_agreement
from tests.memory.semantic.substrate import AGENT_SOURCE, PERSON, Substrate
from tests.memory.semantic.test_crash_points import broken, repaired

HOME: dict[str, Any] = {"subject": "user:ann", "predicate": "lives_in"}
BERLIN, LYON = "Ann lives in Berlin.", "Ann lives in Lyon."
OPEN = (None, None)


async def ends(substrate: Substrate, record_id: str) -> tuple[object, object]:
    """Return when the record ended and what replaced it, as its vector says."""
    [entry] = await substrate.vectors.get_by_ids([f"{record_id}#0"])
    return entry.metadata.get("valid_to"), entry.metadata.get("superseded_by")


async def moved(substrate: Substrate) -> tuple[str, str]:
    """Store where Ann lives, and a second later where she lives then."""
    berlin = await substrate.store(BERLIN, **HOME)
    assert await ends(substrate, berlin) == OPEN
    substrate.clock.advance(1000)
    return berlin, await substrate.store(LYON, **HOME)


async def test_a_newer_fact_ends_the_older_one_in_its_vector_and_has_no_end(substrate: Substrate) -> None:
    berlin, lyon = await moved(substrate)
    assert await ends(substrate, berlin) == (substrate.clock(), lyon)
    assert await ends(substrate, lyon) == OPEN
    await check_agreement(substrate)


async def test_a_restored_fact_ends_the_other_one_in_its_vector(substrate: Substrate) -> None:
    berlin, lyon = await moved(substrate)
    substrate.clock.advance(1000)
    await substrate.memory().restore(berlin, PERSON)
    assert await ends(substrate, berlin) == OPEN
    assert await ends(substrate, lyon) == (substrate.clock(), berlin)
    await check_agreement(substrate)


async def test_a_fact_stated_again_ends_the_other_one_in_its_vector(substrate: Substrate) -> None:
    berlin, lyon = await moved(substrate)
    substrate.clock.advance(1000)
    assert await substrate.store(BERLIN, **HOME) == berlin
    assert await ends(substrate, berlin) == OPEN
    assert await ends(substrate, lyon) == (substrate.clock(), berlin)


async def test_a_fact_that_arrives_late_is_closed_in_its_vector(substrate: Substrate) -> None:
    berlin, lyon = await moved(substrate)
    rome = await substrate.store("Ann lives in Rome.", **HOME, valid_from_ms=1)
    began = (await substrate.record(berlin)).valid_from_ms
    assert await ends(substrate, rome) == (began, berlin)
    assert await ends(substrate, berlin) == (substrate.clock(), lyon)
    await check_agreement(substrate)


async def test_facts_of_one_call_end_each_other_in_their_vectors(substrate: Substrate) -> None:
    news = [NewRecord(BERLIN, **HOME, valid_from_ms=1), NewRecord(LYON, **HOME, valid_from_ms=2)]
    berlin, lyon = [result.id for result in await substrate.memory().store_all(news, AGENT_SOURCE)]
    assert await ends(substrate, berlin) == (2, lyon)
    assert await ends(substrate, lyon) == OPEN


async def test_an_invalidated_record_is_closed_in_its_vector_until_it_is_restored(substrate: Substrate) -> None:
    record_id = await substrate.store("Ann plays chess.")
    memory = substrate.memory()
    await memory.invalidate(record_id, substrate.clock() + 5, PERSON)
    assert await ends(substrate, record_id) == (substrate.clock() + 5, None)
    await memory.restore(record_id, PERSON)
    assert await ends(substrate, record_id) == OPEN


@pytest.mark.parametrize("how", ["deleted", "edited"])
async def test_a_fact_that_replaces_nothing_any_more_leaves_no_end_in_the_other_vector(
    substrate: Substrate, how: str
) -> None:
    berlin, lyon = await moved(substrate)
    if how == "deleted":
        await substrate.memory().delete(lyon, PERSON)
    else:
        await substrate.memory().edit(lyon, {"predicate": "works_in"}, PERSON)
    assert await ends(substrate, berlin) == OPEN
    await check_agreement(substrate)


@pytest.mark.parametrize("port", ["index", "embedder"])
async def test_a_stored_fact_does_not_wait_for_the_index_to_end_the_older_one(substrate: Substrate, port: str) -> None:
    berlin = await substrate.store(BERLIN, **HOME)
    substrate.clock.advance(1000)
    lyon = await substrate.store(LYON, **HOME, valid_from_ms=substrate.clock() + 1000)
    await substrate.reconcile()
    faults = broken(substrate)
    faults.down.add(port)
    await substrate.memory().invalidate(lyon, substrate.clock(), PERSON)
    repaired(substrate)
    closed = await substrate.record(lyon)
    assert closed.valid_to_ms == substrate.clock()
    assert (await ends(substrate, lyon)) == OPEN
    assert await substrate.rows("SELECT record_id, state, attempts FROM memory_outbox WHERE state = 'owed'") == [
        {"record_id": lyon, "state": "owed", "attempts": 1}
    ]
    assert await substrate.found("Where does Ann live?") == []
    await substrate.reconcile()
    assert await ends(substrate, lyon) == (closed.valid_to_ms, None)
    assert (await ends(substrate, berlin))[1] == lyon
    await check_agreement(substrate)


async def test_ending_a_fact_costs_one_round_trip_to_d1_and_one_to_the_index(substrate: Substrate) -> None:
    async def calls(content: str) -> list[str]:
        faults = broken(substrate)
        await substrate.store(content, **HOME)
        repaired(substrate)
        substrate.clock.advance(1000)
        return [point for _, point in faults.trace if not point.endswith(" done")]

    first = await calls(BERLIN)
    assert await calls(LYON) == [*first, "embedder.embed", "index.upsert", "sql.run"]
