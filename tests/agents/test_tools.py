"""Tools: errors are data for the model, no argument can name a scope, answers are cut to what a model may read."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.agents.runs.events import ToolAnswered
from retain.agents.tools.built_in import (
    MAX_RESULT_BYTES,
    CallContext,
    GetWorkingMemory,
    RecallMemory,
    SetWorkingMemory,
    StoreMemory,
    Tool,
    ToolResult,
    run_tool,
)
from retain.agents.tools.proxied import ProxiedTool
from retain.errors import Conflict, LimitExceeded, QuotaExceeded, RetainError, Unavailable
from retain.json_text import JsonObject
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from retain.memory.working import COPIES_SCHEMA, SCHEMA, WorkingMemory
from retain.models.chat import ToolSpec
from tests.support.faults import Crash
from tests.support.instances import Deployment, Upstream, shipped_embedder
from tests.support.object_storage import ObjectStorage

CONTEXT = CallContext("01HZZZZZZZZZZZZZZZZZZZZZZZ", 2, 1)
SCOPE_NAMES = (
    "tenant_id",
    "tenant",
    "agent_id",
    "agent_type",
    "namespace",
    "filter",
    "scope_id",
    "scope",
    "below",
    "ids",
)


@asynccontextmanager
async def memory_tools(tenant: str = "acme", agent: str = "sdr") -> AsyncIterator[tuple[Deployment, dict[str, Tool]]]:
    """Give the built-in tools of an agent on real stores."""
    storage = ObjectStorage()
    storage.run(SCHEMA)
    storage.run(COPIES_SCHEMA)
    with closing(Deployment()) as deployment:
        semantic = SemanticMemory(
            Scope(tenant, agent), deployment.sql, deployment.index, shipped_embedder(), deployment.clock
        )
        working = WorkingMemory(storage, deployment.kv, deployment.clock, tenant, agent, "main", lambda _: [])
        tools: list[Tool] = [
            RecallMemory(semantic),
            StoreMemory(semantic),
            GetWorkingMemory(working),
            SetWorkingMemory(working),
        ]
        yield deployment, {tool.spec.name: tool for tool in tools}
    storage.close()


async def answered(tools: Mapping[str, Tool], name: str, **arguments: Any) -> Any:
    """Return what the model reads of a call that succeeds."""
    event = await run_tool(tools, name, arguments, CONTEXT)
    assert not event.failed, event.content
    return json.loads(event.content)


async def refused(tools: Mapping[str, Tool], name: str, **arguments: Any) -> str:
    """Return the code of a call that fails."""
    event = await run_tool(tools, name, arguments, CONTEXT)
    assert event.failed, event.content
    code: str = json.loads(event.content)["error"]["code"]
    return code


async def test_what_is_stored_is_recalled_with_its_id_score_and_metadata() -> None:
    async with memory_tools() as (_, tools):
        stored = await answered(tools, "store_memory", content="Ann prefers blue.", metadata={"channel": "mail"})
        assert stored["created"] is True
        assert await answered(tools, "store_memory", content="Ann prefers blue.") == {**stored, "created": False}
        event = await run_tool(tools, "recall_memory", {"query": "what does Ann prefer", "top_k": 3}, CONTEXT)
        [found] = json.loads(event.content)["memories"]
        assert (found["id"], found["content"]) == (stored["id"], "Ann prefers blue.")
        assert found["metadata"] == {"channel": "mail"}
        assert [record_id for record_id, _ in event.recalled] == [stored["id"]]


async def test_five_memories_are_recalled_unless_the_model_asks_for_another_number() -> None:
    async with memory_tools() as (_, tools):
        for number in range(7):
            await answered(tools, "store_memory", content=f"Ann likes tea number {number}.")
        unasked = await answered(tools, "recall_memory", query="What tea does Ann like?")
        six = await answered(tools, "recall_memory", query="What tea does Ann like?", top_k=6)
        assert (len(unasked["memories"]), len(six["memories"])) == (5, 6)


async def test_recalled_text_is_summarised_by_its_ids() -> None:
    async with memory_tools() as (_, tools):
        stored = await answered(tools, "store_memory", content="The code word is Rumpelstiltskin.")
        event = await run_tool(tools, "recall_memory", {"query": "code word"}, CONTEXT)
        assert "Rumpelstiltskin" in event.content
        assert event.summary == f"1 memories recalled: {stored['id']}"
    async with memory_tools() as (_, tools):
        event = await run_tool(tools, "recall_memory", {"query": "code word"}, CONTEXT)
        assert (event.content, event.summary, event.recalled) == ('{"memories": []}', "nothing", ())


@pytest.mark.parametrize("name", SCOPE_NAMES)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("recall_memory", {"query": "secrets"}), ("store_memory", {"content": "mine"})],
    ids=["recall_memory", "store_memory"],
)
async def test_invariant_3_no_argument_can_name_a_scope(tool: str, arguments: dict[str, Any], name: str) -> None:
    async with memory_tools("rival") as (deployment, tools):
        assert await refused(tools, tool, **arguments, **{name: "rival"}) == "invalid_arguments"
        assert await deployment.rows("SELECT 1 FROM memory_records") == []


async def test_invariant_3_no_built_in_tool_declares_an_argument_that_could_name_a_scope() -> None:
    async with memory_tools() as (_, tools):
        for tool in tools.values():
            declared = tool.spec.parameters
            assert declared["additionalProperties"] is False, tool.spec.name
            properties = declared["properties"]
            assert isinstance(properties, dict)
            assert not set(SCOPE_NAMES) & properties.keys(), tool.spec.name


async def test_invariant_3_metadata_that_looks_like_a_scope_changes_no_scope() -> None:
    async with memory_tools() as (deployment, tools):
        hostile = {"tenant_id": "rival", "agent_type": "order_triage", "scope_id": "tenant"}
        await answered(tools, "store_memory", content="Planted.", metadata=hostile)
        [record] = await deployment.rows("SELECT tenant_id, scope_id FROM memory_records")
        assert dict(record) == {"tenant_id": "acme", "scope_id": "agent.sdr"}
        for tenant, agent in (("rival", "order_triage"), ("rival", "sdr"), ("acme", "order_triage")):
            other = SemanticMemory(
                Scope(tenant, agent), deployment.sql, deployment.index, shipped_embedder(), deployment.clock
            )
            assert await answered({"r": RecallMemory(other)}, "r", query="planted") == {"memories": []}


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        pytest.param("recall_memory", {}, "invalid_arguments", id="recall without a query"),
        pytest.param("recall_memory", {"query": ""}, "invalid_arguments", id="recall with an empty query"),
        pytest.param("recall_memory", {"query": " \n"}, "empty_query", id="recall with a blank query"),
        pytest.param("recall_memory", {"query": 7}, "invalid_arguments", id="recall with a number"),
        pytest.param("recall_memory", {"query": "x " * 5000}, "query_too_large", id="recall with a book"),
        pytest.param("recall_memory", {"query": "x", "top_k": 0}, "invalid_top_k", id="recall of none"),
        pytest.param("recall_memory", {"query": "x", "top_k": 10**6}, "invalid_top_k", id="recall of everything"),
        pytest.param("recall_memory", {"query": "x", "top_k": True}, "invalid_arguments", id="top_k is a boolean"),
        pytest.param("recall_memory", {"query": "x", "top_k": "5"}, "invalid_arguments", id="top_k is a text"),
        pytest.param("store_memory", {}, "invalid_arguments", id="store without content"),
        pytest.param("store_memory", {"content": ["x"]}, "invalid_arguments", id="store a list"),
        pytest.param("store_memory", {"content": " "}, "empty_content", id="store a blank"),
        pytest.param("store_memory", {"content": "x" * 1_000_000}, "content_too_large", id="store a book"),
        pytest.param("store_memory", {"content": "\ud800"}, "invalid_content", id="store half a character"),
        pytest.param("store_memory", {"content": "x", "metadata": "y"}, "invalid_arguments", id="metadata is a text"),
        pytest.param("get_working_memory", {"key": ""}, "invalid_arguments", id="get an empty key"),
        pytest.param("get_working_memory", {"instance_id": "x"}, "invalid_arguments", id="get of another instance"),
        pytest.param("set_working_memory", {"key": "k"}, "invalid_arguments", id="set without a value"),
        pytest.param("set_working_memory", {"value": 1}, "invalid_arguments", id="set without a key"),
        pytest.param(
            "set_working_memory", {"key": "a:b", "value": 1}, "invalid_working_key", id="set with a delimiter"
        ),
        pytest.param(
            "set_working_memory", {"key": "k", "value": "x" * 140_000}, "working_memory_full", id="set too much"
        ),
        pytest.param("missing", {}, "no_such_tool", id="a tool that the agent does not have"),
    ],
)
async def test_an_error_in_a_call_is_data_for_the_model(tool: str, arguments: dict[str, Any], code: str) -> None:
    async with memory_tools() as (deployment, tools):
        assert await refused(tools, tool, **arguments) == code
        assert await deployment.rows("SELECT 1 FROM memory_records") == []


async def test_a_note_is_kept_and_read_by_key_or_with_all_others() -> None:
    async with memory_tools() as (_, tools):
        for key, value in (("b", None), ("a", {"x": [1, "é"]})):
            assert await answered(tools, "set_working_memory", key=key, value=value) == {"key": key}
        assert await answered(tools, "get_working_memory", key="a") == {"x": [1, "é"]}
        assert await answered(tools, "get_working_memory", key="c") is None
        assert await answered(tools, "get_working_memory") == {"a": {"x": [1, "é"]}, "b": None}


class Saying:
    """A tool that returns a text, or raises."""

    spec = ToolSpec("say", "Say it.", {"type": "object"})
    idempotent = True

    def __init__(self, what: str | BaseException) -> None:
        self._what = what

    async def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        if isinstance(self._what, BaseException):
            raise self._what
        return ToolResult(self._what)


async def answer_of(what: str | BaseException) -> ToolAnswered:
    return await run_tool({"say": Saying(what)}, "say", {}, CONTEXT)


@pytest.mark.parametrize(
    "error",
    [Unavailable("later"), LimitExceeded("less"), QuotaExceeded("full"), Conflict("look again")],
    ids=lambda error: error.code,
)
async def test_an_error_is_read_by_its_code_and_message(error: RetainError) -> None:
    event = await answer_of(error)
    assert event.failed
    assert json.loads(event.content) == {"error": {"code": error.code, "message": error.message}}


@pytest.mark.parametrize("letter", ["x", '"', "é", "\U0001f600"])
async def test_a_long_error_is_cut_as_an_answer_is_and_stays_json(letter: str) -> None:
    content = (await answer_of(Unavailable(letter * 50_000))).content
    assert MAX_RESULT_BYTES - 24 < len(content) <= MAX_RESULT_BYTES
    error = json.loads(content)["error"]
    assert error["code"] == "unavailable"
    assert set(error["message"].removesuffix(" [cut]")) == {letter}


async def test_an_unexpected_error_is_data_too_and_its_words_stay_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    event = await answer_of(ZeroDivisionError("secret internals"))
    assert (event.failed, json.loads(event.content)["error"]["code"]) == (True, "internal")
    assert "secret internals" not in event.content
    [record] = caplog.records
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)


async def test_the_death_of_the_object_is_not_an_answer() -> None:
    with pytest.raises(Crash):
        await answer_of(Crash())


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        pytest.param("x" * MAX_RESULT_BYTES, True, id="as long as allowed"),
        pytest.param("x" * (MAX_RESULT_BYTES + 1), False, id="a byte too long"),
        pytest.param("é" * (MAX_RESULT_BYTES // 2), True, id="two-byte characters"),
        pytest.param("x" + "é" * (MAX_RESULT_BYTES // 2), False, id="cut inside a character"),
    ],
)
async def test_an_answer_is_cut_at_the_limit_and_says_so(text: str, whole: bool) -> None:
    content = (await answer_of(text)).content
    assert content == text if whole else content.endswith(" [cut]")
    assert text.startswith(content.removesuffix(" [cut]"))
    assert len(content.encode()) <= MAX_RESULT_BYTES + len(" [cut]")


@settings(max_examples=25)
@given(filler=st.text(st.characters(), max_size=40), times=st.integers(700, 1200))
async def test_no_answer_is_longer_than_a_model_may_read(filler: str, times: int) -> None:
    content = (await answer_of(filler * times)).content
    assert len(content.encode("utf-8", "replace")) <= MAX_RESULT_BYTES + len(" [cut]")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (200, None),
        (204, None),
        (399, None),
        (400, "upstream_status"),
        (404, "upstream_status"),
        (429, "upstream_status"),
        (503, "upstream_status"),
    ],
)
async def test_a_gateway_tool_passes_the_upstreams_body_or_reports_its_status(status: int, code: str | None) -> None:
    upstream = Upstream("order", idempotent=False, status=status, body='{"order": "AB-1"}')
    tool = ProxiedTool(ToolSpec("order", "Order.", {"type": "object"}), upstream.idempotent, upstream.call)
    event = await run_tool({"order": tool}, "order", {"order": "AB-1"}, CONTEXT)
    assert upstream.asked == [({"order": "AB-1"}, CONTEXT.key)]
    if code is None:
        assert (event.failed, event.content) == (False, '{"order": "AB-1"}')
    else:
        error = json.loads(event.content)["error"]
        assert (event.failed, error["code"]) == (True, code)
        assert str(status) in error["message"]


async def test_of_a_large_answer_of_the_gateway_only_what_a_model_reads_becomes_text() -> None:
    body = ("\u8a9e" * 1_000_000).encode()

    async def upstream(arguments: JsonObject, idempotency_key: str) -> tuple[int, bytes]:
        assert (arguments, idempotency_key) == ({}, CONTEXT.key)
        return 200, body

    tool = ProxiedTool(ToolSpec("order", "Order.", {"type": "object"}), True, upstream)
    tracemalloc.start()
    try:
        content = (await run_tool({"order": tool}, "order", {}, CONTEXT)).content
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert content == "\u8a9e" * (MAX_RESULT_BYTES // 3) + " [cut]"
    assert peak < len(body) / 2


def test_the_key_of_a_call_names_its_run_turn_and_position() -> None:
    keys = {CallContext(run, turn, index).key for run in ("a", "b") for turn in (1, 2) for index in (0, 1)}
    assert len(keys) == 8
    assert CONTEXT.key == "01HZZZZZZZZZZZZZZZZZZZZZZZ.2.1"
