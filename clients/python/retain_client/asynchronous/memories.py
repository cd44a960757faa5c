"""What a tenant's agents and users remember."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from retain_client.api import AuthenticatedClient
from retain_client.api.api.ingest import get_ingest_job, ingest_conversation
from retain_client.api.api.memories import (
    create_memory,
    delete_memory,
    get_memory,
    list_memories,
    recall_memories,
    update_memory,
)
from retain_client.api.models.edit_body import EditBody
from retain_client.api.models.ingest_body import IngestBody
from retain_client.api.models.ingest_job import IngestJob
from retain_client.api.models.memories import Memories as MemoriesPage
from retain_client.api.models.memory import Memory
from retain_client.api.models.memory_with_events import MemoryWithEvents
from retain_client.api.models.recall import Recall
from retain_client.api.models.recall_body import RecallBody
from retain_client.api.models.store_body import StoreBody
from retain_client.api.models.stored_memory import StoredMemory
from retain_client.api.types import Unset
from retain_client.asynchronous.pages import AsyncPages
from retain_client.values import answered, body_of, given, or_unset


class AsyncMemories:
    """A tenant's memories. `user_id`, `agent_type` and `house` say whose; without them a memory is the whole tenant's."""

    def __init__(self, api: AuthenticatedClient, tenant: str) -> None:
        self._api = api
        self._tenant = tenant

    async def store(
        self,
        content: str,
        *,
        user_id: str | None = None,
        agent_type: str | None = None,
        house: str | None = None,
        kind: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> StoredMemory:
        """Store one memory; the same content is stored once. fields: further ones of `StoreBody`.

        Raises: RetainError; TypeError for a field that `StoreBody` does not have.
        """
        whose = {"user_id": user_id, "agent_type": agent_type, "house": house}
        body = body_of(StoreBody, given(content=content, **whose, kind=kind, metadata=metadata, **fields))
        return answered(await create_memory.asyncio_detailed(self._tenant, client=self._api, body=body), StoredMemory)

    async def recall(
        self,
        query: str,
        *,
        top_k: int | None = None,
        user_id: str | None = None,
        agent_type: str | None = None,
        house: str | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 -- as the document calls it
        **fields: Any,
    ) -> Recall:
        """Return what is remembered about a query, best first. fields: further ones of `RecallBody`.

        Raises: RetainError; TypeError for a field that `RecallBody` does not have.
        """
        whose = {"user_id": user_id, "agent_type": agent_type, "house": house}
        body = body_of(RecallBody, given(query=query, top_k=top_k, **whose, filter=filter, **fields))
        return answered(await recall_memories.asyncio_detailed(self._tenant, client=self._api, body=body), Recall)

    def list(
        self,
        *,
        user_id: str | None = None,
        agent_type: str | None = None,
        house: str | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 -- as the document calls it
        all: bool | None = None,  # noqa: A002 -- as the document calls it
        as_of_ms: int | None = None,
        valid_at_ms: int | None = None,
        limit: int | None = None,
    ) -> AsyncPages[Memory]:
        """Return memories, oldest first.

        all: also those that are not valid. as_of_ms: what was known then. valid_at_ms: what was or will be valid then.
        limit: of one page.
        """

        async def read(cursor: str | Unset) -> tuple[Sequence[Memory], str | None]:
            response = await list_memories.asyncio_detailed(
                self._tenant,
                client=self._api,
                cursor=cursor,
                limit=or_unset(limit),
                user_id=or_unset(user_id),
                agent_type=or_unset(agent_type),
                house=or_unset(house),
                filter_=or_unset(None if filter is None else json.dumps(filter)),
                all_=or_unset(all),
                as_of_ms=or_unset(as_of_ms),
                valid_at_ms=or_unset(valid_at_ms),
            )
            page = answered(response, MemoriesPage)
            return page.memories, page.cursor

        return AsyncPages(read)

    async def get(self, memory_id: str) -> MemoryWithEvents:
        """Return a memory with the events that made it. Raises: RetainError."""
        response = await get_memory.asyncio_detailed(self._tenant, memory_id, client=self._api)
        return answered(response, MemoryWithEvents)

    async def update(self, memory_id: str, *, if_match: str | None = None, **fields: Any) -> Memory:
        """Change the named fields of a memory, as `EditBody` has them; None is a value.

        if_match: `last_event_id` of the memory on which the change is based. Raises: RetainError (code `memory_changed`).
        """
        body = EditBody.from_dict(fields)
        quoted = or_unset(None if if_match is None else f'"{if_match}"')
        response = await update_memory.asyncio_detailed(
            self._tenant, memory_id, client=self._api, body=body, if_match=quoted
        )
        return answered(response, Memory)

    async def delete(self, memory_id: str) -> None:
        """Delete a memory: it is no longer found. Raises: RetainError."""
        await delete_memory.asyncio_detailed(self._tenant, memory_id, client=self._api)

    async def ingest(
        self,
        conversation: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_type: str | None = None,
        house: str | None = None,
    ) -> IngestJob:
        """Store a conversation's messages and extract facts; the same request is the same job.

        messages: each with `content`, `speaker` or `role`, and `at_ms` if it is known. Those that cannot be stored are in
        the job's `rejections`. Raises: RetainError.
        """
        whose = {"user_id": user_id, "agent_type": agent_type, "house": house}
        body = body_of(IngestBody, given(conversation=conversation, messages=list(messages), **whose))
        response = await ingest_conversation.asyncio_detailed(self._tenant, client=self._api, body=body)
        return answered(response, IngestJob)

    async def ingest_job(self, job_id: str) -> IngestJob:
        """Return how far an ingest is. Raises: RetainError."""
        return answered(await get_ingest_job.asyncio_detailed(self._tenant, job_id, client=self._api), IngestJob)
