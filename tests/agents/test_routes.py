"""The agents' routes: what they check before an instance is asked, and what they answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.calls.asked import MAX_INPUT_BYTES, MAX_METADATA_BYTES, MAX_SCHEMA_BYTES
from retain.agents.catalogue import AgentCatalogue
from retain.agents.context import AgentsContext
from retain.agents.routes import ROUTER
from retain.errors import Conflict, InvalidInput, LimitExceeded, NotFound, RetainError
from retain.http import Request, Response
from retain.tenants.register import Tenants
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import Deployment, LocalInstances, Upstream

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]


async def context_of(deployment: Deployment) -> AgentsContext:
    tenants = Tenants(deployment.sql, deployment.clock)
    await tenants.register("acme")
    instances = LocalInstances(deployment)
    sql, files = deployment.sql, deployment.attachments
    return AgentsContext(tenants, deployment.agents, instances, sql, deployment.clock, files)


async def asked(
    context: AgentsContext, method: str, path: str, body: Any = None, key: str | None = None
) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    text = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    headers = {} if key is None else {"idempotency-key": key}
    answer = await ROUTER.handle(context, Request(method, path, {}, headers, text, "host", "request-1"))
    return answer.status, json.loads(answer.body)


async def run(context: AgentsContext, body: Any, key: str | None = None, path: str = "acme/sdr") -> tuple[int, Any]:
    return await asked(context, "POST", f"/v1/agents/{path}/run", body, key)


async def test_a_run_answers_its_result_and_the_instance_is_shown(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat(says("hi")))
    context = await context_of(deployment)
    status, result = await run(context, {"input": "hello", "instance_id": "desk-1"})
    assert (status, result["status"], result["output"], result["instance_id"]) == (200, "completed", "hi", "desk-1")
    status, shown = await asked(context, "GET", "/v1/agents/acme/sdr/instances/desk-1")
    assert (status, shown["turn_state"][0]["run_id"]) == (200, result["run_id"])


async def test_without_an_instance_each_run_gets_a_new_one(deploy: Deploy) -> None:
    context = await context_of(deploy(chat=SteppedChat()))
    instances = {(await run(context, {"input": "hello"}))[1]["instance_id"] for _ in range(3)}
    assert len(instances) == 3


async def test_an_equal_key_without_an_instance_gets_the_same_run(deploy: Deploy) -> None:
    context = await context_of(deploy(chat=SteppedChat(says("one"), says("two"))))
    first = await run(context, {"input": "hello"}, key="k")
    assert await run(context, {"input": "hello"}, key="k") == first
    assert (await run(context, {"input": "hello"}, key="K"))[1]["output"] == "two"
    with pytest.raises(Conflict):
        await run(context, {"input": "other"}, key="k")


async def test_a_run_in_the_background_is_answered_when_it_has_begun(deploy: Deploy) -> None:
    chat = SteppedChat(says("hi"), hold=True)
    deployment = deploy(chat=chat)
    context = await context_of(deployment)
    body = json.dumps({"input": "hello", "instance_id": "desk", "background": True})
    request = Request("POST", "/v1/agents/acme/sdr/run", {}, {"idempotency-key": "k"}, body, "host", "request-1")
    answer = await ROUTER.handle(context, request)
    begun = json.loads(answer.body)
    assert (answer.status, begun["status"], begun["instance_id"]) == (202, "running", "desk")
    address = answer.headers["location"]
    assert address == f"/v1/agents/acme/sdr/instances/desk/runs/{begun['run_id']}"
    chat.let_go()
    await deployment.settled()
    ended = await asked(context, "GET", address)
    assert (ended[0], ended[1]["status"], ended[1]["output"]) == (200, "completed", "hi")
    assert await asked(context, "POST", "/v1/agents/acme/sdr/run", body, "k") == ended


async def test_what_keeps_a_background_run_from_beginning_is_answered_at_once(deploy: Deploy) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(chat=chat)
    context = await context_of(deployment)
    asked_for = {"input": "hello", "instance_id": "desk", "background": True}
    await run(context, asked_for)
    with pytest.raises(Conflict) as refused:
        await run(context, asked_for)
    assert refused.value.code == "instance_busy"
    chat.let_go()
    await deployment.settled()


async def test_a_run_that_is_still_running_is_answered_with_202(deploy: Deploy) -> None:
    chat = SteppedChat(hold=True)
    context = await context_of(deploy(chat=chat))
    first = asyncio.create_task(run(context, {"input": "hello"}, key="k"))
    await chat.asked.wait()
    status, result = await run(context, {"input": "hello"}, key="k")
    assert (status, result["status"]) == (202, "running")
    chat.let_go()
    assert (await first)[1]["run_id"] == result["run_id"]


@pytest.mark.parametrize(
    ("path", "body", "key", "kind", "code"),
    [
        pytest.param("acme/sdr", "{", None, InvalidInput, "malformed_json", id="not JSON"),
        pytest.param("acme/sdr", {}, None, InvalidInput, "invalid_body", id="no input"),
        pytest.param("acme/sdr", {"input": 7}, None, InvalidInput, "invalid_body", id="a number as input"),
        pytest.param("acme/sdr", {"input": None}, None, InvalidInput, "invalid_body", id="null as input"),
        pytest.param("acme/sdr", {"input": "x", "tenant_id": "b"}, None, InvalidInput, "invalid_body", id="a tenant"),
        pytest.param(
            "acme/sdr", {"input": "x", "by": "person:b"}, None, InvalidInput, "invalid_body", id="a principal"
        ),
        pytest.param("acme/sdr", {"input": "x", "depth": -9}, None, InvalidInput, "invalid_body", id="a depth"),
        pytest.param(
            "acme/sdr", {"input": "x", "metadata": []}, None, InvalidInput, "invalid_body", id="metadata list"
        ),
        pytest.param("acme/sdr", ["x"], None, InvalidInput, "invalid_body", id="a list"),
        pytest.param(
            "acme/sdr",
            {"input": "x", "stream": True, "background": True},
            None,
            InvalidInput,
            "invalid_body",
            id="streamed and in the background",
        ),
        pytest.param(
            "acme/sdr", {"input": "x", "instance_id": "a:b"}, None, InvalidInput, "invalid_instance_id", id="delimiter"
        ),
        pytest.param(
            "acme/sdr",
            {"input": "x", "instance_id": ""},
            None,
            InvalidInput,
            "invalid_instance_id",
            id="empty instance",
        ),
        pytest.param("acme/Sdr", {"input": "x"}, None, InvalidInput, "invalid_agent_type", id="an invalid agent"),
        pytest.param("acme/nobody", {"input": "x"}, None, NotFound, "unknown_agent", id="an unknown agent"),
        pytest.param("ACME/sdr", {"input": "x"}, None, InvalidInput, "invalid_tenant", id="an invalid tenant"),
        pytest.param("%2A/sdr", {"input": "x"}, None, InvalidInput, "invalid_tenant", id="a wildcard tenant"),
        pytest.param("rival/sdr", {"input": "x"}, None, NotFound, "unknown_tenant", id="an unknown tenant"),
        pytest.param("acme/sdr", {"input": "x"}, "", InvalidInput, "invalid_idempotency_key", id="an empty key"),
        pytest.param("acme/sdr", {"input": "x"}, "k" * 256, InvalidInput, "invalid_idempotency_key", id="a long key"),
        pytest.param(
            "acme/sdr",
            {"input": "x" * (MAX_INPUT_BYTES + 1)},
            None,
            LimitExceeded,
            "input_too_large",
            id="a large input",
        ),
        pytest.param(
            "acme/sdr",
            {"input": "x", "metadata": {"k": "x" * MAX_METADATA_BYTES}},
            None,
            LimitExceeded,
            "metadata_too_large",
            id="large metadata",
        ),
        pytest.param(
            "acme/sdr",
            {"input": "x", "output_schema": {"type": "object", "title": "x" * MAX_SCHEMA_BYTES}},
            None,
            LimitExceeded,
            "schema_too_large",
            id="a large schema",
        ),
        pytest.param(
            "acme/sdr",
            {"input": "x", "output_schema": {"$ref": "https://example.com/schema"}},
            None,
            InvalidInput,
            "invalid_schema",
            id="a schema that leads outside",
        ),
        pytest.param(
            "acme/sdr",
            {"input": "x", "output_schema": {"type": "array"}},
            None,
            InvalidInput,
            "invalid_schema",
            id="a schema of a list",
        ),
    ],
)
async def test_an_invalid_request_is_refused_before_an_instance_is_asked(
    deploy: Deploy, path: str, body: Any, key: str | None, kind: type[RetainError], code: str
) -> None:
    deployment = deploy(chat=SteppedChat())
    context = await context_of(deployment)
    with pytest.raises(kind) as raised:
        await run(context, body, key, path)
    assert raised.value.code == code
    assert deployment.storages == {}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("acme/sdr/instances/a%3Ab", "invalid_instance_id", id="delimiter"),
        pytest.param("acme/nobody/instances/a", "unknown_agent", id="an unknown agent"),
        pytest.param("rival/sdr/instances/a", "unknown_tenant", id="an unknown tenant"),
    ],
)
async def test_only_what_exists_is_shown(deploy: Deploy, path: str, code: str) -> None:
    deployment = deploy()
    context = await context_of(deployment)
    with pytest.raises(RetainError) as raised:
        await asked(context, "GET", f"/v1/agents/{path}")
    assert raised.value.code == code
    assert deployment.storages == {}


PAY = {"tools": ["pay"], "approval": ["pay"]}


async def waiting_desk(deploy: Deploy, agents: Agents) -> tuple[AgentsContext, dict[str, Any], str]:
    """Return a run that waits for a person, and its path."""
    chat = SteppedChat(calls(("pay", {"order": "A"})), says("paid"))
    context = await context_of(deploy(agents(clerk=PAY), upstreams=[Upstream("pay", True)], chat=chat))
    status, waiting = await run(context, {"input": "hello", "instance_id": "desk"}, path="acme/clerk")
    assert (status, waiting["status"]) == (202, "waiting")
    return context, waiting, f"/v1/agents/acme/clerk/instances/desk/runs/{waiting['run_id']}"


async def test_a_waiting_run_is_shown_and_after_its_answer_so_is_its_result(deploy: Deploy, agents: Agents) -> None:
    context, waiting, path = await waiting_desk(deploy, agents)
    assert await asked(context, "GET", path) == (200, waiting)
    body = {"call": waiting["waiting_for"]["call"], "decision": "approve"}
    assert (await asked(context, "POST", f"{path}/resume", body))[0] == 202
    for _ in range(50):
        await asyncio.sleep(0)
    status, result = await asked(context, "GET", path)
    assert (status, result["output"]) == (200, "paid")
    assert (await asked(context, "POST", f"{path}/resume", body)) == (200, result)
    assert (await asked(context, "POST", f"{path}/cancel")) == (200, result)


async def test_a_run_is_cancelled_in_the_name_of_the_caller(deploy: Deploy, agents: Agents) -> None:
    context, _, path = await waiting_desk(deploy, agents)
    body = '{"reason": "enough"}'
    request = Request("POST", f"{path}/cancel", {}, {}, body, "host", "request-1", caller="ann@example.com")
    answer = await ROUTER.handle(context, request)
    error = {"code": "cancelled", "message": "enough", "by": "person:ann@example.com"}
    assert (answer.status, json.loads(answer.body)["error"]) == (200, error)


async def test_a_streamed_run_answers_events_and_nothing_after_the_last(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    context = await context_of(deployment)
    body = json.dumps({"input": "hello", "instance_id": "desk", "stream": True})

    async def posted(**more: str) -> Response:
        headers = {"idempotency-key": "k", **{name.replace("_", "-"): value for name, value in more.items()}}
        return await ROUTER.handle(
            context, Request("POST", "/v1/agents/acme/clerk/run", {}, headers, body, "host", "request-1")
        )

    answer = await posted()
    assert (answer.status, answer.body) == (200, "")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.stream is not None
    pieces = [piece async for piece in answer.stream]
    assert "event: run.completed" in pieces[-1]
    last, run_id = pieces[-1].split("\n")[0].removeprefix("id: "), json.loads(pieces[-1].split("data: ")[1])["run_id"]
    events = f"/v1/agents/acme/clerk/instances/desk/runs/{run_id}/events"
    for after, status in ((last, 204), ("0", 200)):
        request = Request("GET", events, {}, {"last-event-id": after}, "", "host", "request-1")
        assert (await ROUTER.handle(context, request)).status == status
        assert (await posted(last_event_id=after)).status == status
    await deployment.settled()


UNKNOWN = "01HZZZZZZZZZZZZZZZZZZZZZZZ"


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        pytest.param("GET", f"desk/runs/{UNKNOWN}", None, "no_such_run", id="an unknown run is not shown"),
        pytest.param("GET", f"desk/runs/{UNKNOWN}/events", None, "no_such_run", id="nor followed"),
        pytest.param("POST", f"desk/runs/{UNKNOWN}/cancel", None, "no_such_run", id="nor cancelled"),
        pytest.param("GET", "desk/runs/x", None, "invalid_id", id="an invalid id"),
        pytest.param("GET", f"a%3Ab/runs/{UNKNOWN}", None, "invalid_instance_id", id="the delimiter"),
        pytest.param(
            "POST", f"desk/runs/{UNKNOWN}/cancel", {"by": "me"}, "invalid_body", id="a body that names who cancels"
        ),
        pytest.param("POST", f"desk/runs/{UNKNOWN}/resume", {}, "invalid_body", id="an answer without a call"),
        pytest.param(
            "POST",
            f"desk/runs/{UNKNOWN}/resume",
            {"call": "1.0", "decision": "maybe"},
            "invalid_body",
            id="no decision",
        ),
        pytest.param(
            "POST",
            f"desk/runs/{UNKNOWN}/resume",
            {"call": "1.0", "decision": "approve", "by": "boss@example.com"},
            "invalid_body",
            id="a body that names who answers",
        ),
    ],
)
async def test_what_cannot_be_done_to_a_run_is_refused(
    deploy: Deploy, agents: Agents, method: str, path: str, body: Any, code: str
) -> None:
    context, _, _ = await waiting_desk(deploy, agents)
    with pytest.raises(RetainError) as refused:
        await asked(context, method, f"/v1/agents/acme/clerk/instances/{path}", body)
    assert refused.value.code == code
