"""The people for whom a tenant's agents work."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from retain_client.api import AuthenticatedClient
from retain_client.api.api.users import delete_user, export_user, get_user, list_users, put_user
from retain_client.api.models.erasure import Erasure
from retain_client.api.models.profile_body import ProfileBody
from retain_client.api.models.shown_user import ShownUser
from retain_client.api.models.user import User
from retain_client.api.models.users import Users as UsersPage
from retain_client.api.types import UNSET, Unset
from retain_client.asynchronous.pages import AsyncPages
from retain_client.asynchronous.pause import sleep
from retain_client.values import answered, fitting, given, json_object, next_cursor, or_unset


class AsyncUsers:
    """A tenant's users."""

    def __init__(self, api: AuthenticatedClient, tenant: str) -> None:
        self._api = api
        self._tenant = tenant

    def list(self, *, limit: int | None = None) -> AsyncPages[User]:
        """Return the users by their ids. limit: of one page."""

        async def read(cursor: str | Unset) -> tuple[Sequence[User], str | None]:
            response = await list_users.asyncio_detailed(
                self._tenant, client=self._api, cursor=cursor, limit=or_unset(limit)
            )
            page = answered(response, UsersPage)
            return page.users, page.cursor

        return AsyncPages(read)

    async def get(self, user: str) -> ShownUser:
        """Return a user's profile, and how much is kept of them. Raises: RetainError."""
        return answered(await get_user.asyncio_detailed(self._tenant, user, client=self._api), ShownUser)

    async def put(
        self, user: str, *, name: str | None = None, locale: str | None = None, timezone: str | None = None
    ) -> ShownUser:
        """Set a user's profile; what is absent is taken away. Raises: RetainError."""
        body = ProfileBody.from_dict(given(name=name, locale=locale, timezone=timezone))
        return answered(await put_user.asyncio_detailed(self._tenant, user, client=self._api, body=body), ShownUser)

    async def forget(self, user: str, *, timeout_s: float = 60.0) -> Erasure:
        """Erase a user with everything that is kept of them; continue until it is complete or the time is up.

        The receipt's `state` says which. Calling it again continues. Raises: RetainError.
        """
        until = time.monotonic() + timeout_s
        while True:
            response = await delete_user.asyncio_detailed(self._tenant, user, client=self._api)
            erasure = answered(response, Erasure)
            pause_s = (erasure.retry_after_ms or 0) / 1000
            if erasure.retry_after_ms is None or time.monotonic() + pause_s > until:
                return erasure
            await sleep(pause_s)

    async def export(self, user: str) -> AsyncIterator[dict[str, Any]]:
        """Yield all that is kept of a user, one line of the export after the other. Raises: RetainError."""
        cursor: str | Unset | None = UNSET
        while cursor is not None:
            response = await export_user.asyncio_detailed(self._tenant, user, client=self._api, cursor=cursor)
            with fitting(response):
                lines = [json_object(line) for line in response.content.splitlines()]
                cursor = next_cursor(lines)
            for line in lines:
                yield line
