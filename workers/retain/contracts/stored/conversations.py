"""Stored conversations: their keys in KV, and which parts of a message are somebody's words."""

from __future__ import annotations

PREFIX = "chat_memory"


def tenant_prefix(tenant_id: str) -> str:
    """Return the prefix of all KV keys of a tenant's conversations."""
    return f"{PREFIX}:{tenant_id}:"


def words_of(message: object) -> object:
    """Return the words in a message's JSON: its content and its calls' arguments, without roles and names."""
    if not isinstance(message, dict):
        return message
    return [message.get("content"), *(call.get("arguments") for call in message.get("tool_calls", ()))]
