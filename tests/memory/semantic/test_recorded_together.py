"""What belongs together without sharing words: what was recorded just before and after, at a named time, without a pause."""

from __future__ import annotations

import pytest

from retain.json_text import read_own_json
from retain.memory.recall import candidates as sources
from retain.memory.recall.candidates import ADJACENT, Visible
from retain.memory.recall.evidence import PAUSE_MS, Evidence, SearchRow, candidates_of
from retain.memory.recall.query import analyse
from retain.memory.recall.sources.nearest import CANDIDATES
from retain.memory.records.record import Utterance
from retain.memory.scope import Reach, Scope
from tests.memory.semantic.substrate import AGENT, Substrate

NOWHERE = Evidence({}, 0.0, 0, {}, {})
OTHER = Scope("acme", "other")
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


async def rows_of(substrate: Substrate, ids: list[str], *, adjacent: bool = True) -> list[SearchRow]:
    """Return the rows of these records and of what is around them."""
    visible = Visible(Reach("acme", (AGENT.scope_id,)), substrate.clock(), None, "1", ())
    statement, values = sources.with_neighbours(visible, ids, [("tea",)], adjacent=adjacent)
    return SearchRow.read(read_own_json((await substrate.d1.run(statement, *values)).rows[0]["found"]))


async def test_what_was_recorded_just_before_and_after_becomes_a_candidate(substrate: Substrate) -> None:
    """In the same scope, outside conversations, whatever others record meanwhile."""
    stored = []
    for number in range(4 * ADJACENT):
        stored.append(await substrate.store(f"Note {number}."))
        await substrate.store(f"Note {number}.", scope=OTHER)
        await substrate.store(f"Turn {number}.", utterance=Utterance("talk", number, "Ann", None))
    middle = 2 * ADJACENT
    rows = await rows_of(substrate, [stored[middle]])
    found, _ = candidates_of(rows, analyse("tea", 0), frozenset({stored[middle]}), NOWHERE)
    assert {one.id for one in found} == {*stored[middle - ADJACENT : middle + ADJACENT + 1]}
    alone = await rows_of(substrate, [stored[middle]], adjacent=False)
    assert [row.id for row in alone] == [stored[middle]]


async def test_a_turn_brings_what_was_recorded_meanwhile(substrate: Substrate) -> None:
    note = await substrate.store("Hall four, two tickets.")
    turn = await substrate.store("See you there!", utterance=Utterance("talk", 0, "Ann", None))
    assert {row.id for row in await rows_of(substrate, [turn])} == {note, turn}


@pytest.mark.parametrize(("between_ms", "near"), [(PAUSE_MS, True), (PAUSE_MS + 1, False)])
async def test_turns_before_and_after_a_pause_do_not_give_each_other_context(
    substrate: Substrate, between_ms: int, near: bool
) -> None:
    stored = [
        await substrate.store(f"Tea {n}.", utterance=Utterance("talk", n, "Ann", DAY_MS + n * between_ms))
        for n in range(2)
    ]
    rows = await rows_of(substrate, [stored[0]])
    found, turns = candidates_of(rows, analyse("tea", 0), frozenset({stored[0]}), NOWHERE)
    assert ({one.id for one in found} == {*stored}) is near
    [first] = [one.place for one in found if one.id == stored[0]]
    assert first is not None
    assert (first.moved(1) in turns) is near


async def test_a_named_time_is_searched_by_meaning_as_well(substrate: Substrate) -> None:
    """Nearer records of other times do not hide what was recorded then."""
    start_ms = substrate.clock()
    opera = "An evening at the opera."
    await substrate.store(opera)
    for number in range(ADJACENT + 1):
        await substrate.store(f"Invoice {number} is paid.")
    substrate.clock.set(start_ms + 40 * DAY_MS)
    for number in range(CANDIDATES + 20):
        await substrate.store(f"To hear music is wish number {1000 + number}.")
    await substrate.reconcile()
    substrate.clock.set(start_ms + 80 * DAY_MS)
    assert opera in await substrate.found("Which music did I hear 80 days ago?", top_k=50)
