"""What semantic memory can do, and what of it a model can do."""

from __future__ import annotations

import re

from retain.memory.semantic import SemanticMemory
from tests.docs.markdown import page
from tests.memory.semantic.indexes import WatchingIndex
from tests.memory.semantic.substrate import Substrate


def test_every_method_is_documented_with_its_use() -> None:
    text = page("docs/decisions/0026-width-of-memory.md").text.partition("What other designs")[0]
    documented = {
        name for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert documented == {name for name, what in vars(SemanticMemory).items() if callable(what) and name[0] != "_"}


async def test_every_search_filters_by_tenant_scopes_and_model_before_similarity(substrate: Substrate) -> None:
    await substrate.store("Ann prefers blue shoes.")
    substrate.index = watching = WatchingIndex(substrate.vectors)
    await substrate.hits("shoes")
    [asked] = watching.asked
    assert asked["namespace"] == "agent_memory_semantic:acme"
    assert asked["filter"] == {
        "tenant_id": "acme",
        "scope_id": {"$in": ["agent.sdr", "house.sales", "tenant"]},
        "model": "static-minilm-256",
    }
