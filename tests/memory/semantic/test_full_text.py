"""Candidates by words: which records are read, how often they have each word, and that neither grows without bound."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.memory.recall.candidates import PRESENT, Visible
from retain.memory.recall.preparation import prepare
from retain.memory.recall.query import analyse
from retain.memory.recall.sources.full_text import (
    COMMON_ALL,
    COMMON_ONE,
    COMMON_TWO,
    RARE,
    FoundWords,
    found_words,
    full_text,
)
from retain.memory.records.record import NewRecord
from retain.memory.scope import Reach, Scope
from tests.memory.semantic.substrate import AGENT, PERSON, Substrate

USER = Scope("acme", "sdr", "sales", user_id="ann")
WORDS = ["tea", "milk", "lamp", "vase", "bread"]


async def found(substrate: Substrate, query: str, *scopes: Scope) -> FoundWords:
    """Return what full text finds in these scopes."""
    reach = Reach("acme", tuple(scope.scope_id for scope in scopes or (AGENT,)))
    visible = Visible(reach, substrate.clock(), None, "1", ())
    statement, values = full_text(visible, analyse(query, 0), PRESENT)
    return found_words((await substrate.d1.run(statement, *values)).rows[0])


async def store_all(substrate: Substrate, contents: list[str], scope: Scope = AGENT) -> list[str]:
    """Store the contents; return their ids."""
    return [one.id for one in await substrate.memory(scope).store_all([NewRecord(one) for one in contents], PERSON)]


@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from([*WORDS, "teapot"]), min_size=1, max_size=8), min_size=1, max_size=6),
    asked=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True),
)
@pytest.mark.parametrize("scope", [AGENT, USER], ids=["agent", "user"])
async def test_each_record_with_a_word_is_found_with_the_number_of_its_words(
    scope: Scope, texts: list[list[str]], asked: list[str]
) -> None:
    substrate = Substrate()
    try:
        contents = list(dict.fromkeys(" ".join(one) for one in texts))
        ids = await store_all(substrate, contents, scope)
        result = await found(substrate, " ".join(asked), scope)
        stems = analyse(" ".join(asked), 0).stems
        counted = {one: Counter(prepare(content, None).stems) for one, content in zip(ids, contents, strict=True)}
        expected = {
            one: (words.total(), [words[stem] for stem in stems])
            for one, words in counted.items()
            if any(words[stem] for stem in stems)
        }
        assert {one: (length, list(counts)) for one, length, counts in result.counts} == expected
        having = {stem: sum(stem in words for words in counted.values()) for stem in stems}
        assert result.having == {stem: records for stem, records in having.items() if records}
    finally:
        substrate.close()


@pytest.fixture
async def crowded(substrate: Substrate) -> Substrate:
    """A scope in which three words are common, and one old record has all of them, one two and one a rare word."""
    await store_all(substrate, ["tea milk lamp, all of them", "tea milk, two of them", "tea with saffron"])
    for word in ("tea", "milk", "lamp"):
        for start in range(0, RARE + 20, 55):
            await store_all(substrate, [f"{word} number {word[0]}{n}x" for n in range(start, start + 55)])
    return substrate


async def test_records_with_several_common_words_are_found_however_old(crowded: Substrate) -> None:
    oldest = sorted((await crowded.d1.run("SELECT id, content FROM memory_records")).rows, key=lambda row: row["id"])
    several, two, rare = (row["id"] for row in oldest[:3])
    common = {one for one, _, _ in (await found(crowded, "tea milk lamp")).counts}
    assert {several, two} <= common
    assert len(common) == 2 + COMMON_ONE
    with_rare = {one for one, _, _ in (await found(crowded, "tea milk lamp saffron")).counts}
    assert {several, two, rare} <= with_rare
    assert len(with_rare) == 3 + COMMON_ONE
    assert {one for one, _, _ in (await found(crowded, "saffron")).counts} == {rare}


async def test_what_is_read_is_bounded() -> None:
    assert RARE + COMMON_ALL + COMMON_TWO + COMMON_ONE <= 400
