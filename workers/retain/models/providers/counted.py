"""A chat model whose calls are counted, and refused when the tenant has spent what it may."""

from __future__ import annotations

import json
from collections.abc import Callable

from retain.errors import RetainError, StreamInterrupted
from retain.models.chat import ChatMessage, ChatModel, ChatReply, ChatRequest, OnText, Usage, usage_of
from retain.tenants.model_calls import CallCounts

Estimated = Callable[[ChatMessage], int]
"""About how many tokens a message has."""


class CountedChat:
    """Implements the `ChatModel` port: counts what another one's answers cost, also those that cannot be used."""

    def __init__(self, model: ChatModel, counts: CallCounts, estimated: Estimated) -> None:
        """estimated: of what the model's server does not count, because no answer is free."""
        self._model = model
        self._counts = counts
        self._estimated = estimated

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._model.name

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the model's answer, which is counted by then.

        A call to which the server answered nothing is not counted. Raises: as the model; QuotaExceeded (code
        `token_quota`).
        """
        await self._counts.check()
        try:
            reply = await self._model.complete(request, on_text)
        except RetainError as error:
            used = usage_of(error)
            if used != Usage() or isinstance(error, StreamInterrupted):
                await self._count(request, used, "")
            raise
        calls = "".join(f"{call.name}{json.dumps(dict(call.arguments))}" for call in reply.tool_calls)
        await self._count(request, reply.usage, reply.content + calls)
        return reply

    async def _count(self, request: ChatRequest, usage: Usage, written: str) -> None:
        read = usage.input_tokens or sum(map(self._estimated, request.messages))
        wrote = usage.output_tokens or self._estimated(ChatMessage("assistant", written))
        await self._counts.add(self.name, read, usage.cached_input_tokens, wrote)
