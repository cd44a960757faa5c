"""The routes of agents: run one; follow, answer and cancel a run; show an instance.

The instance does the work; the routes only check and forward. A path names a run with its instance: no lookup is needed.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from retain.agents.attachments import routes as attachments
from retain.agents.attachments.resolving import with_files
from retain.agents.calls.asked import FILE_REFUSALS, REFUSALS, AskedRun, UserBody, principal_of
from retain.agents.calls.asked_files import MAX_BODY_BYTES, FileBody, asked_files
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.requests import BEGINNING, AnswerRequest, CancelRequest, DescribeRequest
from retain.agents.calls.responses import pollable, reported
from retain.agents.calls.shown import AgentsJson, InstanceJson, RunReportJson, RunResultJson, RunStandingJson
from retain.agents.context import AgentsContext
from retain.agents.conversations import routes as conversations
from retain.agents.execution.event_stream import event_stream, last_event_id, nothing_follows
from retain.agents.forks import routes as forks
from retain.agents.front_ends.ag_ui_routes import AG_UI, ag_ui_run_stream, wants_ag_ui
from retain.agents.front_ends.mcp_routes import RESOURCE as AGENTS_MCP
from retain.errors.codes import Code
from retain.http import Request, Response, idempotency_key, json_response
from retain.memory.conversations.reading import shown_conversation
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import AgentPageQuery, QueryModel, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route
from retain.routing.router import Router


class RunBody(BodyModel):
    """The body of a run request. background: whether to answer when the run has begun, and not when it ends.

    attachments: files that the input brings, each the id of one that was uploaded, or a small one itself.

    output_schema: the JSON Schema of the object that the answer must be, instead of the definition's.
    """

    input: str | dict[str, JsonValue]
    instance_id: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    stream: bool = False
    background: bool = False
    output_schema: dict[str, JsonValue] | None = None
    user: UserBody | None = None
    attachments: list[FileBody] = Field(default_factory=list)

    @model_validator(mode="after")
    def _answered_in_one_way(self) -> RunBody:
        if self.stream and self.background:
            raise ValueError("a run is either streamed or in the background")
        return self


class CancelBody(BodyModel):
    """Why a run is cancelled."""

    reason: str | None = Field(default=None, max_length=1000)


class ResumeBody(BodyModel):
    """The answer to what a run asks. call: as the question named it, so that a late answer fits no other question."""

    call: str = Field(pattern=r"^[0-9]{1,4}\.[0-9]{1,4}$")
    decision: Literal["approve", "reject"]
    reason: str | None = Field(default=None, max_length=1000)


async def list_agents(context: AgentsContext, request: TypedRequest[None, AgentPageQuery]) -> Response:
    """List the agents of the tenant by their types: those of the repository, and its own."""
    bound = request.http.bound
    only = None if bound is None else bound.agent_type
    query = request.query
    agents, cursor = await context.agents.page(request.tenant_id, limit=query.limit, cursor=query.cursor, only=only)
    return json_response({"agents": [one.to_json() for one in agents], "cursor": cursor})


async def run_agent(context: AgentsContext, request: TypedRequest[RunBody, None]) -> Response:
    """Run an agent in an instance, a new one unless the body names one."""
    body, path = request.body, request.path
    wanted = AskedRun(
        body.input,
        body.metadata,
        body.instance_id,
        idempotency_key(request.http),
        body.stream,
        None if body.user is None else body.user.to_user(),
        body.output_schema,
        files=asked_files(body.attachments),
    )
    instance_id, asked = wanted.checked(request.http)
    asked = await with_files(context, request.http, (request.tenant_id, path["agent_type"], instance_id), asked, wanted)
    instance = await context.instance(request.tenant_id, path["agent_type"], instance_id)
    if body.stream:
        after = last_event_id(request.http.headers)
        run_id = (await instance.start(asked)).run_id
        if after != BEGINNING and await nothing_follows(instance, run_id, after):
            return Response(204, "")
        return _streamed(request.http, instance, run_id, after)
    if body.background:
        return pollable(await instance.start(asked), path, instance_id)
    return reported(await instance.run(asked))


async def show_run(context: AgentsContext, request: PathRequest) -> Response:
    """Return a run's result, or its state so far."""
    instance = await context.instance_in(request.path)
    return json_response((await instance.show(request.path["run_id"])).to_json())


class FollowQuery(QueryModel):
    """The position from which to follow a run."""

    last_event_id: str | None = Field(default=None, description="as the header of this name, which takes precedence")


async def follow_run(context: AgentsContext, request: TypedRequest[None, FollowQuery]) -> Response:
    """Stream what happens in a run, from its beginning or after `last-event-id`."""
    instance, run_id = await context.instance_in(request.path), request.path["run_id"]
    after = last_event_id(request.http.headers, request.query.last_event_id)
    if await nothing_follows(instance, run_id, after):
        return Response(204, "")
    return _streamed(request.http, instance, run_id, after)


async def cancel_run(context: AgentsContext, request: TypedRequest[CancelBody, None]) -> Response:
    """Stop a run and its delegates before the next side effect."""
    asked = CancelRequest(request.path["run_id"], principal_of(request.http), request.body.reason)
    return reported(await (await context.instance_in(request.path)).cancel(asked))


async def resume_run(context: AgentsContext, request: TypedRequest[ResumeBody, None]) -> Response:
    """Answer what a waiting run asks. The run then continues."""
    body, by = request.body, principal_of(request.http)
    answer = AnswerRequest(request.path["run_id"], body.call, body.decision == "approve", by, body.reason)
    return reported(await (await context.instance_in(request.path)).answer(answer))


async def show_instance(context: AgentsContext, request: PathRequest) -> Response:
    """Return an instance's turn state, newest log entries and working keys, and its conversation."""
    path = request.path
    described = await (await context.instance_in(path)).describe(DescribeRequest())
    conversation = await shown_conversation(context.sql, request.tenant_id, path["agent_type"], path["instance_id"])
    return json_response({**described, "conversation": conversation})


def _streamed(http: Request, instance: InstanceClient, run_id: str, after: int) -> Response:
    """Return the response that streams a run in the encoding that the request accepts."""
    return (ag_ui_run_stream if wants_ag_ui(http) else event_stream)(instance, run_id, after)


_AGENT = "/v1/agents/{tenant}/{agent_type}"
_INSTANCE = f"{_AGENT}/instances/{{instance_id}}"
_RUN = f"{_INSTANCE}/runs/{{run_id}}"
_OF_AN_INSTANCE: tuple[Code, ...] = ("no_such_instance", "unknown_agent", "invalid_agent_type", "invalid_instance_id")
_OF_A_RUN: tuple[Code, ...] = ("no_such_run", "invalid_id", *_OF_AN_INSTANCE)
_STREAMED = ("application/json", "text/event-stream")
RESOURCE: Resource[AgentsContext] = Resource(
    "Agents",
    (
        Route(
            "GET",
            "/v1/agents/{tenant}",
            list_agents,
            needs="viewer",
            scope="runs",
            for_users=True,
            query=QueryString(AgentPageQuery),
            answers=(
                Answer(
                    200,
                    '`{"agents", "cursor"}`: each with `agent_type`, `description`, `house`, `delegates`, `source`'
                    " (`repository` or `tenant`), and `version`: null for one of the repository",
                    model=AgentsJson,
                ),
            ),
            errors=("invalid_limit", "invalid_cursor"),
        ),
        Route(
            "POST",
            f"{_AGENT}/run",
            run_agent,
            name="create_run",
            needs="operator",
            scope="runs",
            for_users=True,
            body=JsonBody(RunBody),
            takes="[a run](#a-run)",
            headers={
                "idempotency-key": "1 to 255 bytes: a repeated request gets the same run, until a day after it ended",
                "last-event-id": "with `stream`: the event after which to continue",
            },
            answers=(
                Answer(
                    200,
                    "[a result](#a-run); with `stream` [events](agents.md#streaming)",
                    model=RunResultJson,
                    media_types=_STREAMED,
                ),
                Answer(
                    202,
                    "the run, with `background` as soon as it has begun, and its address in `location`; otherwise while it"
                    " waits, an earlier request with the key is running, or it is [queued](agents.md#a-busy-instance):"
                    " then with its `queue_position`, 1 for the next to begin",
                    model=RunStandingJson,
                ),
                Answer(204, "with `stream` and `last-event-id`: the run has ended and all of its events were read"),
            ),
            errors=(
                *REFUSALS,
                *FILE_REFUSALS,
                "invalid_agent_type",
                "invalid_idempotency_key",
                "invalid_id",
                "invalid_last_event_id",
                "unknown_time_zone",
            ),
            max_body_bytes=MAX_BODY_BYTES,
        ),
        Route(
            "GET",
            _INSTANCE,
            show_instance,
            name="get_instance",
            needs="viewer",
            scope="runs",
            answers=(
                Answer(
                    200,
                    '`{"instance_id", "turn_state", "queue", "run_log", "working", "procedures", "owed", "conversation"}`:'
                    " the newest 50 runs and log entries, newest first, the queued runs, the working keys, the posteriors of"
                    " its workflows, how many entries of its outbox D1 does not have yet with the attempts of the oldest,"
                    " and [its conversation](#a-conversation) with its summary. Reading creates no instance",
                    model=InstanceJson,
                ),
            ),
            errors=_OF_AN_INSTANCE,
        ),
        Route(
            "GET",
            _RUN,
            show_run,
            name="get_run",
            needs="viewer",
            scope="runs",
            for_users=True,
            answers=(Answer(200, "[a result](#a-run), or the run's state so far", model=RunReportJson),),
            errors=_OF_A_RUN,
        ),
        Route(
            "GET",
            f"{_RUN}/events",
            follow_run,
            needs="viewer",
            scope="runs",
            for_users=True,
            query=QueryString(FollowQuery),
            headers={"last-event-id": "the event after which to continue"},
            answers=(
                Answer(200, "[events](agents.md#streaming)", media_types=("text/event-stream",)),
                Answer(204, "the run has ended and all of its events were read"),
            ),
            errors=(*_OF_A_RUN, "invalid_last_event_id"),
        ),
        Route(
            "POST",
            f"{_RUN}/cancel",
            cancel_run,
            needs="operator",
            scope="runs",
            for_users=True,
            body=JsonBody(CancelBody, required=False),
            takes="`reason`, or no body",
            answers=(
                Answer(200, "[a result](#a-run)", model=RunResultJson),
                Answer(202, "the run, while [a call ends](agents.md#cancelling)", model=RunStandingJson),
            ),
            errors=_OF_A_RUN,
        ),
        Route(
            "POST",
            f"{_RUN}/resume",
            resume_run,
            needs="operator",
            scope="runs",
            body=JsonBody(ResumeBody),
            takes="[an answer](#an-answer)",
            answers=(
                Answer(202, "the run's state", model=RunStandingJson),
                Answer(200, "the same, when it has ended", model=RunResultJson),
            ),
            errors=(*_OF_A_RUN, "not_waiting", "already_answered", "run_cancelled"),
        ),
    ),
)
ROUTER: Router[AgentsContext] = Router(
    (RESOURCE, attachments.RESOURCE, forks.RESOURCE, AG_UI, AGENTS_MCP, conversations.RESOURCE),
    guard="Access",
    tenants=lambda context: context.tenants,
)
