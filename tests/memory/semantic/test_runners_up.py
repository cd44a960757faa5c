"""What a recall left out, and what found what it did not: for whoever asks why."""

from __future__ import annotations

import pytest

from retain.errors import InvalidInput
from retain.memory.semantic import RecallQuery, RecallResult
from tests.memory.semantic.substrate import ListedIndex, Substrate
from tests.support.instances import shipped_embedder

CONTENTS = (
    "Order SO-4411 was refunded.",
    "Order SO-4412 was refunded.",
    "Refunds take five days.",
    "Our lawyer is on holiday.",
)


async def recalled(substrate: Substrate, **wanted: int | float) -> RecallResult:
    return await substrate.memory().recall(RecallQuery("refund of order SO-4411", **wanted))  # type: ignore[arg-type]


async def test_the_runners_up_are_what_a_longer_answer_would_have_had(substrate: Substrate) -> None:
    for content in CONTENTS:
        await substrate.store(content)
    whole = [hit.record.content for hit in (await recalled(substrate, top_k=4)).hits]
    short = await recalled(substrate, top_k=1, runners_up=2)
    assert [hit.record.content for hit in (*short.hits, *short.runners_up)] == whole[:3]
    assert (await recalled(substrate, top_k=1)).runners_up == ()
    assert short.hits == (await recalled(substrate, top_k=1)).hits, "they change nothing of the answer"


async def test_what_is_not_relevant_enough_is_a_runner_up_whatever_its_rank(substrate: Substrate) -> None:
    for content in CONTENTS:
        await substrate.store(content)
    found = await recalled(substrate, top_k=4, min_score=0.3, runners_up=20)
    left_out = {hit.record.content: hit.relevance for hit in found.runners_up}
    assert "Our lawyer is on holiday." in left_out
    assert all(relevance < 0.3 for relevance in left_out.values())
    assert {hit.record.content for hit in found.hits} | set(left_out) == set(CONTENTS)


async def test_a_hit_names_what_found_it(substrate: Substrate) -> None:
    for content in CONTENTS:
        await substrate.store(content)
    indexed = (await recalled(substrate, top_k=4)).hits
    assert indexed[0].record.content == CONTENTS[0]
    assert indexed[0].found_by == ("words", "vectors", "exact")
    assert {hit.record.content: hit.found_by for hit in indexed}["Our lawyer is on holiday."] == ("vectors",)
    substrate.index = ListedIndex.opened(shipped_embedder().dimensions)  # it does not show the writes yet
    recent = (await recalled(substrate, top_k=4)).hits
    assert recent[0].found_by == ("words", "recent", "exact")


async def test_only_so_many_can_be_asked_for(substrate: Substrate) -> None:
    for wrong in (-1, 21):
        with pytest.raises(InvalidInput) as refused:
            await recalled(substrate, runners_up=wrong)
        assert refused.value.code == "invalid_runners_up"
