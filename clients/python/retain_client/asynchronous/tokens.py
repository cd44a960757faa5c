"""Tokens for the browsers of an application's users."""

from __future__ import annotations

from retain_client.api import AuthenticatedClient
from retain_client.api.api.keys_of_applications import create_token
from retain_client.api.models.token import Token
from retain_client.api.models.token_body import TokenBody
from retain_client.values import answered, given


class AsyncTokens:
    """Makes short-lived tokens with the application's key."""

    def __init__(self, api: AuthenticatedClient, tenant: str) -> None:
        self._api = api
        self._tenant = tenant

    async def create(self, user: str, *, agent_type: str | None = None, minutes: int | None = None) -> Token:
        """Make a token for a user. agent_type: the only agent that it reaches. minutes: 1 to 60. Raises: RetainError."""
        body = TokenBody.from_dict(given(user=user, agent_type=agent_type, minutes=minutes))
        return answered(await create_token.asyncio_detailed(self._tenant, client=self._api, body=body), Token)
