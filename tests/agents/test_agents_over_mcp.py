"""Agents as tools of the Model Context Protocol, and runs as its tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

from retain.agents.catalogue import AgentCatalogue
from retain.agents.context import AgentsContext
from retain.agents.routes import ROUTER
from retain.application_keys.tokens import BoundUser
from retain.errors import Forbidden
from retain.http import Request
from retain.mcp.server import PROBLEM
from retain.tenants.register import Tenants
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import Deployment, LocalInstances, Upstream
from tests.support.mcp_client import MODES, Mode, connected

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
PATH = "/v1/agents/acme/mcp"
TASKS = "io.modelcontextprotocol/tasks"
VERSION = "2026-07-28"


class Server:
    """The agents' server of one tenant, with a clerk whose payments a person approves."""

    def __init__(self, deployment: Deployment, bound: BoundUser | None = None) -> None:
        self.deployment = deployment
        self.bound = bound
        tenants = Tenants(deployment.sql, deployment.clock)
        instances = LocalInstances(deployment)
        sql, files = deployment.sql, deployment.attachments
        self.context = AgentsContext(tenants, deployment.agents, instances, sql, deployment.clock, files)

    async def handle(self, request: Request) -> Any:
        await self.context.tenants.register("acme")
        sent = Request(
            request.method, PATH, {}, request.headers, request.body, request.host, request.request_id, bound=self.bound
        )
        return await ROUTER.handle(self.context, sent)

    async def ask(self, method: str, extensions: Mapping[str, object] | None = None, **params: Any) -> Any:
        """Send a message of the era without a handshake, by default of a client with tasks; return the whole answer."""
        declared = {TASKS: {}} if extensions is None else extensions
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {"extensions": declared},
        }
        headers = {"mcp-protocol-version": VERSION, "mcp-method": method}
        named = params.get("taskId", params.get("name"))
        if named is not None:
            headers["mcp-name"] = str(named)
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        request = Request("POST", PATH, {}, headers, json.dumps(message), "host", "request-1")
        answer = await self.handle(request)
        return json.loads(answer.body)

    async def begin(self, text: str = "hello", **more: Any) -> Any:
        """Call the clerk as a task; return the task once nothing happens any more."""
        answer = await self.ask("tools/call", name="clerk", arguments={"input": text, **more})
        assert answer["result"]["resultType"] == "task"
        return await self.task(answer["result"]["taskId"])

    async def task(self, task_id: str) -> Any:
        await self.deployment.settled()
        result = (await self.ask("tasks/get", taskId=task_id))["result"]
        assert (result["resultType"], result["taskId"]) == ("complete", task_id)
        return result


def text_of(answered: CallToolResult) -> str:
    """Return the first text of a call's answer."""
    first = answered.content[0]
    assert isinstance(first, TextContent)
    return first.text


@pytest.fixture
def serve(deploy: Deploy, agents: Agents) -> Callable[..., Server]:
    def make(*replies: Any, bound: BoundUser | None = None) -> Server:
        definition = agents(clerk={"tools": ["pay"], "approval": ["pay"], "limits": {"max_turns": 3}}, other={})
        upstreams = [Upstream("pay", idempotent=False)]
        return Server(deploy(definition, upstreams=upstreams, chat=SteppedChat(*replies)), bound)

    return make


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_calls_an_agent_and_gets_what_its_schema_says(
    serve: Callable[..., Server], mode: Mode
) -> None:
    server = serve(says("Hello."), says("Again."))
    async with connected(f"http://host{PATH}", mode=mode, handle=server.handle) as client:
        tools = (await client.list_tools()).tools
        assert {"clerk", "other"} <= {tool.name for tool in tools}
        assert all(tool.output_schema for tool in tools)
        answered = await client.call_tool("clerk", {"input": "hi", "instance_id": "desk"})
        assert (answered.is_error, text_of(answered)) == (False, "Hello.")
        assert answered.structured_content is not None
        assert (answered.structured_content["instance_id"], answered.structured_content["output"]) == ("desk", "Hello.")
        again = await client.call_tool("clerk", {"input": "and?", "instance_id": "desk"})
        assert text_of(again) == "Again."
        wrong = await client.call_tool("clerk", {"text": "hi"})
        assert wrong.is_error
        assert text_of(wrong).startswith("invalid_body")
        # clients hold what a failed call has as data to the schema: MCP's own one for TypeScript does
        assert wrong.structured_content is None
        assert (wrong.meta or {})[PROBLEM]["status"] == 400


async def test_a_failed_run_is_a_failed_call(serve: Callable[..., Server]) -> None:
    pay: tuple[str, dict[str, str]] = ("pay", {})
    server = serve(calls(pay), calls(pay), calls(pay))
    task = await server.begin()
    assert task["status"] == "input_required"
    for _ in range(3):
        if task["status"] == "input_required":
            [key] = task["inputRequests"]
            await server.ask("tasks/update", taskId=task["taskId"], inputResponses={key: {"action": "decline"}})
            task = await server.task(task["taskId"])
    assert (task["status"], task["result"]["isError"]) == ("completed", True)
    assert task["result"]["_meta"][PROBLEM]["code"] == "turn_limit"


async def test_a_run_is_a_task_that_asks_for_an_approval_and_then_has_the_answer(serve: Callable[..., Server]) -> None:
    server = serve(calls(("pay", {"order": "A"})), says("Paid."))
    task = await server.begin(instance_id="desk")
    assert (task["status"], task["ttlMs"]) == ("input_required", None)
    [(key, request)] = task["inputRequests"].items()
    assert request["method"] == "elicitation/create"
    assert "pay" in request["params"]["message"]
    ignored = {"9.9": {"action": "accept"}, key: {"action": "cancel"}}
    assert (await server.ask("tasks/update", taskId=task["taskId"], inputResponses=ignored))["result"] == {
        "resultType": "complete"
    }
    assert (await server.task(task["taskId"]))["status"] == "input_required"
    given = {key: {"action": "accept", "content": {"reason": "checked"}}}
    for _ in range(2):  # an answer that comes twice is one
        await server.ask("tasks/update", taskId=task["taskId"], inputResponses=given)
    done = await server.task(task["taskId"])
    assert (done["status"], done["result"]["content"][0]["text"], done["result"]["isError"]) == (
        "completed",
        "Paid.",
        False,
    )
    assert done["createdAt"] == task["createdAt"]
    assert done["ttlMs"] >= 86_400_000


async def test_a_task_asks_what_the_delegate_of_a_delegate_asks_and_passes_the_answers_on(
    deploy: Deploy, agents: Agents
) -> None:
    to_lead, to_clerk = (calls(("delegate", {"agent": name, "input": "pay"})) for name in ("lead", "clerk"))
    payments = [calls(("pay", {"order": order})) for order in "AB"]
    chat = {
        "boss": SteppedChat(to_lead, says("It is done."), to_lead),
        "lead": SteppedChat(to_clerk, says("Passed on."), to_clerk),
        "clerk": SteppedChat(*payments, says("Both paid."), payments[0]),
    }
    clerk = {"tools": ["pay"], "approval": ["pay"]}
    staff = agents(boss={"delegates": ["lead"]}, lead={"delegates": ["clerk"]}, clerk=clerk)
    pay = Upstream("pay", idempotent=False)
    server = Server(deploy(staff, chat=chat, upstreams=[pay]))
    begun = await server.ask("tools/call", name="boss", arguments={"input": "pay"})
    task_id = begun["result"]["taskId"]
    asked: list[str] = []
    for order in "AB":
        task = await server.task(task_id)
        assert task["status"] == "input_required"
        [(key, request)] = task["inputRequests"].items()
        assert request["params"]["message"] == f"clerk wants to call pay with {{'order': '{order}'}}. Approve?"
        asked.append(key)
        given = {name: {"action": "accept"} for name in asked}  # an earlier question's answer changes nothing
        await server.ask("tasks/update", taskId=task_id, inputResponses=given)
    done = await server.task(task_id)
    assert (done["status"], done["result"]["content"][0]["text"]) == ("completed", "It is done.")
    assert [arguments["order"] for arguments, _ in pay.asked] == ["A", "B"]
    result = (await server.ask("tools/call", {}, name="boss", arguments={"input": "pay"}))["result"]
    assert result["structuredContent"]["status"] == "waiting"
    assert "a person has to approve a call of pay by clerk" in result["content"][0]["text"]


async def test_a_task_is_cancelled(serve: Callable[..., Server]) -> None:
    server = serve(calls(("pay", {})), says("Never."))
    task = await server.begin()
    assert (await server.ask("tasks/cancel", taskId=task["taskId"]))["result"] == {"resultType": "complete"}
    assert (await server.task(task["taskId"]))["status"] == "cancelled"


async def test_a_client_without_tasks_gets_the_status_of_a_waiting_run(serve: Callable[..., Server]) -> None:
    server = serve(calls(("pay", {})))
    answer = await server.ask("tools/call", {}, name="clerk", arguments={"input": "hi"})
    result = answer["result"]
    assert (result["resultType"], result["isError"], result["structuredContent"]["status"]) == (
        "complete",
        False,
        "waiting",
    )
    assert "a person has to approve a call of pay" in result["content"][0]["text"]
    refused = await server.ask("tasks/get", {}, taskId=f"clerk.desk.{result['structuredContent']['run_id']}")
    assert (refused["error"]["code"], refused["error"]["data"]["code"]) == (-32021, "missing_capability")
    assert refused["error"]["data"]["requiredCapabilities"] == {"extensions": {TASKS: {}}}


async def test_the_server_declares_tasks_and_the_protocol_s_own_refusals(serve: Callable[..., Server]) -> None:
    server = serve()
    discovered = (await server.ask("server/discover"))["result"]
    assert discovered["capabilities"] == {"tools": {}, "extensions": {TASKS: {}}}
    for task_id in (
        "nothing",
        "clerk.desk.x",
        f"nobody.desk.{'0' * 26}",
        f"clerk.desk.{'0' * 26}",
        f"clerk.a:b.{'0' * 26}",
    ):
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            assert (await server.ask(method, taskId=task_id))["error"]["code"] == -32602, (method, task_id)
    assert (await server.ask("tasks/get", taskId=3))["error"]["code"] in (-32602, -32020)
    assert (await server.ask("tasks/list"))["error"]["code"] == -32601
    assert (await server.ask("tools/call", name="nobody", arguments={"input": "x"}))["error"]["code"] == -32602


async def test_a_user_s_token_reaches_its_agent_and_conversations_and_approves_nothing(
    serve: Callable[..., Server],
) -> None:
    server = serve(calls(("pay", {})), bound=BoundUser("ann", "clerk"))
    listed = (await server.ask("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["clerk"]
    assert (await server.ask("tools/call", name="other", arguments={"input": "x"}))["error"]["code"] == -32602
    task = await server.begin(instance_id="desk")
    assert task["taskId"].startswith("clerk.user-")
    with pytest.raises(Forbidden):
        await server.ask("tasks/update", taskId=task["taskId"], inputResponses={"1.0": {"action": "accept"}})
    server.bound = BoundUser("bob")
    for method in ("tasks/get", "tasks/cancel"):
        assert (await server.ask(method, taskId=task["taskId"]))["error"]["data"]["code"] in (
            "no_such_run",
            "no_such_instance",
        )
    server.bound = None
    assert (await server.task(task["taskId"]))["status"] == "input_required"
