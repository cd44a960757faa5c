"""The log of what webhooks were sent, in D1: listed, and taken up again for a message that is to be sent once more.

Rows are written by triggers, in the transaction that records the end or the wait of a run (migrations/0047_webhooks.sql).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from retain.errors import NotFound
from retain.json_text import Json
from retain.ports import Clock, Row, Sql
from retain.retention import DAY_MS, RetentionRule

DeliveryStatus = Literal["pending", "delivered", "failed"]
"""pending: the next attempt is due. failed: none is."""
KEPT_MS = 30 * DAY_MS
"""How long a delivery is kept."""

_COLUMNS = """
message_id, event, run_id, agent_type, instance_id, at_ms, status, attempts, response_status, error, last_at_ms,
CASE status WHEN 'pending' THEN due_at_ms END AS due_at_ms
"""
_PAGE = f"""
SELECT {_COLUMNS} FROM webhook_deliveries WHERE tenant_id = ? AND webhook_id = ? AND message_id < ? {{condition}}
ORDER BY message_id DESC LIMIT ?
"""  # noqa: S608
_CONDITIONS = {
    None: "",
    "delivered": "AND status = 'delivered'",
    "pending": "AND status <> 'delivered' AND status = 'pending'",
    "failed": "AND status <> 'delivered' AND status = 'failed'",
}
"""The index of undelivered messages serves the last two."""
_ONE = f"SELECT {_COLUMNS} FROM webhook_deliveries WHERE tenant_id = ? AND webhook_id = ? AND message_id = ?"  # noqa: S608
_AGAIN = f"""
UPDATE webhook_deliveries SET status = 'pending', due_at_ms = ?
WHERE tenant_id = ? AND webhook_id = ? AND message_id = ?
  AND EXISTS (SELECT 1 FROM agent_runs r WHERE r.run_id = webhook_deliveries.run_id)
RETURNING {_COLUMNS}
"""  # noqa: S608
_EXISTS = "SELECT 1 FROM webhooks WHERE tenant_id = ? AND webhook_id = ?"
_OLD = """
DELETE FROM webhook_deliveries WHERE (tenant_id, webhook_id, message_id) IN
  (SELECT tenant_id, webhook_id, message_id FROM webhook_deliveries WHERE at_ms < ? ORDER BY at_ms LIMIT ?)
RETURNING tenant_id
"""
DELIVERY_RULES = (RetentionRule("webhook_deliveries", KEPT_MS, (_OLD,), 1000),)
_LAST = "~"
"""Sorts after every id."""


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """One message to one webhook. Times: epoch milliseconds.

    at_ms: of the event. response_status: of the last attempt; None without an answer, then error is its code. due_at_ms: of
    the next attempt, None when there is none.
    """

    message_id: str
    event: str
    run_id: str
    agent_type: str
    instance_id: str
    at_ms: int
    status: DeliveryStatus
    attempts: int
    response_status: int | None
    error: str | None
    last_at_ms: int | None
    due_at_ms: int | None

    def to_json(self) -> dict[str, Json]:
        """Return the delivery as HTTP answers have it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """Deliveries, those of the newest runs first, and the cursor of the next page: None on the last."""

    deliveries: Sequence[WebhookDelivery]
    cursor: str | None


class DeliveryLog:
    """The deliveries of all tenants."""

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock

    async def page(
        self, tenant_id: str, webhook_id: str, *, status: DeliveryStatus | None, after: str | None, limit: int
    ) -> DeliveryPage:
        """Return deliveries of a webhook, also of a deleted one. Raises: NotFound (code `no_such_webhook`)."""
        sql = _PAGE.format(condition=_CONDITIONS[status])
        found, known = await self._sql.batch(
            [
                (sql, (tenant_id, webhook_id, after or _LAST, limit + 1)),
                (_EXISTS, (tenant_id, webhook_id)),
            ]
        )
        if not found.rows and not known.rows:
            raise NotFound("the tenant has no such webhook", code="no_such_webhook")
        page = [_delivery(row) for row in found.rows[:limit]]
        return DeliveryPage(page, page[-1].message_id if len(found.rows) > limit else None)

    async def get(self, tenant_id: str, webhook_id: str, message_id: str) -> WebhookDelivery:
        """Return a delivery. Raises: NotFound (code `no_such_delivery`)."""
        return _only((await self._sql.run(_ONE, tenant_id, webhook_id, message_id)).rows)

    async def again(self, tenant_id: str, webhook_id: str, message_id: str) -> WebhookDelivery:
        """Let a message be due now, whatever became of it. Idempotent.

        Raises: NotFound (code `no_such_delivery`), also for one whose run is gone: it is made of the run.
        """
        return _only((await self._sql.run(_AGAIN, self._clock(), tenant_id, webhook_id, message_id)).rows)


def _only(rows: Sequence[Row]) -> WebhookDelivery:
    if not rows:
        raise NotFound("the webhook was sent no such message", code="no_such_delivery")
    return _delivery(rows[0])


def _delivery(row: Row) -> WebhookDelivery:
    return WebhookDelivery(**dict(row))
