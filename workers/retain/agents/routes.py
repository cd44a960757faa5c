"""The routes of agents: run one, look at an instance. Everything happens in the instance; this only checks and asks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from retain.agents.catalogue import Catalogue
from retain.bodies import parsed
from retain.errors import InvalidInput, LimitExceeded
from retain.http import Request, Response, Route, json_response
from retain.identifiers import check_agent_type, check_instance_id, namespace_key, new_id
from retain.memory.tenants import Tenants
from retain.ports import AgentInstances

MAX_INPUT_BYTES = 256 * 1024
MAX_METADATA_BYTES = 10 * 1024


@dataclass(frozen=True, slots=True)
class AgentsContext:
    """What the routes work with."""

    tenants: Tenants
    catalogue: Catalogue
    instances: AgentInstances


class RunBody(BaseModel):
    """The body of a run request."""

    model_config = ConfigDict(extra="forbid")

    input: str | dict[str, Any]
    instance_id: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    stream: bool = False


async def run_agent(context: AgentsContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Run an agent in an instance, a new one unless the body names one."""
    agent_type = check_agent_type(parameters["agent_type"])
    body = parsed(RunBody, request)
    if body.stream:
        raise InvalidInput("streamed runs are not available", code="streaming_unavailable")
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
    context.catalogue.agent(agent_type)
    tenant_id = await context.tenants.require(parameters["tenant"])
    result = await context.instances.call(
        namespace_key(agent_type, tenant_id, instance_id),
        "run",
        {
            "tenant_id": tenant_id,
            "agent_type": agent_type,
            "instance_id": instance_id,
            "input": body.input,
            "metadata": body.metadata,
            "idempotency_key": key,
            "request_id": request.request_id,
        },
    )
    return json_response(result, 202 if result["status"] == "running" else 200)


async def show_instance(context: AgentsContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Return an instance's turn state, newest log entries and working keys."""
    agent_type = check_agent_type(parameters["agent_type"])
    instance_id = check_instance_id(parameters["instance_id"])
    context.catalogue.agent(agent_type)
    tenant_id = await context.tenants.require(parameters["tenant"])
    identity = {"tenant_id": tenant_id, "agent_type": agent_type, "instance_id": instance_id}
    return json_response(
        await context.instances.call(namespace_key(agent_type, tenant_id, instance_id), "describe", identity)
    )


def _instance_for(idempotency_key: str) -> str:
    return f"key-{sha256(idempotency_key.encode()).hexdigest()[:40]}"


ROUTES: tuple[Route[AgentsContext], ...] = (
    Route("POST", "/v1/agents/{tenant}/{agent_type}/run", run_agent),
    Route("GET", "/v1/agents/{tenant}/{agent_type}/instances/{instance_id}", show_instance),
)
