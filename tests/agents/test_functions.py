"""Function tools: what the model reads of them, and how its calls reach them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.calls.requests import ReadPosition
from retain.agents.catalogue import AgentCatalogue
from retain.agents.tools.built_in import MAX_RESULT_BYTES
from retain.agents.tools.functions import FunctionTool, ToolContext, tool
from retain.errors import Misconfigured, NotFound
from tests.agents import declared_functions
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
MODULE = "tests.agents.declared_functions"
NAMES = ("quote", "send_letter", "burn_files", "note_fact", "fails", "raises")


def test_name_docstring_and_annotations_are_what_the_model_reads() -> None:
    spec = FunctionTool(declared_functions.quote).spec
    assert (spec.name, spec.description) == ("quote", "Say what shipping costs.\n\nPrices are per kilogram.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "order": {"type": "string", "description": "the order's number, as AB-1003."},
            "speed": {"type": "string", "enum": ["slow", "fast"], "default": "slow", "description": "how fast."},
            "weight_kg": {"type": "number", "exclusiveMinimum": 0, "default": 1.0},
        },
        "required": ["order"],
        "additionalProperties": False,
    }


def test_invariant_3_the_context_is_in_no_schema() -> None:
    for name in ("send_letter", "note_fact"):
        spec = FunctionTool(getattr(declared_functions, name)).spec
        assert "context" not in json.dumps(spec.parameters)
        assert spec.parameters["additionalProperties"] is False


def test_a_declaration_is_recorded_and_the_function_stays_callable() -> None:
    declared = {name: FunctionTool(getattr(declared_functions, name)) for name in NAMES}
    assert {name for name, one in declared.items() if one.idempotent} == {"quote", "note_fact"}
    assert {name for name, one in declared.items() if one.requires_approval} == {"burn_files"}
    with pytest.raises(NotFound):
        declared_functions.fails("known")


def no_docstring(a: int) -> int:
    return a


def no_annotation(a) -> int:  # type: ignore[no-untyped-def]
    """Lacks a type."""
    return int(a)


def many(*a: int) -> int:
    """Takes any number."""
    return sum(a)


def two_contexts(a: ToolContext, b: ToolContext) -> int:
    """Takes two contexts."""
    return 0


def unknown_type(a: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
    """Names a type that does not exist."""
    return 0


def no_schema(a: Callable[[int], int]) -> int:
    """Takes what is not JSON."""
    return 0


@pytest.mark.parametrize(
    "function", [no_docstring, no_annotation, many, two_contexts, unknown_type, no_schema], ids=lambda f: f.__name__
)
def test_a_function_that_cannot_be_described_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(Misconfigured) as refused:
        _ = FunctionTool(tool(function)).spec
    assert refused.value.code == "invalid_function"
    assert function.__name__ in refused.value.message


def test_an_ordinary_function_is_not_a_tool(agents: Agents) -> None:
    with pytest.raises(Misconfigured):
        FunctionTool(declared_functions.undeclared)
    with pytest.raises(NotFound) as refused:
        agents().function("nobody")
    assert refused.value.code == "no_such_function"


def test_a_module_that_the_worker_cannot_import_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nowhere", None)
    catalogue = AgentCatalogue({}, {}, {"quote": "nowhere"})
    with pytest.raises(Misconfigured, match=r"the function quote cannot be a tool: .*nowhere") as refused:
        catalogue.function("quote")
    assert refused.value.code == "invalid_function"


async def answers(deploy: Deploy, agents: Agents, *wanted: tuple[str, dict[str, Any]], **fields: Any) -> list[str]:
    """Return what an agent with every function reads of its calls."""
    chat = SteppedChat(calls(*wanted), says("done"))
    clerk = {"functions": list(NAMES), "memory_config": {"long_term_enabled": True}, **fields}
    deployment = deploy(agents(dict.fromkeys(NAMES, MODULE), clerk=clerk), chat=chat)
    await deployment.run("clerk", "go")
    await deployment.settled()
    return [message.content for message in chat.requests[-1].messages if message.role == "tool"]


async def test_an_agent_calls_functions_of_every_kind(deploy: Deploy, agents: Agents) -> None:
    declared_functions.sent.clear()
    quoted, sent, noted = await answers(
        deploy,
        agents,
        ("quote", {"order": "AB-1", "speed": "fast", "weight_kg": 2}),
        ("send_letter", {"text": "hi"}),
        ("note_fact", {"fact": "Ann likes tea."}),
    )
    assert json.loads(quoted) == {"order": "AB-1", "price": 18.0, "on": "2026-03-01"}
    assert sent == "sent for acme/clerk/main"
    assert json.loads(noted) == ["Ann likes tea. is noted by clerk"]
    [(text, key)] = declared_functions.sent
    assert (text, key.split(".")[1:]) == ("hi", ["1", "1"])


@pytest.mark.parametrize(
    ("call", "code"),
    [
        pytest.param(("quote", {}), "invalid_arguments", id="an argument is missing"),
        pytest.param(("quote", {"order": ["x"]}), "invalid_arguments", id="an argument of another type"),
        pytest.param(("quote", {"order": "x", "weight_kg": 0}), "invalid_arguments", id="a value out of bounds"),
        pytest.param(("send_letter", {"text": "x", "context": {}}), "invalid_arguments", id="a context from the model"),
        pytest.param(("send_letter", {"text": "x", "tenant_id": "b"}), "invalid_arguments", id="an unknown argument"),
        pytest.param(("fails", {"how": "known"}), "no_such_order", id="an error of the function's own"),
        pytest.param(("fails", {"how": "unknown"}), "internal", id="an error that nobody expected"),
        pytest.param(("fails", {"how": "unprintable"}), "invalid_result", id="an answer that is not JSON"),
        pytest.param(("fails", {"how": "not a number"}), "invalid_result", id="a number that JSON does not have"),
        pytest.param(("fails", {"how": "exits"}), "internal", id="a function that ends the process"),
        pytest.param(("fails", {"how": "ends everything"}), "internal", id="an error of a class of its own"),
        *(pytest.param(("raises", {"what": what}), "internal", id=what) for what in declared_functions.ENDINGS),
    ],
)
async def test_what_goes_wrong_is_data_for_the_model(
    deploy: Deploy, agents: Agents, call: tuple[str, dict[str, Any]], code: str
) -> None:
    declared_functions.sent.clear()
    [answer] = await answers(deploy, agents, call)
    assert json.loads(answer)["error"]["code"] == code
    assert "secret" not in answer
    assert declared_functions.sent == []


async def test_the_traceback_of_an_unforeseen_error_is_in_the_timeline_and_nowhere_else(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(calls(("fails", {"how": "unknown"}), ("fails", {"how": "known"})), says("done"))
    deployment = deploy(agents({"fails": MODULE}, clerk={"functions": ["fails"]}), chat=chat)
    run = await deployment.ask("clerk", "start", input="go", metadata={}, stream=True)
    await deployment.settled()
    rows = await deployment.rows("SELECT data FROM run_events WHERE kind = 'tool_answered' ORDER BY seq")
    unknown, known = (json.loads(row["data"])["traceback"] for row in rows)
    assert unknown.startswith("Traceback")
    assert "declared_functions.py" in unknown
    assert unknown.endswith("ZeroDivisionError: secret\n")
    assert known is None
    position: dict[str, Any] = {**ReadPosition().to_json()}
    news = await deployment.ask("clerk", "follow", run_id=run["run_id"], wait_s=0, **position)
    assert news["status"] == "completed"
    assert "Traceback" not in json.dumps(news)
    assert all("Traceback" not in message.content for message in chat.requests[-1].messages)


async def test_words_for_numbers_and_half_letters_are_text(deploy: Deploy, agents: Agents) -> None:
    words, half = await answers(deploy, agents, ("fails", {"how": "nan"}), ("fails", {"how": "half a letter"}))
    assert (json.loads(words), half) == ({"x": "NaN, Infinity"}, "x \ufffd")


async def test_a_long_answer_is_cut(deploy: Deploy, agents: Agents) -> None:
    room = {"context_tokens": 100_000}
    [answer] = await answers(deploy, agents, ("quote", {"order": "x" * (MAX_RESULT_BYTES + 1)}), limits=room)
    assert len(answer) <= MAX_RESULT_BYTES + 10
    assert answer.endswith(" [cut]")


async def test_a_function_reaches_no_memory_that_its_agent_does_not_have(deploy: Deploy, agents: Agents) -> None:
    [answer] = await answers(deploy, agents, ("note_fact", {"fact": "x"}), memory_config={"long_term_enabled": False})
    assert json.loads(answer)["error"]["code"] == "memory_disabled"
