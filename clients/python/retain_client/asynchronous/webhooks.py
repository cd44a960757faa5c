"""Where a tenant's applications hear of runs."""

from __future__ import annotations

from collections.abc import Sequence

from retain_client.api import AuthenticatedClient
from retain_client.api.api.webhooks import (
    create_webhook,
    delete_webhook,
    list_deliveries,
    list_webhooks,
    replay_delivery,
    rotate_webhook,
)
from retain_client.api.models.created_webhook import CreatedWebhook
from retain_client.api.models.deliveries import Deliveries
from retain_client.api.models.delivery import Delivery
from retain_client.api.models.list_deliveries_status import ListDeliveriesStatus
from retain_client.api.models.rotate_secret_body import RotateSecretBody
from retain_client.api.models.webhook import Webhook
from retain_client.api.models.webhook_body import WebhookBody
from retain_client.api.models.webhooks import Webhooks as WebhooksPage
from retain_client.api.types import Unset
from retain_client.asynchronous.pages import AsyncPages
from retain_client.values import answered, given, or_unset


class AsyncWebhooks:
    """The webhooks of a tenant."""

    def __init__(self, api: AuthenticatedClient, tenant: str) -> None:
        self._api = api
        self._tenant = tenant

    def list(self, *, limit: int | None = None) -> AsyncPages[Webhook]:
        """Return the webhooks, the oldest first. limit: of one page."""

        async def read(cursor: str | Unset) -> tuple[Sequence[Webhook], str | None]:
            response = await list_webhooks.asyncio_detailed(
                self._tenant, client=self._api, cursor=cursor, limit=or_unset(limit)
            )
            page = answered(response, WebhooksPage)
            return page.webhooks, page.cursor

        return AsyncPages(read)

    async def create(self, url: str, *, events: Sequence[str] | None = None) -> CreatedWebhook:
        """Create a webhook. events: all unless given. Its secret is in this answer alone. Raises: RetainError."""
        body = WebhookBody.from_dict(given(url=url, events=None if events is None else [*events]))
        response = await create_webhook.asyncio_detailed(self._tenant, client=self._api, body=body)
        return answered(response, CreatedWebhook)

    async def rotate(self, webhook_id: str, *, grace_minutes: int | None = None) -> CreatedWebhook:
        """Give a webhook another secret, which is in this answer alone.

        grace_minutes: how long the old one signs as well, an hour unless given. Raises: RetainError.
        """
        body = RotateSecretBody.from_dict(given(grace_minutes=grace_minutes))
        response = await rotate_webhook.asyncio_detailed(self._tenant, webhook_id, client=self._api, body=body)
        return answered(response, CreatedWebhook)

    async def delete(self, webhook_id: str) -> None:
        """Delete a webhook: what it was not sent yet is not sent. Raises: RetainError."""
        await delete_webhook.asyncio_detailed(self._tenant, webhook_id, client=self._api)

    def deliveries(
        self, webhook_id: str, *, status: ListDeliveriesStatus | None = None, limit: int | None = None
    ) -> AsyncPages[Delivery]:
        """Return what a webhook was sent and is owed, the messages of the newest runs first. limit: of one page."""

        async def read(cursor: str | Unset) -> tuple[Sequence[Delivery], str | None]:
            response = await list_deliveries.asyncio_detailed(
                self._tenant,
                webhook_id,
                client=self._api,
                cursor=cursor,
                limit=or_unset(limit),
                status=or_unset(status),
            )
            page = answered(response, Deliveries)
            return page.deliveries, page.cursor

        return AsyncPages(read)

    async def replay(self, webhook_id: str, message_id: str) -> Delivery:
        """Send a message again, whatever became of it. Raises: RetainError."""
        response = await replay_delivery.asyncio_detailed(self._tenant, webhook_id, message_id, client=self._api)
        return answered(response, Delivery)
