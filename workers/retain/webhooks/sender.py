"""Sends what the webhooks of a tenant are owed of one run, and notes the outcome.

A message is sent at least once: whoever receives it recognises a repetition by its `webhook-id`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from retain.errors import RetainError, UpstreamFailed
from retain.ports import Clock, Fetch, Row, Sql, SqlValue, Statement
from retain.sealing.keyring import Keyring
from retain.webhooks.endpoints import Guard, secret_name
from retain.webhooks.message import RUN_COLUMNS, message_of
from retain.webhooks.signing import signed_headers

RETRY_AFTER_S = (5, 60, 300, 1_800, 7_200, 18_000, 36_000, 86_400)
"""How long after each attempt that failed the next one is due, in seconds. If the last one fails, the message has failed."""
TIMEOUT_MS = 10_000
MAX_ANSWER_BYTES = 65_536
AT_ONCE = 20
"""Most messages that one call sends."""

_PENDING = f"""
SELECT d.webhook_id, d.message_id, d.event, d.at_ms, d.attempts, d.due_at_ms, w.url, w.secret,
  w.previous_secret, w.previous_until_ms, {RUN_COLUMNS}
FROM webhook_deliveries d JOIN agent_runs r ON r.run_id = d.run_id
LEFT JOIN webhooks w ON w.tenant_id = d.tenant_id AND w.webhook_id = d.webhook_id
WHERE d.run_id = ? AND d.tenant_id = ? AND d.status = 'pending' ORDER BY d.due_at_ms, d.webhook_id LIMIT {AT_ONCE}
"""  # noqa: S608
_NOTE = """
UPDATE webhook_deliveries SET status = ?, attempts = ?, response_status = ?, error = ?, last_at_ms = ?, due_at_ms = ?
WHERE tenant_id = ? AND webhook_id = ? AND message_id = ?
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The outcome of one attempt. status: of HTTP, None without an answer. error: a code."""

    status: int | None
    error: str | None = None
    final: bool = False

    @property
    def delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Sender:
    """Sends messages. keys: returns what opens the secrets. guard: refuses addresses to which nothing may be sent."""

    def __init__(self, sql: Sql, fetch: Fetch, clock: Clock, keys: Callable[[], Keyring], guard: Guard) -> None:
        self._sql = sql
        self._fetch = fetch
        self._clock = clock
        self._keys = keys
        self._guard = guard

    async def send(self, tenant_id: str, run_id: str) -> int | None:
        """Send what is due of a run; return when the next attempt is due, None when nothing is left.

        Raises: Unavailable when D1 does not answer; what was sent meanwhile is sent again.
        """
        pending = (await self._sql.run(_PENDING, run_id, tenant_id)).rows
        now_ms = self._clock()
        due = [row for row in pending if int(row["due_at_ms"]) <= now_ms]
        later = [int(row["due_at_ms"]) for row in pending if int(row["due_at_ms"]) > now_ms]
        if len(due) == AT_ONCE:  # otherwise what was not read is due after all that was
            later.append(now_ms)
        attempts = await asyncio.gather(*(self._attempt(row) for row in due))
        notes: list[Statement] = []
        for row, attempt in zip(due, attempts, strict=True):
            next_ms = self._next_ms(row, attempt)
            if next_ms is not None:
                later.append(next_ms)
            notes.append((_NOTE, self._note(tenant_id, row, attempt, next_ms)))
        if notes:
            await self._sql.batch(notes)
        return min(later, default=None)

    async def _attempt(self, row: Row) -> _Attempt:
        """Send one message and return the outcome. Raises nothing."""
        if row["url"] is None:
            return _Attempt(None, "no_such_webhook", final=True)
        try:
            await self._guard(row["url"])
            body = message_of(row["event"], int(row["at_ms"]), row)
            signed = signed_headers(await self._secrets(row), row["message_id"], self._clock(), body)
            headers = {"content-type": "application/json", "user-agent": "retain", **signed}
            answer = await self._fetch(
                "POST",
                row["url"],
                headers=headers,
                body=body,
                timeout_ms=TIMEOUT_MS,
                limit_bytes=MAX_ANSWER_BYTES,
            )
        except UpstreamFailed as error:  # it answered more than is read: its status is all that counts
            return _Attempt(cast(int, error.details["upstream_status"]))
        except RetainError as error:
            return _Attempt(None, error.code)
        except ValueError:
            return _Attempt(None, "credential_unreadable")
        return _Attempt(answer.status)

    async def _secrets(self, row: Row) -> list[str]:
        """Return the secrets of a webhook, the newest first. Raises: as `Keyring.open`, for the newest."""
        keys, name = self._keys(), secret_name(row["webhook_id"])
        found = [await keys.open(name, row["secret"])]
        if row["previous_secret"] is not None and self._clock() < int(row["previous_until_ms"]):
            with suppress(ValueError, RetainError):  # it was sealed with a key that is gone: the newest signs alone
                found.append(await keys.open(name, row["previous_secret"]))
        return found

    def _next_ms(self, row: Row, attempt: _Attempt) -> int | None:
        """Return when a message is sent again, None for one that was delivered or is given up."""
        made = int(row["attempts"])
        if attempt.delivered or attempt.final or made >= len(RETRY_AFTER_S):
            return None
        return self._clock() + RETRY_AFTER_S[made] * 1000

    def _note(self, tenant_id: str, row: Row, attempt: _Attempt, next_ms: int | None) -> tuple[SqlValue, ...]:
        status = "delivered" if attempt.delivered else "failed" if next_ms is None else "pending"
        if status == "failed":
            _log.warning("a webhook message failed", extra={"run_id": row["run_id"], "code": attempt.error})
        now_ms = self._clock()
        outcome = (status, int(row["attempts"]) + 1, attempt.status, attempt.error, now_ms, next_ms or now_ms)
        return (*outcome, tenant_id, row["webhook_id"], row["message_id"])
