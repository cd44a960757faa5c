"""Agent definitions and the catalogue: what is accepted, and what is refused with its location named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from retain.agents import definitions
from retain.agents.catalogue import AgentCatalogue
from retain.agents.definitions import AgentDefinition
from retain.errors import Misconfigured, NotFound
from tests.agents.conftest import agent


def test_a_definition_needs_type_description_and_instructions_and_has_defaults_for_the_rest() -> None:
    definition = AgentDefinition.model_validate(agent("clerk"))
    assert (definition.tools, definition.delegates, definition.working_memory) == ((), (), False)
    assert definition.memory_config.model_dump() == {
        "long_term_enabled": False,
        "recall": "tool",
        "store": True,
        "share": False,
        "episodes": 10,
        "episodes_from": "instance",
        "user": "agent",
        "conversation": {"messages": 40, "tokens": 4_000, "summary_tokens": 600, "attachments": 4},
        "top_k": 5,
        "profile": None,
        "min_score": 0.3,
        "filter": {},
        "filters": [],
        "record_tokens": 500,
        "recall_tokens": 2_000,
        "facts": False,
        "forget": False,
        "learn": None,
    }
    assert definition.limits.model_dump() == {
        "max_turns": 8,
        "max_tool_calls": 32,
        "context_tokens": 16_000,
        "run_tokens": None,
        "max_delegations": 20,
        "approval_hours": 24,
        "model_wait_minutes": 30,
        "run_minutes": 60,
        "busy": "refuse",
        "max_queued_runs": 16,
        "queue_minutes": 60,
    }


@pytest.mark.parametrize(
    ("change", "place"),
    [
        pytest.param({"type": "Clerk"}, "type", id="upper case"),
        pytest.param({"type": "c:lerk"}, "type", id="the delimiter"),
        pytest.param({"type": "c" * 33}, "type", id="a name that is too long"),
        pytest.param({"type": "clerk\n"}, "type", id="a line end after the name"),
        pytest.param({"description": ""}, "description", id="no description"),
        pytest.param({"instructions": ""}, "instructions", id="no instructions"),
        pytest.param({"instructions": "x" * 20_001}, "instructions", id="a book of instructions"),
        pytest.param({"tenant": "acme"}, "tenant", id="an unknown field"),
        pytest.param({"memory_config": {"episodes": 51}}, "memory_config.episodes", id="too many episodes"),
        pytest.param({"memory_config": {"episodes": -1}}, "memory_config.episodes", id="fewer than no episodes"),
        pytest.param({"memory_config": {"recall": "always"}}, "memory_config.recall", id="an unknown recall"),
        pytest.param({"memory_config": {"top_k": 21}}, "memory_config.top_k", id="too many records"),
        pytest.param({"memory_config": {"min_score": 1.1}}, "memory_config.min_score", id="a floor above 1"),
        pytest.param({"memory_config": {"min_score": -0.1}}, "memory_config.min_score", id="a floor below 0"),
        pytest.param({"memory_config": {"filter": {"kind": {"$like": "f"}}}}, "memory_config.filter", id="no operator"),
        pytest.param({"memory_config": {"filter": {"a b": 1}}}, "memory_config.filter", id="a filter without a name"),
        pytest.param({"memory_config": {"filter": ["fact"]}}, "memory_config.filter", id="a filter that is a list"),
        pytest.param({"memory_config": {"record_tokens": 49}}, "memory_config.record_tokens", id="too small a record"),
        pytest.param({"memory_config": {"recall_tokens": 49}}, "memory_config.recall_tokens", id="too small a recall"),
        pytest.param({"memory_config": {"scope": "x"}}, "memory_config.scope", id="a scope"),
        pytest.param({"limits": {"max_turns": 0}}, "limits.max_turns", id="no turn"),
        pytest.param({"limits": {"max_turns": 51}}, "limits.max_turns", id="too many turns"),
        pytest.param({"limits": {"context_tokens": 499}}, "limits.context_tokens", id="too small a context"),
        pytest.param({"model": {"provider": "magic"}}, "model.provider", id="an unknown provider"),
        pytest.param({"model": {"temperature": 2.1}}, "model.temperature", id="too hot"),
        pytest.param({"model": {"max_output_tokens": 0}}, "model.max_output_tokens", id="no output"),
        pytest.param({"tools": ["a", "a"]}, "", id="a tool named twice"),
        pytest.param({"tools": ["A"]}, "tools.0", id="an invalid tool"),
        pytest.param({"delegates": ["a", "a"]}, "", id="a delegate named twice"),
        pytest.param({"delegates": ["clerk"]}, "", id="delegation to itself"),
        *(
            pytest.param({"tools": [name]}, "", id=f"{name} as a gateway tool")
            for name in ("recall_memory", "store_memory", "get_working_memory", "set_working_memory", "delegate")
        ),
    ],
)
def test_an_invalid_definition_is_refused_and_says_where(change: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError) as raised:
        AgentDefinition.model_validate({**agent("clerk"), **change})
    assert [".".join(map(str, error["loc"])) for error in raised.value.errors()] == [place]


def test_the_catalogue_has_what_was_staged() -> None:
    staged = {"agents": {"clerk": agent("clerk")}, "scripts": {"clerk": {"name": "clerk", "rules": []}}}
    catalogue = AgentCatalogue.from_json(json.dumps(staged))
    assert catalogue.agent("clerk").instructions == "Do clerk."
    assert catalogue.script("clerk") == {"name": "clerk", "rules": []}


def test_what_was_not_staged_is_named() -> None:
    catalogue = AgentCatalogue.from_json('{"agents": {}, "scripts": {}}')
    with pytest.raises(NotFound) as unknown:
        catalogue.agent("clerk")
    assert unknown.value.code == "unknown_agent"
    for name in ("clerk", None):
        with pytest.raises(Misconfigured) as missing:
            catalogue.script(name)
        assert missing.value.code == "no_such_script"


def test_loading_what_was_staged_compiles_no_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand agents with a schema each took seconds of every isolate's first request."""
    staged = AgentDefinition.model_validate(agent("clerk", output_schema={"type": "object"})).model_dump(mode="json")

    def compiled(_: object) -> None:
        raise AssertionError("a schema was compiled again")

    monkeypatch.setattr(definitions, "compile_object_schema", compiled)
    catalogue = AgentCatalogue.from_json(json.dumps({"agents": {"clerk": staged}, "scripts": {}}))
    assert catalogue.agent("clerk").output_schema == {"type": "object"}
