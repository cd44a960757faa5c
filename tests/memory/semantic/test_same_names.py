"""What a tenant recalls and lists is the same whether or not another one has the same agents, users and conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from retain.errors import NotFound
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import NewRecord, Utterance
from retain.memory.scope import Scope, UserPlace
from tests.memory.semantic.indexes import LaggingIndex
from tests.memory.semantic.substrate import AGENT, PERSON, TENANT, Substrate

DAY_MS = 86_400_000
ANN = replace(AGENT, user_id="ann")
BEFORE_MS, STATED_MS = 1_600_000_000_000, 1_700_000_000_000
TALK = ("The crane lifts {} tons.", "Then order AB-{} was paid.", "It went to the {} harbour.")


async def fill(substrate: Substrate, tenant: str, words: Sequence[str]) -> None:
    """Store what a tenant knows: a conversation, a corrected fact, and what is a user's and everybody's."""
    agent, ann, whole = (replace(scope, tenant_id=tenant) for scope in (AGENT, ANN, TENANT))
    for number, (text, word) in enumerate(zip(TALK, words, strict=True)):
        place = Utterance("chat-1", number, "Ann", STATED_MS + number)
        await substrate.store(text.format(word), agent, utterance=place, metadata={"topic": "cranes"})
    fact = await substrate.store(f"Ann lives in {words[2]}.", ann, PERSON, subject="ann", predicate="lives in")
    substrate.clock.advance(1000)
    await substrate.memory(ann).edit(fact, {"content": f"Ann lives near {words[2]}."}, PERSON)
    await substrate.store(f"Always name the {words[2]} harbour.", whole, PERSON, kind="instruction")


@pytest.fixture(params=[0, 600_000], ids=["an index", "a late index"])
async def both(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Substrate, Substrate]]:
    """Yield two deployments with the same tenant, which is alone in the first."""
    with closing(Substrate()) as alone, closing(Substrate()) as shared:
        for one in (alone, shared):
            one.index = LaggingIndex(one.vectors, one.clock, request.param)
            if one is shared:
                await fill(one, "other", ("nine", "1001", "southern"))
            one.clock.set(STATED_MS + DAY_MS)
            await fill(one, "acme", ("seven", "1002", "northern"))
            if one is shared:
                more = [NewRecord(f"Always name harbour {number}.", kind="instruction") for number in range(25)]
                await one.memory(replace(TENANT, tenant_id="other")).store_all(more, PERSON)
        yield alone, shared


RECALLS: dict[str, dict[str, Any]] = {
    "by its words": {"query": "crane tons harbour"},
    "by its meaning": {"query": "a machine for heavy loads"},
    "by an exact term": {"query": "what is AB-1001?"},
    "by the time of a conversation": {"query": "what was said on 14 November 2023?"},
    "by the position of a conversation": {"query": "what did we say in the first conversation?"},
    "with a filter": {"query": "harbour", "filter": {"topic": "cranes"}},
    "with the turns before": {"query": "and then?", "context": ["the crane lifts tons"]},
    "what was known": {"query": "where does Ann live?", "as_of_ms": STATED_MS + DAY_MS + 500},
    "at and below": {"query": "Ann harbour crane", "below": True},
    "instructions": {"query": "Please write to the harbour."},
}


@pytest.mark.parametrize("scope", [TENANT, AGENT, ANN], ids=["the tenant", "the agent", "the user"])
async def test_a_recall_finds_the_same(both: tuple[Substrate, Substrate], scope: Scope) -> None:
    for name, query in RECALLS.items():
        alone, shared = [
            [(hit.record.content, hit.score) for hit in await one.hits(scope=scope, top_k=50, **query)] for one in both
        ]
        assert shared == alone, name


LISTS: dict[str, tuple[Scope | UserPlace, dict[str, Any]]] = {
    "of the tenant": (TENANT, {}),
    "of an agent": (AGENT, {}),
    "of a user": (ANN, {}),
    "of a user everywhere": (UserPlace("acme", "ann"), {}),
    "by metadata": (TENANT, {"filter": {"topic": "cranes"}}),
    "by several values": (TENANT, {"filter": {"topic": {"$in": ["cranes", "cars"]}}}),
    "of what is valid": (AGENT, {"held_at_ms": STATED_MS + DAY_MS + 2000}),
    "page by page": (TENANT, {"limit": 1}),
}


async def test_a_list_has_the_same(both: tuple[Substrate, Substrate]) -> None:
    for name, (place, wanted) in LISTS.items():
        alone, shared = [await listed(one, place, wanted) for one in both]
        assert shared == alone != [], name


async def listed(one: Substrate, place: Scope | UserPlace, wanted: dict[str, Any]) -> list[str]:
    records, cursor = await list_records(one.d1, place, Listing(**wanted))
    while cursor is not None:
        page, cursor = await list_records(one.d1, place, Listing(**wanted, cursor=cursor))
        records += page
    return [record.content for record in records]


async def test_a_record_of_another_tenant_is_not_changed_by_its_id(both: tuple[Substrate, Substrate]) -> None:
    _, shared = both
    [theirs, *_] = await shared.listed(Scope("other"))
    for scope in (TENANT, AGENT):
        memory = shared.memory(scope)
        for change in (memory.edit(theirs.id, {"content": "Mine."}, PERSON), memory.delete(theirs.id, PERSON)):
            with pytest.raises(NotFound):
                await change
    assert (await shared.listed(Scope("other")))[0] == theirs
