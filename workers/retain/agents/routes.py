"""The routes of agents: run one, follow, answer and cancel a run, look at an instance.

Everything happens in the instance; this only checks and asks. A run is named with its instance, which knows it at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.report import RunReport
from retain.agents.calls.requests import AnswerRequest, CancelRequest, DescribeRequest
from retain.agents.calls.run_request import RunRequest
from retain.agents.catalogue import AgentCatalogue
from retain.agents.execution.event_stream import event_stream, last_event_id, nothing_follows
from retain.agents.identity import instance_of
from retain.bodies import parsed
from retain.errors import InvalidInput, LimitExceeded
from retain.http import Request, Response, Route, json_response
from retain.identifiers import check_agent_type, check_id, check_instance_id, new_id
from retain.ports import AgentInstances
from retain.tenants.register import Tenants

MAX_INPUT_BYTES = 256 * 1024
MAX_METADATA_BYTES = 10 * 1024


@dataclass(frozen=True, slots=True)
class AgentsContext:
    """What the routes work with."""

    tenants: Tenants
    catalogue: AgentCatalogue
    instances: AgentInstances


class RunBody(BaseModel):
    """The body of a run request."""

    model_config = ConfigDict(extra="forbid")

    input: str | dict[str, Any]
    instance_id: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    stream: bool = False


class CancelBody(BaseModel):
    """Why a run is cancelled."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(default=None, max_length=1000)


class ResumeBody(BaseModel):
    """The answer to what a run asks. call: as the question named it, so that a late answer meets no other question."""

    model_config = ConfigDict(extra="forbid")

    call: str = Field(pattern=r"^[0-9]{1,4}\.[0-9]{1,4}$")
    decision: Literal["approve", "reject"]
    reason: str | None = Field(default=None, max_length=1000)


async def run_agent(context: AgentsContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Run an agent in an instance, a new one unless the body names one."""
    agent_type = check_agent_type(parameters["agent_type"])
    body = parsed(RunBody, request)
    if len(request.body.encode()) > MAX_INPUT_BYTES:
        raise LimitExceeded("the run's input is too large", code="input_too_large", limit_bytes=MAX_INPUT_BYTES)
    if len(json.dumps(body.metadata).encode()) > MAX_METADATA_BYTES:
        raise LimitExceeded(
            "the run's metadata is too large", code="metadata_too_large", limit_bytes=MAX_METADATA_BYTES
        )
    instance_id = new_id() if body.instance_id is None else check_instance_id(body.instance_id)
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key.encode()) <= 255:
        raise InvalidInput("an idempotency key has 1 to 255 bytes", code="invalid_idempotency_key")
    if key is not None and body.instance_id is None:
        # The key is remembered by the instance: it also names it, so that a retry meets the same one.
        instance_id = _instance_for(key)
    instance = await _instance(context, parameters["tenant"], agent_type, instance_id)
    asked = RunRequest(body.input, body.metadata, key, body.stream)
    if body.stream:
        after = last_event_id(request)
        started = await instance.start(asked)
        return event_stream(instance, started.run_id, after)
    return _reported(await instance.run(asked))


async def show_run(context: AgentsContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Return a run's result, or how it stands."""
    instance, run_id = await _run_of(context, parameters)
    return json_response((await instance.show(run_id)).to_json())


async def follow_run(context: AgentsContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Stream what happens in a run, from its beginning or after `Last-Event-ID`; 204 when nothing will."""
    instance, run_id = await _run_of(context, parameters)
    after = last_event_id(request)
    if await nothing_follows(instance, run_id, after):
        return Response(204, "")
    return event_stream(instance, run_id, after)


async def cancel_run(context: AgentsContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Stop a run before its next side effect, and its delegates."""
    instance, run_id = await _run_of(context, parameters)
    body = parsed(CancelBody, request) if request.body.strip() else CancelBody()
    return _reported(await instance.cancel(CancelRequest(run_id, request.caller or "unknown", body.reason)))


async def resume_run(context: AgentsContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Answer what a waiting run asks. It continues by itself."""
    instance, run_id = await _run_of(context, parameters)
    body = parsed(ResumeBody, request)
    answer = AnswerRequest(run_id, body.call, body.decision == "approve", request.caller or "unknown", body.reason)
    return _reported(await instance.answer(answer))


async def show_instance(context: AgentsContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Return an instance's turn state, newest log entries and working keys."""
    agent_type = check_agent_type(parameters["agent_type"])
    instance_id = check_instance_id(parameters["instance_id"])
    instance = await _instance(context, parameters["tenant"], agent_type, instance_id)
    return json_response(await instance.describe(DescribeRequest()))


async def _run_of(context: AgentsContext, parameters: Mapping[str, str]) -> tuple[InstanceClient, str]:
    """Return the instance and the id of the run. Raises: InvalidInput; NotFound."""
    agent_type = check_agent_type(parameters["agent_type"])
    instance_id = check_instance_id(parameters["instance_id"])
    run_id = check_id(parameters["run_id"])
    return await _instance(context, parameters["tenant"], agent_type, instance_id), run_id


async def _instance(context: AgentsContext, tenant: str, agent_type: str, instance_id: str) -> InstanceClient:
    """Return an instance of an agent that exists, of a registered tenant. Raises: InvalidInput; NotFound."""
    context.catalogue.agent(agent_type)
    tenant_id = await context.tenants.require(tenant)
    return InstanceClient(context.instances, instance_of(tenant_id, agent_type, instance_id))


def _reported(report: RunReport) -> Response:
    """Return the response with a run's report; 202 for a run that has not ended."""
    return json_response(report.to_json(), 200 if report.ended else 202)


def _instance_for(idempotency_key: str) -> str:
    return f"key-{sha256(idempotency_key.encode()).hexdigest()[:40]}"


_RUN = "/v1/agents/{tenant}/{agent_type}/instances/{instance_id}/runs/{run_id}"
ROUTES: tuple[Route[AgentsContext], ...] = (
    Route("POST", "/v1/agents/{tenant}/{agent_type}/run", run_agent),
    Route("GET", "/v1/agents/{tenant}/{agent_type}/instances/{instance_id}", show_instance),
    Route("GET", _RUN, show_run),
    Route("GET", f"{_RUN}/events", follow_run),
    Route("POST", f"{_RUN}/cancel", cancel_run),
    Route("POST", f"{_RUN}/resume", resume_run),
)
