"""The routes of forks: retry a run from its failed step, and fork one from a turn."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from retain.agents.calls.asked import principal_of
from retain.agents.calls.requests import ForkRequest
from retain.agents.calls.responses import pollable
from retain.agents.calls.shown import RunResultJson, RunStandingJson
from retain.agents.context import AgentsContext
from retain.errors.codes import Code
from retain.http import Request, Response, idempotency_key
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route


class ForkBody(BodyModel):
    """From where a run is forked. turns: how many of its turns are kept, from the first."""

    turns: int = Field(ge=0)


async def retry_run(context: AgentsContext, request: PathRequest) -> Response:
    """Begin a run that continues a failed or cancelled one from the step that failed."""
    return await _begun(context, request.http, request.path, None)


async def fork_run(context: AgentsContext, request: TypedRequest[ForkBody, None]) -> Response:
    """Begin a run that continues an ended one after some of its turns."""
    return await _begun(context, request.http, request.path, request.body.turns)


async def _begun(context: AgentsContext, http: Request, path: Mapping[str, str], turns: int | None) -> Response:
    asked = ForkRequest(path["run_id"], turns, idempotency_key(http), principal_of(http))
    instance = await context.instance_in(path)
    return pollable(await instance.fork(asked), path, path["instance_id"])


_RUN = "/v1/agents/{tenant}/{agent_type}/instances/{instance_id}/runs/{run_id}"
_KEY = {"idempotency-key": "1 to 255 bytes: a repeated request gets the same run, until a day after it ended"}
_REFUSALS: tuple[Code, ...] = (
    "no_such_run",
    "no_such_instance",
    "invalid_id",
    "invalid_agent_type",
    "invalid_idempotency_key",
    "run_not_ended",
    "delegated_run",
    "unknown_agent",
    "agent_deleted",
    "agent_unreadable",
    "invalid_instance_id",
    "wrong_user",
    "idempotency_key_reused",
    "instance_busy",
    "queue_full",
    "run_quota",
    "token_quota",
    "no_such_tool",
)
_ANSWERS = (
    Answer(202, "[the new run](agents.md#retries-and-forks), and its address in `location`", model=RunStandingJson),
    Answer(200, "the same, when it was asked for before and has ended", model=RunResultJson),
)
RESOURCE: Resource[AgentsContext] = Resource(
    "Forks",
    (
        Route(
            "POST",
            f"{_RUN}/retry",
            retry_run,
            needs="operator",
            scope="runs",
            for_users=True,
            headers=_KEY,
            answers=_ANSWERS,
            errors=(*_REFUSALS, "run_not_failed"),
        ),
        Route(
            "POST",
            f"{_RUN}/fork",
            fork_run,
            needs="operator",
            scope="runs",
            for_users=True,
            body=JsonBody(ForkBody),
            takes="`turns`: how many of the run's turns are kept, 0 for none",
            headers=_KEY,
            answers=_ANSWERS,
            errors=(*_REFUSALS, "invalid_turn"),
        ),
    ),
)
