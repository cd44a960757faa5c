"""OpenAI's interface of chat models: a model is an agent of the deployment.

Source: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from retain.agents.attachments.resolving import with_files
from retain.agents.calls.asked import FILE_REFUSALS, REFUSALS
from retain.agents.calls.asked_files import MAX_BODY_BYTES
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.report import RunReport, RunResult
from retain.agents.calls.run_request import RunRequest
from retain.agents.context import AgentsContext
from retain.agents.execution.event_stream import streamed
from retain.agents.front_ends.chat_answer import Completion
from retain.agents.front_ends.chat_request import ChatBody
from retain.agents.front_ends.chat_stream import chunks, ended
from retain.agents.front_ends.openai_errors import RUN_ENDED, unanswered
from retain.agents.front_ends.question import Question
from retain.agents.versions.tenant_agents import FRESH_MS, ListedAgent, unknown
from retain.errors import Forbidden, InvalidInput, NotFound, Unavailable
from retain.http import Request, Response, idempotency_key, json_response
from retain.identifiers import NAME, check_agent_type, check_tenant
from retain.json_text import JsonObject
from retain.roles.role import Role
from retain.routing.bodies import JsonBody
from retain.routing.parameters import SEGMENT, PathParameter
from retain.routing.permission import require_role
from retain.routing.queries import MAX_LIMIT, Cursor, PageLimit, QueryModel, QueryString, naming
from retain.routing.requests import TypedRequest
from retain.routing.route import Answer, Resource, Route
from retain.routing.router import Router

ORGANIZATION = "openai-organization"
"""The header that names the tenant, for callers that have several."""
IGNORED = "x-retain-ignored"
"""The header that names what a request has without effect."""
_OWNER = "retain"


class ModelsQuery(QueryModel):
    """A page of models."""

    limit: PageLimit = MAX_LIMIT
    after: Annotated[Cursor, naming(check_agent_type)] = Field(
        default=None, description="the last `id` of the previous page"
    )


async def list_models(context: AgentsContext, request: TypedRequest[None, ModelsQuery]) -> Response:
    """List the agents of the tenant as models; those of the repository for a caller with several tenants that names none."""
    bound = request.http.bound
    only = None if bound is None else bound.agent_type
    query, tenant_id = request.query, await _known_tenant(context, request)
    agents, more = await context.agents.page(tenant_id, limit=query.limit, cursor=query.after, only=only)
    return json_response({"object": "list", "data": list(map(_model, agents)), "has_more": more is not None})


async def show_model(context: AgentsContext, request: TypedRequest[None, None]) -> Response:
    """Return an agent as a model."""
    model = request.path["model"]
    _check_model(request.http, model)
    agents, _ = await context.agents.page(await _known_tenant(context, request), limit=1, cursor=None, only=model)
    if not agents:
        raise unknown(model)
    return json_response(_model(agents[0]))


async def create_chat_completion(context: AgentsContext, request: TypedRequest[ChatBody, None]) -> Response:
    """Run an agent, and answer as a chat model does."""
    http, body = request.http, request.body
    _check_model(http, body.model)
    tenant_id = await _tenant(context, request, "operator")
    agent = await context.agents.definition(tenant_id, body.model, fresh_ms=FRESH_MS)
    wanted = body.asked(http.bound, idempotency_key(http))
    instance_id, asked = wanted.checked(http)
    asked = await with_files(context, http, (tenant_id, agent.type, instance_id), asked, wanted)
    instance = await context.instance(tenant_id, agent.type, instance_id)
    report, question = await _reported(instance, asked)
    wants_usage = body.stream_options is not None and body.stream_options.include_usage
    completion = Completion(instance.identity, report.run_id, wants_usage)
    headers = {IGNORED: ", ".join(body.ignored)} if body.ignored else {}
    if asked.stream:
        schema = asked.output_schema or agent.output_schema
        answer = streamed(chunks(instance, completion, as_it_is_written=schema is None))
    elif isinstance(report, RunResult) and report.status != "completed":
        answer = unanswered(report)
    else:
        answer = json_response(completion.whole(report, question))
    return Response(answer.status, answer.body, {**answer.headers, **headers}, answer.stream)


async def _reported(instance: InstanceClient, asked: RunRequest) -> tuple[RunReport, Question | None]:
    """Return the report of a run: once it has begun, for a stream, else once it has ended or waits for a person.

    And what the person is asked. Raises: as the instance does; Unavailable with the detail `begun` for a request whose run
        has begun, or may have, and which has no key by which its repetition would be the same run.
    """
    begun = False
    try:
        report = await (instance.start(asked) if asked.stream else instance.run(asked))
        begun = True
        return (report, None) if asked.stream else await ended(instance, report)
    except Unavailable as error:
        if asked.idempotency_key is not None or not (begun or error.code == "agent_instance_unavailable"):
            raise
        raise Unavailable(error.message, code=error.code, begun=True) from error


def _check_model(http: Request, model: str) -> None:
    """Refuse what cannot be an agent, and agents other than the one that a token names.

    Raises: NotFound (code `unknown_agent`); Forbidden (code `token_not_allowed`).
    """
    if NAME.fullmatch(model) is None:
        raise NotFound(f"there is no model {model[:100]}: models are agents", code="unknown_agent")
    if http.bound is not None and not http.bound.reaches(model):
        raise Forbidden("the token of a user does not allow this", code="token_not_allowed")


async def _known_tenant(context: AgentsContext, request: TypedRequest[None, Any]) -> str | None:
    """Return the tenant whose models are meant, None for a caller with several that names none. Raises: as `_tenant`."""
    if ORGANIZATION not in request.http.headers and (request.tenants is None or len(request.tenants) != 1):
        return None
    return await _tenant(context, request, "viewer")


async def _tenant(context: AgentsContext, request: TypedRequest[Any, Any], needed: Role) -> str:
    """Return the tenant: that of the key, or the one that a caller with several names.

    Raises: InvalidInput (code `invalid_tenant`); Forbidden (code `role_required`); NotFound (code `unknown_tenant`);
        RateLimited; Unavailable.
    """
    named, own = request.http.headers.get(ORGANIZATION), request.tenants
    if named is None:
        if own is None or len(own) != 1:
            why = f"the header {ORGANIZATION} must name the tenant: the caller has several"
            raise InvalidInput(why, code="invalid_tenant", param=ORGANIZATION)
        named = own[0]
    await require_role(request.http.authority, needed, check_tenant(named))
    if request.http.rates is not None:
        await request.http.rates.check_tenant(named)
    return await context.tenants.require(named)


def _model(agent: ListedAgent) -> JsonObject:
    return {"id": agent.agent_type, "object": "model", "created": 0, "owned_by": agent.house or _OWNER}


_PARAMETERS = {"model": PathParameter(SEGMENT.pattern, str)}

_MODELS = 'a list of `{"id", "object", "created", "owned_by"}` in `data`, and `has_more`'
RESOURCE: Resource[AgentsContext] = Resource(
    "OpenAI-compatible",
    (
        Route(
            "GET",
            "/v1/models",
            list_models,
            needs="viewer",
            scope="runs",
            for_users=True,
            tenant_in="own",
            query=QueryString(ModelsQuery),
            answers=(Answer(200, _MODELS),),
            errors=("invalid_limit", "invalid_cursor", "unknown_tenant", "invalid_tenant"),
        ),
        Route(
            "GET",
            "/v1/models/{model}",
            show_model,
            name="get_model",
            needs="viewer",
            scope="runs",
            for_users=True,
            tenant_in="own",
            parameters=_PARAMETERS,
            answers=(Answer(200, "a model"),),
            errors=("unknown_agent", "agent_unreadable", "unknown_tenant", "invalid_tenant"),
        ),
        Route(
            "POST",
            "/v1/chat/completions",
            create_chat_completion,
            needs="operator",
            scope="runs",
            for_users=True,
            tenant_in="own",
            body=JsonBody(ChatBody),
            takes="[a chat completion's request](front-ends.md#chat-completions)",
            headers={
                ORGANIZATION: "the tenant, for callers that have several",
                "idempotency-key": "1 to 255 bytes: a repeated request gets the same run, until a day after it ended",
            },
            answers=(
                Answer(
                    200,
                    "[a chat completion](front-ends.md#chat-completions); with `stream` its chunks",
                    media_types=("application/json", "text/event-stream"),
                ),
                Answer(RUN_ENDED, "an error: the run ended without an answer"),
            ),
            errors=(
                *REFUSALS,
                *FILE_REFUSALS,
                "invalid_id",
                "unknown_tenant",
                "invalid_tenant",
                "unsupported_parameter",
                "unsupported_content",
                "no_user_message",
                "invalid_idempotency_key",
            ),
            max_body_bytes=MAX_BODY_BYTES,
        ),
    ),
    about="OpenAI's interface of chat models, whose models are the agents. Errors have OpenAI's form, with Retain's code in"
    " `error.code`; an agent that does not exist is `model_not_found`.",
)
ROUTER: Router[AgentsContext] = Router((RESOURCE,), guard="Access", tenants=lambda context: context.tenants)
