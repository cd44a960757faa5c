"""Conversations in Workers KV: one value per session."""

from __future__ import annotations

import json
from collections.abc import Sequence

from retain.contracts.messages import message_from, message_texts
from retain.contracts.stored.conversations import tenant_prefix
from retain.limits.storage import MAX_KV_VALUE_BYTES
from retain.models.chat import ChatMessage
from retain.namespace import Namespace
from retain.ports import Kv


class KvChatMemory:
    """Implements `ClearableChatMemory` on KV. A save is one write, so no reader sees part of it (CM4).

    KV is eventually consistent: for up to 60 seconds a reader elsewhere, or one here with a cached copy, may see an older
    conversation, though a whole one. To read your own writes, use D1 or a Durable Object. KV accepts one write per second
    and key. Source: https://developers.cloudflare.com/kv/concepts/how-kv-works/

    A conversation has at most 25 MiB as JSON. ttl_s: seconds after the last save until it is forgotten, at least 60; None
    keeps it.
    """

    def __init__(self, kv: Kv, namespace: Namespace, *, ttl_s: int | None = None) -> None:
        self._kv = kv
        self._key = f"{tenant_prefix(namespace.tenant_id)}{namespace}"
        self._ttl_s = ttl_s

    async def load(self) -> list[ChatMessage]:
        """Return all messages. See the contract."""
        text = await self._kv.get(self._key)
        return [] if text is None else [message_from(fields) for fields in json.loads(text)]

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        """Replace the conversation with these messages. See the contract."""
        texts = message_texts(messages, max_message_bytes=MAX_KV_VALUE_BYTES, max_session_bytes=MAX_KV_VALUE_BYTES)
        await self._kv.put(self._key, f"[{','.join(texts)}]", ttl_s=self._ttl_s)

    async def clear(self) -> None:
        """Forget every message. See the contract."""
        await self._kv.delete(self._key)
