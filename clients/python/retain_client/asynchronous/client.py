"""The client."""

from __future__ import annotations

from typing import Self

import httpx

from retain_client.api import AuthenticatedClient
from retain_client.asynchronous.agents import AsyncAgents
from retain_client.asynchronous.attachments import AsyncAttachments
from retain_client.asynchronous.conversations import AsyncConversations
from retain_client.asynchronous.memories import AsyncMemories
from retain_client.asynchronous.runs import AsyncRuns
from retain_client.asynchronous.schedules import AsyncSchedules
from retain_client.asynchronous.tokens import AsyncTokens
from retain_client.asynchronous.transport import AsyncHttpClient, AsyncRetryingTransport, raise_refusal
from retain_client.asynchronous.users import AsyncUsers
from retain_client.asynchronous.webhooks import AsyncWebhooks
from retain_client.destination import checked_key, checked_url
from retain_client.retries import Retries
from retain_client.version import __version__

_CONNECT_S = 10.0
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)
"""Each open stream has a connection: with a limit, a run would wait until another one ends."""


class AsyncRetain:
    """One tenant of a deployment, reached with a key of an application or a token of its user.

    url: of the deployment. timeout_s: how long the server may be silent before a request counts as failed. transport:
    what sends, such as `httpx.AsyncHTTPTransport(proxy=…)`. Every operation of the document, with its own types, is in
    `retain_client.api.api`; pass it this client's `api`.

    Raises: ValueError for what cannot be an address or a key.
    """

    def __init__(
        self,
        url: str,
        key: str,
        tenant: str,
        *,
        timeout_s: float = 60.0,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        url, key, retries = checked_url(url), checked_key(key), retries or Retries()
        self._http = AsyncHttpClient(
            base_url=url,
            headers={"authorization": f"Bearer {key}", "user-agent": f"retain-client/{__version__} (python)"},
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S)),
            transport=AsyncRetryingTransport(transport or httpx.AsyncHTTPTransport(limits=_LIMITS), retries),
            event_hooks={"response": [raise_refusal]},
        )
        self.tenant = tenant
        self.api = AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True)
        self.api.set_async_httpx_client(self._http)
        self.runs = AsyncRuns(self.api, self._http, retries, tenant)
        self.attachments = AsyncAttachments(self.api, self._http, tenant)
        self.memories = AsyncMemories(self.api, tenant)
        self.users = AsyncUsers(self.api, tenant)
        self.conversations = AsyncConversations(self.api, tenant)
        self.agents = AsyncAgents(self.api, tenant)
        self.tokens = AsyncTokens(self.api, tenant)
        self.schedules = AsyncSchedules(self.api, tenant)
        self.webhooks = AsyncWebhooks(self.api, tenant)

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()
