"""The rows of conversations, the same in D1, on the host and in a Durable Object: one per message.

A save writes the rows that differ and removes those after the last message, so appending a message costs one row.
"""

from __future__ import annotations

from collections.abc import Sequence

from retain.contracts.messages import message_of
from retain.contracts.opaque import chunked
from retain.models.chat import ChatMessage
from retain.namespace import Namespace
from retain.ports import Row, Statement

SCHEMA = """
CREATE TABLE IF NOT EXISTS chat_messages (
  namespace_key TEXT NOT NULL,
  position INTEGER NOT NULL,
  tenant_id TEXT NOT NULL,
  message TEXT NOT NULL,
  PRIMARY KEY (namespace_key, position)
) WITHOUT ROWID
"""
"""The table in a Durable Object; D1 has it from migrations/0005_contracts.sql."""
_LOAD = "SELECT message FROM chat_messages WHERE namespace_key = ? ORDER BY position"
_PUT = """
INSERT INTO chat_messages (namespace_key, position, tenant_id, message)
SELECT ?1, CAST(?2 + key AS INTEGER), ?3, value FROM json_each(?4) WHERE true
ON CONFLICT (namespace_key, position) DO UPDATE SET message = excluded.message WHERE message <> excluded.message
"""
_CUT = "DELETE FROM chat_messages WHERE namespace_key = ? AND position >= ?"


def loading(namespace: Namespace) -> Statement:
    """Return the statement that reads the conversation. It is one statement, so the result is a snapshot."""
    return _LOAD, (str(namespace),)


def saving(namespace: Namespace, texts: list[str]) -> list[Statement]:
    """Return the statements that, run as one transaction, replace the conversation with these messages."""
    key = str(namespace)
    puts: list[Statement] = [(_PUT, (key, first, namespace.tenant_id, chunk)) for first, chunk in chunked(texts)]
    return [*puts, (_CUT, (key, len(texts)))]


def loaded(rows: Sequence[Row]) -> list[ChatMessage]:
    """Return the messages of the rows that `loading` read."""
    return [message_of(row["message"]) for row in rows]
