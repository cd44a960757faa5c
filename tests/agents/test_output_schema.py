"""An output schema: of the definition or of the run. What a run answers fits it, or the run fails and says where not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from retain.agents.catalogue import AgentCatalogue
from retain.agents.definitions import AgentDefinition
from retain.errors import Conflict
from retain.json_schema import Check, compile_schema
from retain.models.providers import structured
from retain.models.providers.structured import CheckedChat
from tests.agents.conftest import agent
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import Deployment, Upstream

Agents = Callable[..., AgentCatalogue]
Deploy = Callable[..., Deployment]
VERDICT = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
REASON = {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]}


def asked_for(chat: SteppedChat) -> list[Any]:
    """Return the schema of each request to the model."""
    return [request.schema for request in chat.requests]


async def test_a_run_s_answer_fits_its_schema_also_after_tools(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(calls(("pay", {"order": "AB-1"})), says('```json\n{"approved": true}\n```'))
    deployment = deploy(agents(clerk={"tools": ["pay"]}), upstreams=[Upstream("pay", True)], chat=CheckedChat(chat))
    result = await deployment.run("clerk", "hello", output_schema=VERDICT)
    assert (result["status"], json.loads(result["output"])) == ("completed", {"approved": True})
    assert asked_for(chat) == [VERDICT, VERDICT]


async def test_the_schema_of_a_run_is_compiled_once_for_all_of_its_answers(
    deploy: Deploy, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Any] = []

    def counted(schema: Mapping[str, object]) -> Check:
        compiled.append(schema)
        return compile_schema(schema)

    monkeypatch.setattr(structured, "compile_schema", counted)
    own = {**VERDICT, "title": "of this test alone"}
    payments = [calls(("pay", {"order": order})) for order in "ABC"]
    chat = SteppedChat(*payments, says('{"approved": 1}'), says('{"approved": true}'), says('{"approved": true}'))
    deployment = deploy(agents(clerk={"tools": ["pay"]}), upstreams=[Upstream("pay", True)], chat=CheckedChat(chat))
    for text in ("one", "two"):
        assert (await deployment.run("clerk", text, output_schema=own))["output"] == '{"approved": true}'
    assert compiled == [own]


async def test_the_schema_of_a_run_replaces_the_definition_s(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(says('{"reason": "late"}'), says('{"approved": false}'), says('{"reason": "late"}'))
    deployment = deploy(agents(clerk={"output_schema": REASON}), chat=CheckedChat(chat))
    asked: list[tuple[str, dict[str, Any]]] = [("one", {}), ("two", {"output_schema": VERDICT}), ("three", {})]
    outputs = [
        json.loads((await deployment.run("clerk", "hello", instance=name, **more))["output"]) for name, more in asked
    ]
    assert outputs == [{"reason": "late"}, {"approved": False}, {"reason": "late"}]
    assert asked_for(chat) == [REASON, VERDICT, REASON]


async def test_an_answer_that_breaks_the_schema_is_asked_for_again_and_then_fails_the_run(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(says('{"approved": "yes"}'), says('{"approved": 1}'), says("fine"), says('{"approved": true}'))
    deployment = deploy(agents(clerk={}), chat=CheckedChat(chat))
    failed = await deployment.run("clerk", "hello", instance="one", output_schema=VERDICT)
    assert (failed["status"], failed["output"], failed["error"]["code"]) == ("failed", None, "schema_mismatch")
    assert "at /approved, it breaks the schema's rule 'type'" in failed["error"]["message"]
    assert failed["usage"]["input_tokens"] > 0
    repaired = await deployment.run("clerk", "hello", instance="two", output_schema=VERDICT)
    assert (repaired["status"], repaired["output"]) == ("completed", '{"approved": true}')


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('{"approved": true, "by": NaN}', id="NaN"),
        pytest.param('{"approved": true, "by": 1e999}', id="infinite"),
        pytest.param(r'{"approved": true, "by": "\ud83d"}', id="half a character"),
        pytest.param('{"approved": false, "approved": true}', id="a name twice"),
    ],
)
async def test_an_answer_that_others_cannot_read_as_json_is_asked_for_again(
    deploy: Deploy, agents: Agents, answer: str
) -> None:
    chat = SteppedChat(says(answer), says('{"approved": true}'))
    deployment = deploy(agents(clerk={}), chat=CheckedChat(chat))
    repaired = await deployment.run("clerk", "hello", output_schema=VERDICT)
    assert (repaired["status"], repaired["output"]) == ("completed", '{"approved": true}')


async def test_the_schema_belongs_to_the_request(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(says('{"approved": true}'))
    deployment = deploy(agents(clerk={}), chat=CheckedChat(chat))
    first = await deployment.run("clerk", "hello", key="k", output_schema=VERDICT)
    assert await deployment.run("clerk", "hello", key="k", output_schema=VERDICT) == first
    with pytest.raises(Conflict, match="another request"):
        await deployment.run("clerk", "hello", key="k", output_schema=REASON)


def test_a_definition_with_a_schema_that_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(ValidationError, match="not a usable JSON Schema"):
        AgentDefinition.model_validate(agent("clerk", output_schema={"$ref": "https://example.com/schema"}))
    with pytest.raises(ValidationError, match="no object can match"):
        AgentDefinition.model_validate(agent("clerk", output_schema={"type": "string"}))
