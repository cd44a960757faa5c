"""The content of attachments while a model is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from retain.attachments.attachment import Readers
from retain.attachments.store import Attachments
from retain.limits.room import Room
from retain.models.chat import ChatRequest


class SentFiles:
    """Reads what the messages of one run's requests name.

    attachments: None for a deployment without them. room: in the isolate's memory, for all runs that are asking.
    """

    def __init__(self, attachments: Attachments | None, tenant_id: str, user_id: str | None, room: Room | None) -> None:
        self._attachments = attachments
        self._tenant_id = tenant_id
        self._readers = Readers(user_id)
        self._room = room

    @asynccontextmanager
    async def of(self, request: ChatRequest) -> AsyncIterator[ChatRequest]:
        """Return the request with the contents of its attachments, which are held in memory until the block ends.

        A file that was deleted meanwhile, or is another user's, has none. Raises: Unavailable.
        """
        files = {file.id: file for message in request.messages for file in message.attachments}
        if not files or self._attachments is None:
            yield request
            return
        if self._room is None:
            yield await self._with_contents(request)
            return
        async with self._room.held(sum(file.bytes for file in files.values())):
            yield await self._with_contents(request)

    async def _with_contents(self, request: ChatRequest) -> ChatRequest:
        assert self._attachments is not None
        files = {file.id: file for message in request.messages for file in message.attachments}
        contents = await self._attachments.contents(self._tenant_id, list(files.values()), self._readers)
        return replace(request, contents=contents)
