"""A chat model that answers what a test lines up, when the test lets it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from retain.models.chat import ChatReply, ChatRequest, OnText, ToolCall, Usage


def says(text: str) -> ChatReply:
    """Return an answer without tool calls."""
    return ChatReply(text, (), Usage(3, 2))


def calls(*wanted: tuple[str, Mapping[str, Any]], text: str = "") -> ChatReply:
    """Return an answer that calls tools: name and arguments of each."""
    made = tuple(ToolCall(f"call_{n}", name, arguments) for n, (name, arguments) in enumerate(wanted))
    return ChatReply(text, made, Usage(3, 2))


class SteppedChat:
    """Implements `ChatModel`: returns the replies in order, or raises them, and answers "done" when none is left.

    hold: the model does not answer until `let_go`; `asked` is set once it was asked.
    """

    name = "stepped"

    def __init__(self, *replies: ChatReply | Exception, hold: bool = False) -> None:
        self._replies = list(replies)
        self.requests: list[ChatRequest] = []
        self.asked = asyncio.Event()
        self._free = asyncio.Event()
        if not hold:
            self._free.set()

    def then(self, *replies: ChatReply | Exception) -> None:
        """Add replies after those that are left."""
        self._replies += replies

    def hold(self) -> None:
        """Let the model not answer from now on, until `let_go`."""
        self._free.clear()
        self.asked.clear()

    def let_go(self) -> None:
        """Let the model answer from now on."""
        self._free.set()

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer, in one piece of text. See the class."""
        self.requests.append(request)
        self.asked.set()
        await self._free.wait()
        reply = self._replies.pop(0) if self._replies else says("done")
        if isinstance(reply, Exception):
            raise reply
        if on_text is not None and reply.content:
            await on_text(reply.content)
        return reply
