"""Stored conversations: their keys in KV, and which parts of a message are somebody's words."""

from __future__ import annotations

from retain.errors import Misconfigured
from retain.sealing.pii import Sealer

PREFIX = "chat_memory"


def tenant_prefix(tenant_id: str) -> str:
    """Return the prefix of all KV keys of a tenant's conversations."""
    return f"{PREFIX}:{tenant_id}:"


async def opened(sealer: Sealer | None, key: str, stored: str) -> str:
    """Return a conversation's JSON, given the value under its key in KV: plain or sealed.

    Raises: Misconfigured (code `item_unreadable`).
    """
    if stored.startswith("["):
        return stored
    if sealer is None:
        raise Misconfigured("the conversation is sealed, and there is no key to open it", code="item_unreadable")
    return await sealer.open(key, stored)


def words_of(message: object) -> object:
    """Return the words in a message's JSON: its content and its calls' arguments, without roles and names."""
    if not isinstance(message, dict):
        return message
    return [message.get("content"), *(call.get("arguments") for call in message.get("tool_calls", ()))]
