"""Recalled text is not learned again: not even when an agent stores what it read, from whatever scope."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retain.agents.runs.context import fenced
from retain.agents.tools.built_in import CallContext, RecallMemory, StoreMemory
from retain.errors import InvalidInput
from retain.json_text import JsonObject
from retain.memory.records.record import Utterance
from tests.ingest.substrate import IngestSubstrate
from tests.memory.semantic.substrate import AGENT, HOUSE, INSTANCE, PERSON, TENANT
from tests.ports import raises

CALL = CallContext("01HF0000000000000000000000", 1, 0)
TEXT = "Bea was refunded 20 euros in May."


@pytest.mark.parametrize("scope", [TENANT, HOUSE, AGENT], ids=["the tenant's", "the house's", "its own"])
async def test_recalled_text_is_not_learned_again(substrate: IngestSubstrate, scope: Any) -> None:
    known = await substrate.store(TEXT, scope, PERSON, importance=0.3, confidence=0.6)
    memory = substrate.memory(AGENT)
    answer = json.loads((await RecallMemory(memory).call({"query": "refunds of Bea"}, CALL)).content)
    [recalled] = answer["memories"]
    for content in (recalled["content"], f"  {recalled['content'].upper()} ", f"- {recalled['content']}"):
        stored = json.loads((await StoreMemory(memory).call({"content": content}, CALL)).content)
        assert stored == {"id": known, "created": False, "merged": [], "kept": ["confidence", "importance"]}
    [record] = await substrate.listed()
    assert (record.content, record.importance, record.confidence, record.scope_id) == (TEXT, 0.3, 0.6, scope.scope_id)
    assert len((await substrate.memory(TENANT).get(known))[1]) == 1


async def test_metadata_stored_with_recalled_text_is_added_in_the_own_scope_and_kept_out_of_others(
    substrate: IngestSubstrate,
) -> None:
    for scope, named in ((AGENT, ("merged", {"order": 7})), (HOUSE, ("kept", {}))):
        text = f"{TEXT} Said by {scope.kind}."
        known = await substrate.store(text, scope)
        call: JsonObject = {"content": text.upper(), "metadata": {"order": 7}}
        stored = json.loads((await StoreMemory(substrate.memory(AGENT)).call(call, CALL)).content)
        assert stored == {"id": known, "created": False, "merged": [], "kept": [], named[0]: ["metadata.order"]}
        assert (await substrate.record(known)).metadata == named[1]


async def test_a_recalled_message_of_a_conversation_is_not_learned_again(substrate: IngestSubstrate) -> None:
    message = await substrate.store(TEXT, HOUSE, kind="event", utterance=Utterance("chat", 0, "Bea"))
    stored = await StoreMemory(substrate.memory(AGENT)).call({"content": TEXT}, CALL)
    assert json.loads(stored.content) == {"id": message, "created": False, "merged": [], "kept": ["kind"]}


async def test_recalled_text_of_any_length_is_not_learned_again(substrate: IngestSubstrate) -> None:
    long = " ".join(f"The order of number {number} was late." for number in range(800))
    known = await substrate.store(long, HOUSE)
    for number in range(30):
        await substrate.store(f"The order of number {number} was late.", HOUSE)
    stored = await StoreMemory(substrate.memory(AGENT)).call({"content": long}, CALL)
    assert json.loads(stored.content) == {"id": known, "created": False, "merged": [], "kept": []}


async def test_a_record_that_the_agent_cannot_see_does_not_prevent_storing(substrate: IngestSubstrate) -> None:
    await substrate.store(TEXT, INSTANCE)
    stored = await StoreMemory(substrate.memory(AGENT)).call({"content": TEXT}, CALL)
    assert json.loads(stored.content)["created"] is True


async def test_a_fence_is_removed_from_what_is_stored(substrate: IngestSubstrate) -> None:
    text = f"Bea wants vouchers from now on.\n{fenced('records', ['Bea was refunded.', 'Bea was angry.'])}"
    await StoreMemory(substrate.memory(AGENT)).call({"content": text}, CALL)
    assert await substrate.contents() == ["Bea wants vouchers from now on."]


async def test_a_text_that_is_only_a_fence_is_refused(substrate: IngestSubstrate) -> None:
    with raises(InvalidInput, code="recalled_text"):
        await StoreMemory(substrate.memory(AGENT)).call({"content": fenced("records", ["Bea was angry."])}, CALL)
    assert await substrate.contents() == []


async def test_repetition_and_most_recent_wording_do_not_raise_trust(substrate: IngestSubstrate) -> None:
    tool = StoreMemory(substrate.memory(AGENT))
    contents = [TEXT, TEXT, f"Most recent, certain, most important: {TEXT}", "The latest: Bea was refunded 0 euros."]
    for content in contents:
        await tool.call({"content": content}, CALL)
    assert {(record.confidence, record.importance) for record in await substrate.listed()} == {(1.0, 0.5)}
    assert await substrate.contents() == [TEXT, contents[-1]]
