"""Working memory of one instance: small JSON values, kept for an hour.

The object's SQLite answers reads, because KV may lag its own writes; KV has the same values under
`agent_working:{tenant}:{instance_id}:{key}` for readers outside the object. There the key begins with the agent type and
a dot, because instances of two agents may have the same id. A value with PII is not copied to KV, where it would be in the
clear: it is in the instance alone.

A copy is owed from the write on, and paid at once. KV takes one write per second to a key, and may be down: then the copy
stays owed, and the instance's alarm pays it, with what the key has by then.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

from retain.errors import InvalidInput, LimitExceeded, Unavailable
from retain.json_text import Json, check_nested, read_own_json
from retain.limits.storage import MIN_KV_TTL_S
from retain.ports import Clock, Kv, ObjectSql

TTL_S = 3600
RETRY_MS = 2000
"""How long an owed copy waits after the first failure; twice as long after each further one.

Source: https://developers.cloudflare.com/kv/platform/limits/ (one write per second to the same key)
"""
MAX_RETRY_MS = 300_000
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
COPIES_SCHEMA = """
CREATE TABLE IF NOT EXISTS working_copies_owed (
  key TEXT PRIMARY KEY,
  change INTEGER NOT NULL,   -- grows with every write of the key, so that paying one does not pay the next
  attempts INTEGER NOT NULL,
  due_at_ms INTEGER NOT NULL
)
"""
_OWE = """
INSERT INTO working_copies_owed VALUES (?1, 1, 0, ?2)
ON CONFLICT (key) DO UPDATE SET change = change + 1, attempts = 0, due_at_ms = ?2
"""
_OTHERS = """
SELECT COALESCE(SUM(bytes) FILTER (WHERE key <> ?1 AND expires_at_ms > ?2), 0) AS total,
  COUNT(*) FILTER (WHERE expires_at_ms <= ?2) AS expired
FROM working_memory
"""
_OWED = """
SELECT owed.change, owed.attempts, kept.value, kept.expires_at_ms
FROM working_copies_owed owed LEFT JOIN working_memory kept ON kept.key = owed.key WHERE owed.key = ?
"""
_PAID = "DELETE FROM working_copies_owed WHERE key = ? AND change = ?"
_FAILED = "UPDATE working_copies_owed SET attempts = attempts + 1, due_at_ms = ? WHERE key = ?"
_KEYS = "SELECT key FROM working_memory UNION SELECT key FROM working_copies_owed"


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
        self._owes_nothing = False  # as far as is known without a query
        self._one_at_a_time = asyncio.Lock()  # so that an older value never reaches KV after a newer one

    async def set(self, key: str, value: Json) -> None:
        """Write a JSON value for an hour, replacing any earlier one. One with PII, or whose key names PII, is not in KV.

        Durable in the instance when this returns. A copy that KV did not take stays owed.
        Raises: InvalidInput for a key outside `[A-Za-z0-9_.-]{1,64}` or a value that is not JSON; LimitExceeded (code
            `working_memory_full`) when the instance would have more than 128 KiB.
        """
        if _KEY.fullmatch(key) is None:
            raise InvalidInput(f"a working key must match {_KEY.pattern}", code="invalid_working_key")
        try:
            check_nested(value)
            text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InvalidInput("a working value must be JSON", code="invalid_working_value") from error
        size = len(key.encode()) + len(text.encode())
        now = self._clock()
        [others] = self._local.run(_OTHERS, key, now).rows
        if others["expired"]:
            self._local.run("DELETE FROM working_memory WHERE expires_at_ms <= ?", now)
        if int(others["total"]) + size > MAX_TOTAL_BYTES:
            raise LimitExceeded(
                "the instance's working memory is full", code="working_memory_full", limit_bytes=MAX_TOTAL_BYTES
            )
        self._local.run(
            "INSERT OR REPLACE INTO working_memory VALUES (?, ?, ?, ?)", key, text, size, now + TTL_S * 1000
        )
        self._owes_nothing = False
        self._local.run(_OWE, key, now + RETRY_MS)
        await self._pay(key)

    async def settle(self) -> None:
        """Write the owed copies that are due. One that KV does not take stays owed, and is due later."""
        due = self._local.run("SELECT key FROM working_copies_owed WHERE due_at_ms <= ? ORDER BY key", self._clock())
        for row in due.rows:
            await self._pay(row["key"])

    def next_due_ms(self) -> int | None:
        """Return when the next owed copy is due, or None when there is none."""
        if self._owes_nothing:
            return None
        [row] = self._local.run("SELECT MIN(due_at_ms) AS due FROM working_copies_owed").rows
        self._owes_nothing = row["due"] is None
        return None if row["due"] is None else int(row["due"])

    def get(self, key: str) -> Any:
        """Return the value, or None when the key was not set in the last hour."""
        rows = self._local.run(
            "SELECT value FROM working_memory WHERE key = ? AND expires_at_ms > ?", key, self._clock()
        ).rows
        return read_own_json(rows[0]["value"]) if rows else None

    def all(self) -> dict[str, Json]:
        """Return every live key with its value, sorted by key."""
        rows = self._local.run(
            "SELECT key, value FROM working_memory WHERE expires_at_ms > ? ORDER BY key", self._clock()
        ).rows
        return {row["key"]: read_own_json(row["value"]) for row in rows}

    async def clear(self) -> None:
        """Remove every key, also from KV."""
        async with self._one_at_a_time:
            for row in self._local.run(_KEYS).rows:
                await self._kv.delete(self._prefix + row["key"])
            self._local.run("DELETE FROM working_memory")
            self._local.run("DELETE FROM working_copies_owed")

    async def erase(self, names: Callable[[str], bool]) -> None:
        """Remove the keys whose name or value mentions what is to be erased, also from KV. names: whether a text does."""
        async with self._one_at_a_time:
            values = {row["key"]: row["value"] for row in self._local.run("SELECT key, value FROM working_memory").rows}
            for row in self._local.run(_KEYS).rows:
                if names(row["key"]) or names(values.get(row["key"], "")):
                    await self._kv.delete(self._prefix + row["key"])
                    self._local.run("DELETE FROM working_memory WHERE key = ?", row["key"])
                    self._local.run("DELETE FROM working_copies_owed WHERE key = ?", row["key"])

    async def _pay(self, key: str) -> None:
        """Make KV agree with the instance about a key. A failure is logged, and the copy stays owed."""
        async with self._one_at_a_time:
            owed = self._local.run(_OWED, key).rows
            if not owed:
                return
            try:
                await self._copy(key, owed[0]["value"], owed[0]["expires_at_ms"])
            except Unavailable as error:
                attempts = int(owed[0]["attempts"])
                _log.warning("a working value is not in KV yet", extra={"code": error.code, "attempts": attempts + 1})
                wait_ms = min(RETRY_MS << min(attempts, 20), MAX_RETRY_MS)
                self._local.run(_FAILED, self._clock() + wait_ms, key)
                return
            self._local.run(_PAID, key, int(owed[0]["change"]))

    async def _copy(self, key: str, text: str | None, expires_at_ms: int | None) -> None:
        """Write the key's value to KV for as long as it lives, or remove it there. Raises: Unavailable."""
        left_s = 0 if text is None or expires_at_ms is None else -(-(expires_at_ms - self._clock()) // 1000)
        declared = [] if text is None else self._declared(f"{{{json.dumps(key)}: {text}}}")
        if declared:
            _log.warning("a working value with PII is not copied to KV", extra={"fields": ", ".join(declared)})
        if text is None or declared or left_s < MIN_KV_TTL_S:
            await self._kv.delete(self._prefix + key)
        else:
            await self._kv.put(self._prefix + key, text, ttl_s=left_s)
