"""The contract of conversations: load the whole, save the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from retain.models.chat import ChatMessage


class ChatMemory(Protocol):
    """The messages of one session, oldest first. The constructor determines the session.

    CM1. Load is a snapshot: it returns the whole conversation as it was at one moment, as a list. It neither streams
        nor pages; what is saved later does not change it, and changing it changes nothing that is stored.
    CM2. Save replaces all: afterwards the conversation is exactly the messages that were given.
    CM3. Order is preserved: messages are loaded as they were saved, in that order, none merged, dropped or changed.
    CM4. A save is atomic for readers: a load sees the messages before it or after it, never a mixture. A save that
        fails, is cancelled, or dies with its process takes effect as a whole or not at all.
    CM5. A conversation that was never saved is the empty list: not None, and not an error.
    CM6. Clearing is opt-in: `ClearableChatMemory`. A backend that does not offer it has no such method; its users save
        an empty list instead.

    Sessions are separate: names that differ in anything are different sessions, and no method reaches another session.
    Views agree: a load that begins after a save or a clear returned sees it, through whichever object.
    Nothing is shared: what a caller changes later, in what it saved or loaded, changes nothing that is stored.
    Whole or refused: a message that would not be loaded equal makes the save raise. Nothing is cut, left out or altered.

    Of two concurrent saves, one wins as a whole. Nothing prevents a save that was computed from an outdated load.

    Stability: stable. docs/contracts.md says what that promises.
    """

    async def load(self) -> list[ChatMessage]:
        """Return all messages, oldest first (CM1, CM3, CM5). Raises: Unavailable."""
        ...

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        """Replace the conversation with these messages (CM2, CM3, CM4). Durable when it returns. Idempotent.

        Raises: InvalidInput (code `invalid_chat_message`) for a message that would not be loaded equal; LimitExceeded
            (code `chat_message_too_large`, `chat_session_too_large`); Unavailable. CM4 says what an error leaves.
        """
        ...


@runtime_checkable
class ClearableChatMemory(ChatMemory, Protocol):
    """A conversation that can be cleared (CM6)."""

    async def clear(self) -> None:
        """Forget every message, as a whole or not at all. Clearing an empty conversation is not an error."""
        ...
