"""Acceptance criteria of semantic memory (tier 3), in their own words, with `learn` and `recall` and the agent `sdr`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from retain.memory.facts import Fact, learn, recall
from retain.memory.records.record import RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import RecallQuery, SemanticMemory
from tests.memory.semantic.substrate import Substrate
from tests.support.instances import Deployment, shipped_embedder

QUERY = "responded positively to direct ROI framing"
OUTCOMES = (
    ("direct ROI framing", "positively"),
    ("storytelling", "positively"),
    ("direct ROI framing", "negatively"),
    ("a free trial", "positively"),
    ("social proof", "negatively"),
    ("direct ROI framing", "positively"),
    ("a discount", "neutrally"),
    ("a personal note", "positively"),
    ("storytelling", "negatively"),
    ("direct ROI framing", "positively"),
    ("a case study", "positively"),
    ("urgency", "negatively"),
    ("a free trial", "negatively"),
)
"""What each of thirteen contacts responded to, and how."""
RIGHT = [number for number, outcome in enumerate(OUTCOMES) if outcome == ("direct ROI framing", "positively")]


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with closing(Deployment()) as made:
        yield made


def fact(number: int) -> Fact:
    framing, how = OUTCOMES[number]
    return Fact(
        subject=f"contact:hubspot_id:{123456 + number}",
        predicate=f"responded_{how}_to",
        object=f"{framing.replace(' ', '_')}{'' if framing.endswith('framing') else '_framing'}",
        confidence=0.9,
    )


async def test_recall_returns_relevant_facts_in_top_5_after_10_and_more_runs(deployment: Deployment) -> None:
    """Each contact's response is learned in its own run."""
    for number, (framing, how) in enumerate(OUTCOMES):
        result = await deployment.run("sdr", f"Contact {123456 + number} responded {how} to {framing}.")
        assert result["status"] == "completed"
        deployment.clock.advance(60_000)
    await deployment.settled()
    memory = SemanticMemory(
        Scope("acme", "sdr"), deployment.sql, deployment.index, shipped_embedder(), deployment.clock
    )
    found = [record.content for record in await recall(memory, QUERY)]
    assert len(found) == 5
    assert set(found[: len(RIGHT)]) == {
        f"Contact {123456 + number} responded positively to direct ROI framing." for number in RIGHT
    }


async def test_learned_facts_are_recalled_in_top_5_among_the_others(substrate: Substrate) -> None:
    memory = substrate.memory(Scope("acme", "sdr"))
    ids = []
    for number in range(len(OUTCOMES)):
        ids.append((await learn(memory, fact(number), RecordSource("agent", f"run-{number}"))).id)
        substrate.clock.advance(60_000)
    found = await recall(memory, QUERY)
    assert {record.id for record in found[: len(RIGHT)]} == {ids[number] for number in RIGHT}


async def test_learn_completes_without_error_and_the_fact_appears_in_subsequent_recall_results(
    substrate: Substrate,
) -> None:
    memory = substrate.memory(Scope("acme", "sdr"))
    assert await recall(memory, QUERY) == []
    record_id = (await learn(memory, fact(0), RecordSource("agent", "run-1"))).id
    [found] = await recall(memory, QUERY)
    assert found.id == record_id
    assert found.content == "contact:hubspot_id:123456 responded positively to direct_ROI_framing"
    assert (found.subject, found.predicate, found.object) == (
        "contact:hubspot_id:123456",
        "responded_positively_to",
        "direct_ROI_framing",
    )
    assert (found.confidence, found.source) == (0.9, {"origin": "agent", "run_id": "run-1"})


async def test_the_vector_carries_the_metadata_of_the_fact(substrate: Substrate) -> None:
    record_id = (await learn(substrate.memory(Scope("acme", "sdr")), fact(0), RecordSource("agent", "run-1"))).id
    [entry] = await substrate.vectors.get_by_ids([f"{record_id}#0"])
    expected = {
        "fact_id": record_id,
        "agent_type": "sdr",
        "subject": "contact:hubspot_id:123456",
        "predicate": "responded_positively_to",
        "object": "direct_ROI_framing",
        "confidence": 0.9,
        "learned_from_run_id": "run-1",
        "created_at": substrate.clock(),
    }
    assert {name: entry.metadata.get(name) for name in expected} == expected
    assert entry.namespace == "agent_memory_semantic:acme"


async def test_learning_the_same_fact_again_changes_nothing(substrate: Substrate) -> None:
    memory = substrate.memory(Scope("acme", "sdr"))
    first = await learn(memory, fact(0), RecordSource("agent", "run-1"))
    again = await learn(memory, fact(0), RecordSource("agent", "run-2"))
    assert (again.id, again.created) == (first.id, False)
    assert len(await substrate.rows("SELECT 1 FROM memory_events")) == 1


async def test_what_an_agent_stored_is_in_the_context_and_the_recall_of_its_next_run(deployment: Deployment) -> None:
    await deployment.run("sdr", "Contact 123456 responded positively to direct ROI framing.")
    result = await deployment.run("sdr", "Draft an e-mail to contact 123456.", instance="another")
    assert result["memory"]["records_used"] >= 1
    draft = json.loads(
        deployment.local("sdr:acme:another", "SELECT value FROM working_memory WHERE key = 'email_draft_v2'")[0][
            "value"
        ]
    )
    assert draft == "Dear 123456, here is our offer, with direct ROI framing."


async def test_another_tenants_agent_of_the_same_type_recalls_none_of_it(deployment: Deployment) -> None:
    await deployment.run("sdr", "Contact 123456 responded positively to direct ROI framing.")
    memory = SemanticMemory(
        Scope("other", "sdr"), deployment.sql, deployment.index, shipped_embedder(), deployment.clock
    )
    assert await memory.search(RecallQuery(QUERY)) == []
