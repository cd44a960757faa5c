"""The contract of conversations: load all of it, save all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from retain.models.chat import ChatMessage


class ChatMemory(Protocol):
    """The messages of one session, oldest first. Which session it is, is a matter of the constructor.

    CM1. Load is a snapshot: it returns the whole conversation as it was at one moment, as a list. It neither streams
        nor pages; what is saved later does not change it, and changing it changes nothing that is stored.
    CM2. Save replaces all: afterwards the conversation is the messages that were given, and nothing else.
    CM3. Order is preserved: messages come back as they were given, in that order, none merged, dropped or changed.
    CM4. A save is atomic to whoever loads: they see the messages before it or after it, never some of both. One that
        fails, is cancelled, or dies with its process has happened as a whole or not at all.
    CM5. A conversation that was never saved is the empty list: no None, no error.
    CM6. Clearing is opt-in: `ClearableChatMemory`. A backend that does not offer it has no such method, and whoever
        uses one saves an empty list.

    Two saves at the same time: one of them stands as a whole. There is no lock against a save that was computed from an
    older load.
    """

    async def load(self) -> list[ChatMessage]:
        """Return all messages, oldest first (CM1, CM3, CM5). Raises: Unavailable."""
        ...

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        """Make the conversation these messages (CM2, CM3, CM4). Durable when it returns. Idempotent.

        Raises: InvalidInput (code `invalid_chat_message`) for a message that would not come back equal; LimitExceeded (code
            `chat_message_too_large`, `chat_session_too_large`); Unavailable. After an error see CM4.
        """
        ...


@runtime_checkable
class ClearableChatMemory(ChatMemory, Protocol):
    """A conversation that can be cleared (CM6)."""

    async def clear(self) -> None:
        """Forget every message, as a whole or not at all. Clearing an empty conversation is no error."""
        ...
