"""Search rows: what ranking gets of each text, and that it gets no more of others than it needs."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.json_text import read_own_json
from retain.memory.recall import candidates as sources
from retain.memory.recall.candidates import Visible
from retain.memory.recall.evidence import MAX_TERMS, STEMS_EACH, Evidence, SearchRow, candidates_of
from retain.memory.recall.query import analyse
from retain.memory.recall.ranking import AROUND_MS, _warmth
from retain.memory.records.record import Utterance
from retain.memory.scope import Reach
from tests.memory.semantic.substrate import AGENT, Substrate

EVIDENCE = Evidence({}, 0.0, 0, {}, {})
MANY = [f"w{number}x" for number in range(3 * STEMS_EACH)]


async def search_rows(substrate: Substrate, ids: list[str], stems: list[str]) -> list[SearchRow]:
    """Return the rows of these records and of the turns around them."""
    visible = Visible(Reach("acme", (AGENT.scope_id,)), substrate.clock(), None, "1", ())
    statement, values = sources.with_neighbours(visible, ids, [(stem,) for stem in stems], adjacent=False)
    return SearchRow.read(read_own_json((await substrate.d1.run(statement, *values)).rows[0]["found"]))


@pytest.mark.parametrize(
    "number", [0, 1, STEMS_EACH - 1, STEMS_EACH, 2 * STEMS_EACH - 1, 2 * STEMS_EACH, len(MANY) - 1]
)
async def test_a_candidate_has_the_stems_of_the_query_that_its_text_has(substrate: Substrate, number: int) -> None:
    """However many stems the query has, and whichever of them it is."""
    stored = await substrate.store(f"Only {MANY[number]} and w999x.")
    query = analyse(" ".join(MANY), 0)
    rows = await search_rows(substrate, [stored], list(query.stems))
    [candidate], _ = candidates_of(rows, query, frozenset({stored}), EVIDENCE)
    assert candidate.has == {MANY[number]}


async def test_the_longest_query_fits_into_one_statement(substrate: Substrate) -> None:
    """D1 takes 100 KB and 32 arguments of a function."""
    stored = await substrate.store("Only w0x.")
    [row] = await search_rows(substrate, [stored], [f"w{number}x" for number in range(MAX_TERMS)])
    assert row.has[0] == 1
    assert not any(row.has[1:])


async def test_a_turn_that_cannot_become_a_candidate_is_given_as_its_stems(substrate: Substrate) -> None:
    """Each turn is given once, as the one closest to a chosen record."""
    stored = [await substrate.store(f"Tea {n}.", utterance=Utterance("talk", n, "Ann", None)) for n in range(6)]
    rows = await search_rows(substrate, [stored[0]], ["tea"])
    assert sorted((row.position, row.has[0], row.signature is None, row.number is None) for row in rows) == [
        (0, 1, False, False),
        (1, 1, False, False),
        (2, 1, False, True),
        (3, 1, True, True),
    ]
    rows = await search_rows(substrate, [stored[0], stored[3]], ["tea"])
    assert sorted((row.position, row.number is None) for row in rows) == [
        (0, False),
        (1, False),
        (2, False),
        (3, False),
        (4, False),
        (5, True),
    ]


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 1)), max_size=20))
def test_what_warms_a_time_is_the_sum_over_all_others(pool: list[tuple[int, float]]) -> None:
    """The sum in one pass equals that over all pairs."""
    expected = [0.0] * len(pool)
    for (one, (at_ms, heat)), (other, (other_ms, other_heat)) in combinations(enumerate(pool), 2):
        near = math.exp(-abs(at_ms - other_ms) / AROUND_MS)
        expected[one] += near * other_heat
        expected[other] += near * heat
    assert _warmth([at for at, _ in pool], [heat for _, heat in pool]) == pytest.approx(expected, abs=1e-9)
