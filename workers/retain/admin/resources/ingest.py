"""The administrator's routes for ingest: accept a conversation, show its job."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from retain.admin.answers.memories import IngestJobJson
from retain.admin.context import AdminContext
from retain.errors import InvalidInput
from retain.http import Response, json_response
from retain.ingest.answering import continued, ingested
from retain.ingest.ingestion import Ingestion
from retain.ingest.intake import Intake
from retain.ingest.jobs import JOB_ID, Jobs, check_job_id
from retain.ingest.request import read_members
from retain.routing.bodies import BodyModel, validated
from retain.routing.parameters import PathParameter
from retain.routing.requests import PathRequest, StreamedBody, TypedRequest
from retain.routing.route import Answer, Resource, Route

MAX_INGEST_BYTES = 50 * 1024 * 1024
"""Largest body of an ingest: 500 messages of 32 KiB, every character beyond ASCII escaped. It is read as it arrives."""


class IngestBody(BodyModel):
    """The body of an ingest. Each message is checked as it arrives; a bad one does not affect the others."""

    conversation: str
    agent_type: str | None = None
    house: str | None = None
    user_id: str | None = None
    messages: list[Any]


class _NoMembers(BodyModel):
    """What refuses a member that an ingest does not have."""


async def ingest(context: AdminContext, request: TypedRequest[AsyncIterator[bytes], None]) -> Response:
    """Store a conversation's messages and extract facts from them. The same request is the same job.

    A small request is processed first: 201, or 200 when it was sent before. A larger one continues in the background, and
    so does one that waits for other changes of the tenant's memory: 202.
    Raises: as `_read` and `ingested`.
    """
    intake = Intake(context.sql, request.tenant_id, context.clock)
    reading = _read(context, request.tenant_id, request.body, intake)
    job, created = await ingested(intake, reading, context.background)
    return json_response(job.to_json(), 202 if job.state == "running" else 201 if created else 200)


async def _read(
    context: AdminContext, tenant_id: str, pieces: AsyncIterator[bytes], intake: Intake
) -> tuple[Ingestion, str]:
    """Store the messages as they arrive; return where the body wants them ingested, and their conversation.

    Raises: InvalidInput (code `malformed_json`, `invalid_body`, `no_messages`); LimitExceeded; Unavailable; as
        `AdminContext.scope`.
    """
    fields: dict[str, object] = {}
    try:
        async for member in read_members(pieces, "messages"):
            if member.item:
                await intake.add(member.value)
            elif member.name in IngestBody.model_fields:
                fields[member.name] = member.value
            else:  # at once: there may be millions of them
                validated(_NoMembers, {member.name: None})
    except ValueError as error:
        raise InvalidInput("the body is not valid JSON", code="malformed_json") from error
    body = validated(IngestBody, fields)
    await intake.finish()
    scope = await context.scope(tenant_id, body.agent_type, body.house, body.user_id)
    return context.ingestion(scope), body.conversation


async def show_job(context: AdminContext, request: PathRequest) -> Response:
    """Show a job. An interrupted job resumes in the background, so that further requests see it complete."""
    job = await Jobs(context.sql, context.clock).get(request.tenant_id, request.path["job_id"])
    if job.state == "running" and job.lease_until_ms <= context.clock():
        continued(context.ingestion(job.scope), job, context.background)
    return json_response(job.to_json())


_INGEST = "/admin/tenants/{tenant}/memories/ingest"
RESOURCE: Resource[AdminContext] = Resource(
    "Ingest",
    (
        Route(
            "POST",
            _INGEST,
            ingest,
            name="ingest_conversation",
            needs="operator",
            scope="memory:write",
            body=StreamedBody("application/json", IngestBody),
            max_body_bytes=MAX_INGEST_BYTES,
            takes="[an ingest](#an-ingest)",
            answers=(
                Answer(201, "the job", model=IngestJobJson),
                Answer(200, "the job, when the same request was sent before", model=IngestJobJson),
                Answer(202, "the job, while it continues in the background", model=IngestJobJson),
            ),
            errors=(
                "no_messages",
                "too_many_messages",
                "invalid_conversation",
                "unknown_agent",
                "agent_unreadable",
                "invalid_agent_type",
                "invalid_house",
                "invalid_scope",
                "invalid_user",
                "contended",
                "ingest_failed",
            ),
        ),
        Route(
            "GET",
            f"{_INGEST}/{{job_id}}",
            show_job,
            name="get_ingest_job",
            needs="viewer",
            scope="memory:read",
            parameters={"job_id": PathParameter(JOB_ID.pattern, check_job_id)},
            answers=(Answer(200, "the job", model=IngestJobJson),),
            errors=("no_such_job", "invalid_job_id"),
        ),
    ),
)
