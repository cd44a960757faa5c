"""Conversations in the SQLite of a Durable Object."""

from __future__ import annotations

from collections.abc import Sequence

from retain.contracts.backends.chat_rows import SCHEMA, loaded, loading, saving
from retain.contracts.messages import database_texts
from retain.models.chat import ChatMessage
from retain.namespace import Namespace
from retain.ports import ObjectSql


class ObjectChatMemory:
    """Implements `ClearableChatMemory` on one object's own SQLite. The table is created on first use.

    A message has at most 900,000 bytes as JSON, a conversation 16 MiB. The object itself must erase what it holds: the
    deployment's erasure reaches D1, KV and the Durable Objects of Retain's agents, but no other Durable Objects.
    """

    def __init__(self, sql: ObjectSql, namespace: Namespace) -> None:
        self._sql = sql
        self._namespace = namespace
        self._has_table = False

    async def load(self) -> list[ChatMessage]:
        """Return all messages. See the contract."""
        self._make_table()
        sql, values = loading(self._namespace)
        return loaded(self._sql.run(sql, *values).rows)

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        """Replace the conversation with these messages. See the contract."""
        self._replace(database_texts(messages))

    async def clear(self) -> None:
        """Forget every message. See the contract."""
        self._replace([])

    def _replace(self, texts: list[str]) -> None:
        self._make_table()

        def work() -> None:
            for sql, values in saving(self._namespace, texts):
                self._sql.run(sql, *values)

        self._sql.atomically(work)

    def _make_table(self) -> None:
        if not self._has_table:
            self._sql.run(SCHEMA)
            self._has_table = True
