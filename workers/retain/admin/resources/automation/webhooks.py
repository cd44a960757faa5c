"""The administrator's routes for webhooks: where a tenant's applications hear of runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from retain.admin.answers.tenants import CreatedWebhookJson, DeliveriesJson, DeliveryJson, WebhooksJson
from retain.admin.context import AdminContext
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.requests import RedeliverRequest
from retain.agents.identity import instance_of
from retain.http import Response, json_response
from retain.identifiers import check_message_id
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import Cursor, IdPageQuery, PageQuery, QueryString, naming
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route
from retain.webhooks.delivery_log import DeliveryStatus
from retain.webhooks.endpoints import EVENTS, MAX_WEBHOOKS, ResealedWebhooks, WebhookEvent


class WebhookBody(BodyModel):
    """A webhook to create. url: where messages are sent. events: which."""

    url: str
    events: list[WebhookEvent] = Field(default_factory=lambda: list(EVENTS), min_length=1, max_length=len(EVENTS))


class RotateSecretBody(BodyModel):
    """For how long messages are signed with the old secret as well, so that receivers can be given the new one."""

    grace_minutes: int = Field(default=60, ge=0, le=10_080)


class DeliveriesQuery(PageQuery):
    """Which messages to list."""

    cursor: Annotated[Cursor, naming(check_message_id)] = None
    status: DeliveryStatus | None = Field(default=None, description="only `pending`, `delivered` or `failed` ones")


async def list_webhooks(context: AdminContext, request: TypedRequest[None, IdPageQuery]) -> Response:
    """List the webhooks of the tenant, the oldest first."""
    page = await context.webhooks().page(request.tenant_id, after=request.query.cursor, limit=request.query.limit)
    return json_response({"webhooks": [webhook.to_json() for webhook in page.webhooks], "cursor": page.cursor})


async def create_webhook(context: AdminContext, request: TypedRequest[WebhookBody, None]) -> Response:
    """Create a webhook. The secret of its signatures is in this answer alone."""
    body, by = request.body, request.http.caller
    webhook, secret = await context.webhooks().create(request.tenant_id, body.url, body.events, by=by)
    return json_response({**webhook.to_json(), "secret": secret}, 201)


async def rotate_webhook(context: AdminContext, request: TypedRequest[RotateSecretBody, None]) -> Response:
    """Give a webhook another secret, which is in this answer alone. For a while, both sign its messages."""
    grace_ms = request.body.grace_minutes * 60_000
    webhook, secret = await context.webhooks().rotate(request.tenant_id, request.path["webhook_id"], grace_ms)
    return json_response({**webhook.to_json(), "secret": secret})


async def reseal_webhooks(context: AdminContext, request: PathRequest) -> Response:
    """Seal the secrets of the tenant's webhooks again, with the current key. They stay the same for those who receive."""
    return json_response(asdict(await context.webhooks().reseal(request.tenant_id)))


async def delete_webhook(context: AdminContext, request: PathRequest) -> Response:
    """Delete a webhook. What it was not sent yet is not sent; the log of what it was sent stays for 30 days."""
    await context.webhooks().delete(request.tenant_id, request.path["webhook_id"])
    return Response(204, "")


async def list_deliveries(context: AdminContext, request: TypedRequest[None, DeliveriesQuery]) -> Response:
    """List what a webhook was sent and is owed, the messages of the newest runs first."""
    query = request.query
    page = await context.deliveries().page(
        request.tenant_id, request.path["webhook_id"], status=query.status, after=query.cursor, limit=query.limit
    )
    return json_response({"deliveries": [one.to_json() for one in page.deliveries], "cursor": page.cursor})


async def replay_delivery(context: AdminContext, request: PathRequest) -> Response:
    """Send a message again, whatever became of it, with the same `webhook-id`."""
    webhook_id, message_id = request.path["webhook_id"], request.path["message_id"]
    known = await context.deliveries().get(request.tenant_id, webhook_id, message_id)
    identity = instance_of(request.tenant_id, known.agent_type, known.instance_id)
    instance = InstanceClient(context.stores.instances, identity)
    again = RedeliverRequest(known.run_id, webhook_id, message_id)
    return json_response(await instance.redeliver(again), 202)


_WEBHOOKS = "/admin/tenants/{tenant}/webhooks"
_WEBHOOK = f"{_WEBHOOKS}/{{webhook_id}}"
_DELIVERIES = f"{_WEBHOOK}/deliveries"
RESOURCE: Resource[AdminContext] = Resource(
    "Webhooks",
    (
        Route(
            "GET",
            _WEBHOOKS,
            list_webhooks,
            needs="owner",
            query=QueryString(IdPageQuery),
            answers=(
                Answer(
                    200,
                    '`{"webhooks", "cursor"}`: each with `webhook_id`, `url`, `events`, `created_by`, `created_at_ms`,'
                    " `previous_until_ms`: until when its messages are signed with the secret before as well",
                    model=WebhooksJson,
                ),
            ),
            errors=("invalid_limit", "invalid_cursor", "invalid_tenant", "unknown_tenant"),
        ),
        Route(
            "POST",
            _WEBHOOKS,
            create_webhook,
            needs="owner",
            body=JsonBody(WebhookBody),
            takes=f"`url`, and `events` out of {', '.join(f'`{name}`' for name in EVENTS)}: all unless given. A tenant has"
            f" at most {MAX_WEBHOOKS}",
            answers=(
                Answer(201, "the webhook, as in the list, with its `secret`: `whsec_…`", model=CreatedWebhookJson),
            ),
            errors=(
                "invalid_webhook_url",
                "forbidden_upstream",
                "private_upstream",
                "resolver_unavailable",
                "too_many_webhooks",
                "credentials_key_missing",
                "invalid_credentials_key",
                "invalid_tenant",
                "unknown_tenant",
            ),
        ),
        Route(
            "POST",
            f"{_WEBHOOK}/rotate",
            rotate_webhook,
            needs="owner",
            body=JsonBody(RotateSecretBody, required=False),
            takes="`grace_minutes`: how long the old secret signs as well, 60 unless given, 10,080 at most",
            answers=(Answer(200, "the webhook, as when it was created", model=CreatedWebhookJson),),
            errors=(
                "no_such_webhook",
                "credentials_key_missing",
                "invalid_credentials_key",
                "invalid_id",
                "invalid_tenant",
                "unknown_tenant",
            ),
        ),
        Route(
            "POST",
            f"{_WEBHOOKS}/reseal",
            reseal_webhooks,
            needs="owner",
            answers=(
                Answer(
                    200,
                    '`{"resealed", "unreadable"}`: webhooks whose secrets an older key had sealed, and those with a secret'
                    " that no key of the deployment opens, which stay as they are",
                    model=ResealedWebhooks,
                ),
            ),
            errors=("credentials_key_missing", "invalid_credentials_key", "invalid_tenant", "unknown_tenant"),
        ),
        Route(
            "DELETE",
            _WEBHOOK,
            delete_webhook,
            needs="owner",
            answers=(Answer(204, media_types=()),),
            errors=("no_such_webhook", "invalid_id", "invalid_tenant", "unknown_tenant"),
        ),
        Route(
            "GET",
            _DELIVERIES,
            list_deliveries,
            needs="owner",
            query=QueryString(DeliveriesQuery),
            answers=(
                Answer(
                    200,
                    '`{"deliveries", "cursor"}`: each with `message_id`, `event`, the run, `status`, `attempts`,'
                    " `response_status`, `error`, and when the next attempt is due",
                    model=DeliveriesJson,
                ),
            ),
            errors=(
                "no_such_webhook",
                "invalid_id",
                "invalid_limit",
                "invalid_cursor",
                "invalid_tenant",
                "unknown_tenant",
            ),
        ),
        Route(
            "POST",
            f"{_DELIVERIES}/{{message_id}}/replay",
            replay_delivery,
            needs="owner",
            answers=(Answer(202, "the message, as in the list", model=DeliveryJson),),
            errors=("no_such_delivery", "invalid_id", "invalid_tenant", "unknown_tenant"),
        ),
    ),
    about="Where applications hear of the end of runs: see [webhooks](webhooks.md).",
)
