"""Conversations: what was asked and answered in the instances of agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from retain_client.api import AuthenticatedClient
from retain_client.api.api.agents import get_instance
from retain_client.api.api.conversations import delete_instance, list_instances, list_messages, rename_instance
from retain_client.api.models.conversation import Conversation
from retain_client.api.models.conversations import Conversations as ConversationsPage
from retain_client.api.models.instance import Instance
from retain_client.api.models.message import Message
from retain_client.api.models.messages import Messages as MessagesPage
from retain_client.api.models.rename_body import RenameBody
from retain_client.api.types import Unset
from retain_client.asynchronous.pages import AsyncPages
from retain_client.values import answered, or_unset


class AsyncConversations:
    """The conversations of a tenant. Each is an instance of an agent."""

    def __init__(self, api: AuthenticatedClient, tenant: str) -> None:
        self._api = api
        self._tenant = tenant

    def list(
        self,
        *,
        agent_type: str | None = None,
        user: str | None = None,
        status: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        limit: int | None = None,
    ) -> AsyncPages[Conversation]:
        """Return conversations, that with the newest run first. status: of its newest run. limit: of one page."""

        async def read(cursor: str | Unset) -> tuple[Sequence[Conversation], str | None]:
            response = await list_instances.asyncio_detailed(
                self._tenant,
                client=self._api,
                cursor=cursor,
                limit=or_unset(limit),
                agent_type=or_unset(agent_type),
                user=or_unset(user),
                status=or_unset(status),
                since_ms=or_unset(since_ms),
                until_ms=or_unset(until_ms),
            )
            page = answered(response, ConversationsPage)
            return page.instances, page.cursor

        return AsyncPages(read)

    async def get(self, agent_type: str, instance_id: str) -> Instance:
        """Return an instance: its newest runs, its queue and its conversation. Raises: RetainError."""
        response = await get_instance.asyncio_detailed(self._tenant, agent_type, instance_id, client=self._api)
        return answered(response, Instance)

    def messages(
        self,
        agent_type: str,
        instance_id: str,
        *,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
    ) -> AsyncPages[Message]:
        """Return what was asked and answered. limit: of one page."""

        async def read(cursor: str | Unset) -> tuple[Sequence[Message], str | None]:
            response = await list_messages.asyncio_detailed(
                self._tenant,
                agent_type,
                instance_id,
                client=self._api,
                cursor=cursor,
                limit=or_unset(limit),
                order=or_unset(order),
            )
            page = answered(response, MessagesPage)
            return page.messages, page.cursor

        return AsyncPages(read)

    async def rename(self, agent_type: str, instance_id: str, title: str) -> Conversation:
        """Give a conversation a title. Raises: RetainError."""
        body = RenameBody.from_dict({"title": title})
        response = await rename_instance.asyncio_detailed(
            self._tenant, agent_type, instance_id, client=self._api, body=body
        )
        return answered(response, Conversation)

    async def delete(self, agent_type: str, instance_id: str) -> None:
        """Delete a conversation with everything that its instance holds. Raises: RetainError."""
        await delete_instance.asyncio_detailed(self._tenant, agent_type, instance_id, client=self._api)
