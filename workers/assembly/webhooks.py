"""Webhooks: their secrets are sealed as upstream credentials are, and their addresses pass the same guard."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import bindings
from retain.gateway.credentials import read_credentials_key
from retain.gateway.resolver import Resolver
from retain.gateway.target import check_webhook_url, is_loopback
from retain.sealing.keyring import Keyring
from retain.webhooks.delivery_log import DeliveryLog
from retain.webhooks.endpoints import Webhooks
from retain.webhooks.sender import Sender

if TYPE_CHECKING:
    from assembly.root import Assembly


class WebhookParts:
    """Where applications hear of runs."""

    def __init__(self, root: Assembly) -> None:
        self._platform = root.platform
        url = root.platform.settings.resolver_url
        self._resolver = Resolver(url, bindings.fetch, bindings.now_ms) if url else None

    @cached_property
    def webhooks(self) -> Webhooks:
        """The webhooks of all tenants."""
        return Webhooks(self._platform.sql, bindings.now_ms, self._keys, self._guard)

    @cached_property
    def deliveries(self) -> DeliveryLog:
        """What they were sent."""
        return DeliveryLog(self._platform.sql, bindings.now_ms)

    @cached_property
    def sender(self) -> Sender:
        """What sends."""
        return Sender(self._platform.sql, bindings.fetch, bindings.now_ms, self._keys, self._guard)

    def _keys(self) -> Keyring:
        settings = self._platform.settings
        return Keyring(
            self._platform.crypto, settings.credentials_key, settings.previous_credentials_key, read_credentials_key
        )

    async def _guard(self, url: str) -> None:
        """Refuse an address to which nothing may be sent. See `retain.webhooks.endpoints.Guard`."""
        authority = check_webhook_url(url, allow_loopback=self._platform.settings.development)
        if self._resolver is not None and not is_loopback(authority):
            await self._resolver.check(authority)
