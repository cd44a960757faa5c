"""Stored conversations: where KV keeps them, and what of a message somebody said."""

from __future__ import annotations

PREFIX = "chat_memory"


def tenant_prefix(tenant_id: str) -> str:
    """Return the prefix of all KV keys of a tenant's conversations."""
    return f"{PREFIX}:{tenant_id}:"


def said_in(message: object) -> object:
    """Return what a message says, of its JSON: its content and its calls' arguments, without roles and names."""
    if not isinstance(message, dict):
        return message
    return [message.get("content"), *(call.get("arguments") for call in message.get("tool_calls", ()))]
