"""Working memory of one instance: small JSON values, kept for an hour.

The object's SQLite answers reads, because KV may lag its own writes; KV has the same values under
`agent_working:{tenant}:{instance_id}:{key}` for readers outside the object. There the key begins with the agent type and
a dot, because instances of two agents may have the same id. A value with PII is not copied to KV, where it would be in the
clear: it is in the instance alone.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

from retain.errors import InvalidInput, LimitExceeded
from retain.json_text import Json
from retain.ports import Clock, Kv, ObjectSql

TTL_S = 3600
MAX_TOTAL_BYTES = 128 * 1024
"""Largest total size of one instance's keys and values."""
_log = logging.getLogger(__name__)
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")

SCHEMA = """
CREATE TABLE IF NOT EXISTS working_memory (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL
)
"""


class WorkingMemory:
    """The working memory of one instance."""

    def __init__(
        self,
        local: ObjectSql,
        kv: Kv,
        clock: Clock,
        tenant_id: str,
        agent_type: str,
        instance_id: str,
        declared: Callable[[str], Sequence[str]],
    ) -> None:
        """Take the instance's own database. declared: returns the names of the PII fields of a JSON text."""
        self._local = local
        self._kv = kv
        self._clock = clock
        self._declared = declared
        self._prefix = f"agent_working:{tenant_id}:{instance_id}:{agent_type}."  # an agent type has no dot

    async def set(self, key: str, value: Json) -> None:
        """Write a JSON value for an hour, replacing any earlier one. One with PII, or whose key names PII, is not in KV.

        Raises: InvalidInput for a key outside `[A-Za-z0-9_.-]{1,64}` or a value that is not JSON; LimitExceeded (code
            `working_memory_full`) when the instance would have more than 128 KiB; Unavailable when KV failed, in which
            case the instance can read the value and the call may be repeated.
        """
        if _KEY.fullmatch(key) is None:
            raise InvalidInput(f"a working key must match {_KEY.pattern}", code="invalid_working_key")
        try:
            text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InvalidInput("a working value must be JSON", code="invalid_working_value") from error
        declared = self._declared(f"{{{json.dumps(key)}: {text}}}")
        size = len(key.encode()) + len(text.encode())
        self._forget_expired()
        others = self._local.run("SELECT COALESCE(SUM(bytes), 0) AS total FROM working_memory WHERE key <> ?", key)
        if int(others.rows[0]["total"]) + size > MAX_TOTAL_BYTES:
            raise LimitExceeded(
                "the instance's working memory is full", code="working_memory_full", limit_bytes=MAX_TOTAL_BYTES
            )
        self._local.run(
            "INSERT OR REPLACE INTO working_memory VALUES (?, ?, ?, ?)", key, text, size, self._clock() + TTL_S * 1000
        )
        if declared:
            _log.warning("a working value with PII is not copied to KV", extra={"fields": ", ".join(declared)})
            await self._kv.delete(self._prefix + key)
            return
        await self._kv.put(self._prefix + key, text, ttl_s=TTL_S)

    def get(self, key: str) -> Any:
        """Return the value, or None when the key was not set in the last hour."""
        rows = self._local.run(
            "SELECT value FROM working_memory WHERE key = ? AND expires_at_ms > ?", key, self._clock()
        ).rows
        return json.loads(rows[0]["value"]) if rows else None

    def all(self) -> dict[str, Json]:
        """Return every live key with its value, sorted by key."""
        rows = self._local.run(
            "SELECT key, value FROM working_memory WHERE expires_at_ms > ? ORDER BY key", self._clock()
        ).rows
        return {row["key"]: json.loads(row["value"]) for row in rows}

    async def clear(self) -> None:
        """Remove every key, also from KV."""
        for row in self._local.run("SELECT key FROM working_memory").rows:
            await self._kv.delete(self._prefix + row["key"])
        self._local.run("DELETE FROM working_memory")

    async def erase(self, names: Callable[[str], bool]) -> None:
        """Remove the keys whose name or value mentions what is to be erased, also from KV. names: whether a text does."""
        for row in self._local.run("SELECT key, value FROM working_memory").rows:
            if names(row["key"]) or names(row["value"]):
                await self._kv.delete(self._prefix + row["key"])
                self._local.run("DELETE FROM working_memory WHERE key = ?", row["key"])

    def _forget_expired(self) -> None:
        self._local.run("DELETE FROM working_memory WHERE expires_at_ms <= ?", self._clock())
