"""Conversations in D1, or in a SQLite file on the host."""

from __future__ import annotations

from collections.abc import Sequence

from retain.contracts.backends.chat_rows import loaded, loading, saving
from retain.contracts.messages import database_texts
from retain.models.chat import ChatMessage
from retain.namespace import Namespace
from retain.ports import Sql


class SqlChatMemory:
    """Implements `ClearableChatMemory` on the SQL port: a save is one transaction.

    A message has at most 900,000 bytes as JSON, a conversation 16 MiB.
    """

    def __init__(self, sql: Sql, namespace: Namespace) -> None:
        self._sql = sql
        self._namespace = namespace

    async def load(self) -> list[ChatMessage]:
        """Return all messages. See the contract."""
        sql, values = loading(self._namespace)
        return loaded((await self._sql.run(sql, *values)).rows)

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        """Replace the conversation with these messages. See the contract.

        Raises: also Conflict (code `constraint`) for a tenant that was erased.
        """
        await self._sql.batch(saving(self._namespace, database_texts(messages)))

    async def clear(self) -> None:
        """Forget every message. See the contract."""
        await self._sql.batch(saving(self._namespace, []))
