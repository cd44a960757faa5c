"""The agents over the Model Context Protocol: each is a tool, and a run that lasts is a task.

Source: https://modelcontextprotocol.github.io/ext-tasks/specification/2026-07-28/tasks.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, JsonValue

from retain.agents.calls.asked import REFUSALS, AskedRun, principal_of
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.report import RunReport, RunResult
from retain.agents.calls.requests import CancelRequest
from retain.agents.calls.run_request import RunRequest
from retain.agents.context import AgentsContext
from retain.agents.front_ends.chat_stream import ended
from retain.agents.front_ends.question import Question, question_of
from retain.agents.versions.tenant_agents import ListedAgent
from retain.errors import Conflict, Forbidden, NoSuchTool, NotFound, RetainError, UpstreamFailed
from retain.errors.codes import ForeignCode
from retain.http import Request, Response, idempotency_key
from retain.identifiers import INSTANCE, NAME, ULID, time_of
from retain.json_text import JsonObject
from retain.mcp.server import answer
from retain.mcp.tasks import McpTask
from retain.mcp.tools import McpAnswer, McpTool, McpToolPage
from retain.routing.bodies import BodyModel, validated
from retain.routing.queries import MAX_LIMIT
from retain.routing.requests import TextBody, TypedRequest
from retain.routing.route import JSON_RPC, Resource, Route

SERVER = "retain-agents"
INSTRUCTIONS = "The agents of one tenant. Each call runs an agent; with an `instance_id` it continues a conversation."
KEPT_MS = 86_400_000
"""How long an ended run can be asked for: a day after the last run of its instance, so at least as long."""
_OUTPUT: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "run_id": {"type": "string"},
        "instance_id": {"type": "string"},
        "status": {"type": "string"},
        "output": {"type": ["string", "null"]},
    },
    "required": ["run_id", "instance_id", "status"],
}
_APPROVAL: JsonObject = {
    "type": "object",
    "properties": {"reason": {"type": "string", "description": "kept with the decision"}},
}


class CallArguments(BodyModel):
    """What an agent is asked. instance_id: the conversation that is continued; a new one if absent."""

    input: str | dict[str, JsonValue]
    instance_id: str | None = Field(default=None, description="a conversation to continue; a new one if absent")


class AgentTools:
    """The agents that the caller of one request reaches, as tools whose calls may become tasks."""

    def __init__(self, context: AgentsContext, tenant_id: str, http: Request) -> None:
        self._context = context
        self._tenant_id = tenant_id
        self._http = http

    async def page(self, cursor: str | None) -> McpToolPage:
        """Return the agents, by their types. Raises: InvalidInput (code `invalid_cursor`)."""
        bound = self._http.bound
        only = None if bound is None else bound.agent_type
        found, following = await self._context.agents.page(self._tenant_id, limit=MAX_LIMIT, cursor=cursor, only=only)
        return McpToolPage(list(map(_tool, found)), following)

    async def call(self, name: str, arguments: JsonObject) -> McpAnswer:
        """Run an agent until it has ended, or waits for a person. Raises: NoSuchTool; as a run that is begun."""
        instance, asked = await self._asked_of(name, arguments)
        return _answer(*await ended(instance, await instance.run(asked)))

    async def start(self, name: str, arguments: JsonObject) -> McpTask:
        """Begin a run in the background. Raises: as `call`."""
        instance, asked = await self._asked_of(name, arguments)
        return await self._task(instance, await instance.start(asked))

    async def get(self, task_id: str) -> McpTask:
        """Return a run as a task. Raises: NotFound."""
        instance, run_id = await self._named(task_id)
        return await self._task(instance, await instance.show(run_id))

    async def update(self, task_id: str, responses: JsonObject) -> None:
        """Approve or reject the call about which a run, or its delegate, asks. An answer to another question is ignored.

        Raises: NotFound; Forbidden (code `token_not_allowed`) for a user's token, which answers no approval.
        """
        if self._http.bound is not None:
            raise Forbidden("a user's token answers no approval: the application does", code="token_not_allowed")
        instance, run_id = await self._named(task_id)
        question = await question_of(instance, await instance.show(run_id))
        given = None if question is None else responses.get(question.key)
        if question is None or not isinstance(given, dict) or given.get("action") not in ("accept", "decline"):
            return
        content = given.get("content")
        reason = content.get("reason") if isinstance(content, dict) else None
        approved, words = given["action"] == "accept", reason if isinstance(reason, str) else None
        try:
            await question.asker.answer(question.answered(approved, principal_of(self._http), words))
        except (
            Conflict,
            NotFound,
        ):  # somebody else answered it, or the run was cancelled or removed: the task shows it
            return

    async def cancel(self, task_id: str) -> None:
        """Stop a run and its delegates before the next side effect. Raises: NotFound."""
        instance, run_id = await self._named(task_id)
        await instance.cancel(CancelRequest(run_id, principal_of(self._http), None))

    async def _asked_of(self, name: str, arguments: JsonObject) -> tuple[InstanceClient, RunRequest]:
        """Return the instance that a call means, and what it is asked. Raises: NoSuchTool; InvalidInput."""
        bound = self._http.bound
        if NAME.fullmatch(name) is None or (bound is not None and not bound.reaches(name)):
            raise NoSuchTool("the tenant has no such agent")
        try:
            await self._context.agents.require(self._tenant_id, name)
        except NotFound as error:
            raise NoSuchTool("the tenant has no such agent") from error
        given = validated(CallArguments, arguments)
        run = AskedRun(given.input, instance_id=given.instance_id, key=idempotency_key(self._http))
        instance_id, asked = run.checked(self._http)
        return await self._context.instance(self._tenant_id, name, instance_id), asked

    async def _named(self, task_id: str) -> tuple[InstanceClient, str]:
        """Return the instance and the run of a task. Raises: NotFound (code `no_such_run`, `unknown_agent`)."""
        agent_type, _, rest = task_id.partition(".")
        instance_id, _, run_id = rest.rpartition(".")
        bound = self._http.bound
        named = NAME.fullmatch(agent_type) and INSTANCE.fullmatch(instance_id) and ULID.fullmatch(run_id)
        if not named or (bound is not None and not bound.reaches(agent_type)):
            raise NotFound("there is no such task", code="no_such_run")
        own = instance_id if bound is None else bound.instance(instance_id)
        return await self._context.instance(self._tenant_id, agent_type, own), run_id

    async def _task(self, instance: InstanceClient, report: RunReport) -> McpTask:
        identity, now = instance.identity, self._context.clock()
        task_id = f"{identity.agent_type}.{identity.instance_id}.{report.run_id}"
        created = time_of(report.run_id)
        if isinstance(report, RunResult):
            ttl_ms = max(0, now - created) + KEPT_MS
            if report.status == "cancelled":
                return McpTask(task_id, "cancelled", created, now, ttl_ms)
            return McpTask(task_id, "completed", created, now, ttl_ms, answer=_answer(report))
        question = await question_of(instance, report)
        if question is None:
            return McpTask(task_id, "working", created, now, message=f"the run is {report.status}")
        request: JsonObject = {"method": "elicitation/create", "params": _elicitation(question)}
        return McpTask(
            task_id,
            "input_required",
            created,
            now,
            message="a person has to approve a call",
            requests={question.key: request},
        )


async def serve(context: AgentsContext, request: TypedRequest[str, None]) -> Response:
    """Answer one message of the Model Context Protocol, with the agents as tools and their runs as tasks."""
    tools = AgentTools(context, request.tenant_id, request.http)
    return await answer(request.http, tools, SERVER, INSTRUCTIONS, tools)


def _tool(agent: ListedAgent) -> McpTool:
    return McpTool(agent.agent_type, agent.description, CallArguments.model_json_schema(), {}, _OUTPUT)


def _elicitation(question: Question) -> JsonObject:
    asked, agent_type = question.asked, question.asker.identity.agent_type
    described = f"{agent_type} wants to call {asked.tool} with {dict(asked.arguments)}. Approve?"
    return {"mode": "form", "message": described, "requestedSchema": _APPROVAL}


def _answer(report: RunReport, question: Question | None = None) -> McpAnswer:
    """Return what a run answered, or its status if it has not ended, or why it failed."""
    shown: Mapping[str, Any] = report.to_json()
    known = {name: shown[name] for name in ("run_id", "instance_id", "status", "output") if name in shown}
    if isinstance(report, RunResult):
        return McpAnswer(report.output or "", _failure(report), known)
    waits = "" if question is None else f": a person has to approve a call of {question.call}"
    return McpAnswer(
        f"The run {report.run_id} of instance {known['instance_id']} is {report.status}{waits}.", None, known
    )


def _failure(report: RunResult) -> RetainError | None:
    """Return why a run ended without an answer, None for one that has one."""
    if report.status == "completed":
        return None
    code, message = "run_failed", f"the run was {report.status}"
    if report.error is not None:
        code, message = report.error.code, report.error.message
    return UpstreamFailed(message, code=ForeignCode(code), run_id=report.run_id, instance_id=report.instance_id)


RESOURCE: Resource[AgentsContext] = Resource(
    "Agents over MCP",
    (
        Route(
            "POST",
            "/v1/agents/{tenant}/mcp",
            serve,
            name="send_agents_message",
            needs="operator",
            scope="runs",
            for_users=True,
            body=TextBody("application/json"),
            takes="a message of the [Model Context Protocol](mcp.md#the-agents-post-v1agentstenantmcp)",
            headers={
                "idempotency-key": "1 to 255 bytes: a repeated call gets the same run, until a day after it ended"
            },
            answers=JSON_RPC,
            errors=(*REFUSALS, "invalid_idempotency_key"),
        ),
    ),
)
