"""The administrator's handlers for ingest: take a conversation in, and show what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from retain.admin.context import AdminContext
from retain.bodies import validated
from retain.errors import InvalidInput, RetainError, Unavailable
from retain.http import Request, Response, json_response
from retain.memory.ingest.ingestion import PAUSE_S, Ingestion
from retain.memory.ingest.intake import Intake
from retain.memory.ingest.jobs import Jobs
from retain.memory.ingest.request import read_members


class IngestBody(BaseModel):
    """The body of an ingest, but for the messages: each is checked as it arrives; a bad one costs no other."""

    model_config = ConfigDict(extra="forbid")

    conversation: str
    agent_type: str | None = None
    house: str | None = None
    messages: list[Any]


async def ingest(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Store a conversation's messages and draw facts from them; answer the job. The same request is the same job.

    A small request is worked off first: 201, or 200 when it was sent before. A larger one goes on in the background: 202.
    """
    tenant_id = await context.tenants.require(parameters["tenant"])
    intake = Intake(context.sql, tenant_id, context.clock)
    try:
        body = await _read(request, intake)
        ingestion = context.ingestion(await context.scope(tenant_id, body.agent_type, body.house))
        receipt = await ingestion.accept(body.conversation, intake)
    except RetainError:
        with suppress(Unavailable):  # then the daily cron forgets it
            await intake.discard()
        raise
    job = receipt.job
    if job.state != "completed":
        if receipt.small:
            job = await ingestion.work(job.job_id)
        else:
            context.background(_work(ingestion, job.job_id))
            job = replace(job, state="running", error=None)
    status = 202 if job.state == "running" else 201 if receipt.created else 200
    return json_response(job.to_json(), status)


async def _read(request: Request, intake: Intake) -> IngestBody:
    """Take in the messages as they arrive, and return the rest of the body.

    Raises: InvalidInput (code `malformed_json`, `invalid_body`, `no_messages`); LimitExceeded; Unavailable.
    """
    fields: dict[str, object] = {}
    try:
        async for member in read_members(request.pieces(), "messages"):
            if member.item:
                await intake.add(member.value)
            else:
                fields[member.name] = member.value
    except ValueError as error:
        raise InvalidInput("the body is not valid JSON", code="malformed_json") from error
    body = validated(IngestBody, fields)
    await intake.finish()
    return body


async def show_job(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Show a job. One that was interrupted goes on in the background, so that asking again brings it to its end."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    job = await Jobs(context.sql, context.clock).get(tenant_id, parameters["job_id"])
    if job.state == "running" and job.lease_until_ms <= context.clock():
        context.background(_work(context.ingestion(job.scope), job.job_id))
    return json_response(job.to_json())


async def _work(ingestion: Ingestion, job_id: str) -> None:
    await asyncio.sleep(PAUSE_S)  # the answer goes first
    await ingestion.work(job_id, pause_s=PAUSE_S)
