"""What holds when nobody says otherwise: defaults and bounds that the requirements and the pages name, spelled out.

They are numbers here, not the code's own constants: whoever changes a default changes what every deployment does, and
changes it here as well.
"""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest
from pydantic import BaseModel

from retain import scheduled_steps
from retain.admin import maintenance
from retain.admin.mcp import RecallArguments
from retain.admin.memories.memory_bodies import RecallBody
from retain.agents import definitions
from retain.agents.queueing import reports, wakeups
from retain.contracts.vectors import VectorMemory
from retain.errors import Misconfigured
from retain.evaluation.dataset import RecallTarget
from retain.items.demotion import AgedDemotion
from retain.items.placement import MATRIX, MAX_TTL_S, MIN_TTL_S, TIER_LATENCY_MS, ItemPlacement
from retain.items.rules import MemoryRules, Seen, Session
from retain.items.tiers.protocols import HOT_TTL_S
from retain.memory import working
from retain.retention import TEXT_KEPT_MS
from retain.settings import ModelSettings, NamespaceSettings, Settings, read_settings

DAY_S = 86_400
Bound = int | float | bool | str | None


def bounds(model: type[BaseModel]) -> dict[str, tuple[Bound, ...]]:
    """Return the default of each field that has a plain one, then its least and its greatest value if it has them."""
    found: dict[str, tuple[Bound, ...]] = {}
    for name, field in model.model_json_schema()["properties"].items():
        limits = {key: value for part in (field, *field.get("anyOf", ())) for key, value in part.items()}
        least, most = (
            next((limits[f"{prefix}{end}"] for prefix in ("", "exclusive") if f"{prefix}{end}" in limits), None)
            for end in ("minimum", "maximum")
        )
        least = limits.get("exclusiveMinimum", least)
        if not isinstance(field.get("default"), dict | list):
            found[name] = (field.get("default"), least, most)
    return found


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (definitions.ProfileConfig, {"records": (20, 1, 100), "tokens": (500, 50, 10_000)}),
        (
            definitions.ConversationConfig,
            {
                "messages": (40, 0, 200),
                "tokens": (4_000, 200, 200_000),
                "summary_tokens": (600, 0, 10_000),
                "attachments": (4, 0, 20),
            },
        ),
        (
            definitions.MemoryConfig,
            {
                "long_term_enabled": (False, None, None),
                "recall": ("tool", None, None),
                "store": (True, None, None),
                "share": (False, None, None),
                "episodes": (10, 0, 50),
                "episodes_from": ("instance", None, None),
                "user": ("agent", None, None),
                "top_k": (5, 1, 20),
                "profile": (None, None, None),
                "facts": (False, None, None),
                "forget": (False, None, None),
                "learn": (None, None, None),
                "min_score": (0.3, 0, 1),
                "record_tokens": (500, 50, 20_000),
                "recall_tokens": (2_000, 50, 100_000),
            },
        ),
        (
            definitions.ModelConfig,
            {
                "provider": (None, None, None),
                "name": (None, None, None),
                "script": (None, None, None),
                "temperature": (None, 0, 2),
                "max_output_tokens": (1024, 1, 32_768),
            },
        ),
        (
            definitions.Limits,
            {
                "max_turns": (8, 1, 50),
                "max_tool_calls": (32, 1, 128),
                "context_tokens": (16_000, 500, 1_000_000),
                "run_tokens": (None, 1, None),
                "max_delegations": (20, 0, 1_000),
                "approval_hours": (24, 0, 720),
                "model_wait_minutes": (30, 0, 1440),
                "run_minutes": (60, 0, 1440),
                "busy": ("refuse", None, None),
                "max_queued_runs": (16, 1, 100),
                "queue_minutes": (60, 0, 1440),
            },
        ),
    ],
    ids=lambda one: one.__name__ if isinstance(one, type) else "",
)
def test_the_fields_of_an_agent_s_definition(model: type[BaseModel], expected: dict[str, tuple[Bound, ...]]) -> None:
    assert bounds(model) == expected


def test_an_agent_s_texts_and_lists() -> None:
    fields = definitions.AgentDefinition.model_json_schema()["properties"]
    assert (fields["description"]["minLength"], fields["description"]["maxLength"]) == (1, 500)
    assert (fields["instructions"]["minLength"], fields["instructions"]["maxLength"]) == (1, 20_000)
    workflows = fields["procedures"]
    [task] = workflows["patternProperties"].values()
    assert (workflows["maxProperties"], task["minProperties"], task["maxProperties"]) == (20, 1, 20)
    [workflow] = task["patternProperties"].values()
    assert (workflow["minLength"], workflow["maxLength"]) == (1, 4_000)
    assert fields["working_memory"]["default"] is False
    assert definitions.AgentDefinition.model_config == {"extra": "forbid", "frozen": True, "strict": True}


def test_the_version_of_a_policy_is_a_text_of_one_to_a_hundred_characters() -> None:
    policy = definitions.DecisionConfig.model_json_schema()["properties"]["policy"]
    [text] = [one for one in policy["anyOf"] if one["type"] == "string"]
    assert (text["minLength"], text["maxLength"], policy["default"]) == (1, 100, None)


@pytest.mark.parametrize("hours", [0, 721])
def test_an_approval_waits_for_more_than_nothing_and_at_most_thirty_days(hours: float) -> None:
    with pytest.raises(ValueError, match="approval_hours"):
        definitions.Limits(approval_hours=hours)


def test_a_recall_returns_five_memories_and_a_search_of_vectors_ten_documents() -> None:
    assert [model.model_fields["top_k"].default for model in (RecallBody, RecallArguments, RecallTarget)] == [5, 5, 5]
    assert inspect.signature(VectorMemory.search).parameters["top_k"].default == 10


def test_the_matrix_of_placements() -> None:
    assert {
        "session_state": ItemPlacement("hot", ttl_s=900, access="per_request", latency_ms=50),
        "cart": ItemPlacement("hot", ttl_s=DAY_S, access="many_per_session", latency_ms=100),
        "search_queries": ItemPlacement("hot", ttl_s=300, access="many_per_session", latency_ms=100),
        "preferences": ItemPlacement("warm", None, 90 * DAY_S, "preferences/", None, "few_per_session", 500),
        "conversation": ItemPlacement("warm", 30 * DAY_S, None, "conversations/", None, "few_per_session", 500),
        "order_history": ItemPlacement("cold", None, 220_903_200, "orders-archive/", 365 * DAY_S, "rare", 2000),
        "product_images": ItemPlacement("cold", None, None, "uploads/", 30 * DAY_S, "rare", 5000),
        "system_logs": ItemPlacement("cold", None, 90 * DAY_S, "logs/", None, "rare", 10_000),
    } == MATRIX
    assert dict(TIER_LATENCY_MS) == {"hot": 50, "warm": 500, "cold": 2000}


def test_lifetimes() -> None:
    assert (HOT_TTL_S, MIN_TTL_S, MAX_TTL_S) == (900, 60, 3650 * DAY_S)
    assert (working.TTL_S, working.MAX_TOTAL_BYTES) == (3600, 131_072)
    assert TEXT_KEPT_MS == 90 * DAY_S * 1000
    assert wakeups.IDLE_MS == DAY_S * 1000
    assert (reports.WAIT_S, reports.WAIT_TURNS, reports.CANCEL_WAIT_TURNS) == (0.25, 100, 20)
    policy = AgedDemotion()
    assert (policy.idle_days, policy.large_idle_days, policy.large_bytes, policy.copy_days) == (30, 7, 100_000, 7)
    assert (policy.rare_idle_days, policy.frequent, policy.keep_bytes) == (7, 7.0, 1024)


def test_a_session_has_seen_nothing_of_an_item_that_it_does_not_know() -> None:
    assert Session().of("tenant:acme:user:ann:cart") == Seen(0, present=False, until_ms=None)


def test_the_bounds_of_a_daily_brief() -> None:
    assert (maintenance.WORK_CALLS, maintenance.SETTLING_CALLS, maintenance.JOBS_A_TIME) == (650, 300, 10)
    assert (scheduled_steps.CALLS_OF_OTHERS, dict(scheduled_steps.CALLS)) == (
        100,
        {"consolidation": 150, "mutations": 80},
    )
    assert (maintenance.TENANTS_PER_CALL, maintenance.WRITES_PER_CALL) == (100, 200)
    assert maintenance.REFUSALS_SHOWN_MS == 7 * DAY_S * 1000


def test_what_a_deployment_gets_that_sets_only_the_size_of_its_vectors() -> None:
    unset = ModelSettings("", "", "", "", True, "CHAT_API_KEY")
    assert read_settings({"EMBEDDING_DIMENSIONS": "1"}) == Settings(
        environment="production",
        access_team_domain="",
        access_audience="",
        chat=unset,
        accounts={
            name: ModelSettings(name, "", "", "", True, f"{name.upper()}_API_KEY") for name in ("openai", "anthropic")
        },
        embedding=replace(unset, key_name="EMBEDDING_API_KEY"),
        embedding_dimensions=1,
        rerank_model="",
        extractor="rules",
        namespaces=NamespaceSettings(False, False, ""),
        credentials_key="",
        previous_credentials_key="",
        runs_retention_days=400,
        evaluation_judge="off",
        memory_placements="",
        memory_pii_fields="",
        memory_key="",
        previous_memory_key="",
    )
    with pytest.raises(Misconfigured, match="EMBEDDING_DIMENSIONS"):
        read_settings({})


def test_settings_that_are_made_by_hand_have_the_same_defaults() -> None:
    model, namespaces = ModelSettings("p", "n", "b", "k"), NamespaceSettings()
    made = Settings("", "", "", model, {}, model, 1, "", "", namespaces, "", "")
    assert (made.runs_retention_days, made.evaluation_judge, made.memory_placements) == (400, "off", "")
    assert (made.memory_pii_fields, made.memory_key, made.previous_memory_key) == ("", "", "")
    assert (model.allow_requests, model.key_name, made.development) == (True, "", False)
    assert (namespaces.write_canonical, namespaces.compat_read, namespaces.legacy_patterns) == (False, False, "")


def test_rules_of_tiered_memory_are_decided_by_its_tiers() -> None:
    assert MemoryRules() == MemoryRules(None, None, None, None, "session")
