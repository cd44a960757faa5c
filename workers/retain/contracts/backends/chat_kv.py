"""Conversations in Workers KV: one value per session."""

from __future__ import annotations

from collections.abc import Sequence

from retain.contracts.messages import message_texts, messages_of
from retain.contracts.stored.conversations import opened, tenant_prefix
from retain.errors import Misconfigured
from retain.limits.storage import MAX_KV_VALUE_BYTES
from retain.models.chat import ChatMessage
from retain.namespace import Namespace
from retain.ports import Kv
from retain.sealing.pii import FIELDS, Sealer, declared_in

MAX_SEALED_BYTES = 18 * 1024 * 1024
"""Largest conversation that is sealed: base64 makes it a third larger, and then it must fit into a value of KV."""


class KvChatMemory:
    """Implements `ClearableChatMemory` on KV. A save is one write, so no reader sees part of it (CM4).

    KV is eventually consistent: for up to 60 seconds a reader elsewhere, or one here with a cached copy, may see an older
    conversation, though a whole one. To read your own writes, use D1 or a Durable Object. KV accepts one write per second
    and key. Source: https://developers.cloudflare.com/kv/concepts/how-kv-works/

    A conversation has at most 25 MiB as JSON, a sealed one 18 MiB. ttl_s: seconds after the last save until it is
    forgotten, at least 60; None keeps it. sealer: seals each conversation as a whole, because KV is replicated and cached;
    those that were saved unsealed are read as well. None stores them in plain text, and refuses those that hold PII: a
    declared field in a call's arguments, or in a content that is JSON.
    """

    def __init__(self, kv: Kv, namespace: Namespace, *, ttl_s: int | None = None, sealer: Sealer | None = None) -> None:
        self._kv = kv
        self._key = f"{tenant_prefix(namespace.tenant_id)}{namespace}"
        self._ttl_s = ttl_s
        self._sealer = sealer

    async def load(self) -> list[ChatMessage]:
        """Return all messages. See the contract.

        Raises: also Misconfigured (code `item_unreadable`) for a sealed conversation that no key of the sealer opens.
        """
        stored = await self._kv.get(self._key)
        if stored is None:
            return []
        return messages_of(await opened(self._sealer, self._key, stored))

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        """Replace the conversation with these messages. See the contract.

        Raises: also Misconfigured (codes `memory_key_missing`, `invalid_memory_key`); InvalidInput (code
            `value_too_deep`).
        """
        limit = MAX_KV_VALUE_BYTES if self._sealer is None else MAX_SEALED_BYTES
        texts = message_texts(messages, max_message_bytes=limit, max_session_bytes=limit)
        text = f"[{','.join(texts)}]"
        if self._sealer is None:
            _refuse_pii(text, messages)
        else:
            text = await self._sealer.seal(self._key, text)
        await self._kv.put(self._key, text, ttl_s=self._ttl_s)

    async def clear(self) -> None:
        """Forget every message. See the contract."""
        await self._kv.delete(self._key)


def _refuse_pii(text: str, messages: Sequence[ChatMessage]) -> None:
    if any(declared_in(one, FIELDS) for one in (text, *(message.content for message in messages))):
        raise Misconfigured(
            "the conversation holds PII, and this memory has no key to seal it", code="memory_key_missing"
        )
