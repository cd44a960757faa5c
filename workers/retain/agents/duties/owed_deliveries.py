"""The runs of one instance whose webhooks may be owed messages: the table `owed_deliveries` in the object's SQLite.

D1 answers to the end or the wait of a run whether its tenant has webhooks. The note is written in the event loop turn in
which the outbox removes the entry, so neither is lost without the other. What is sent is in D1 (`retain.webhooks`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property

from retain.agents.calls.answers import RedeliveredMessage
from retain.agents.calls.requests import RedeliverRequest
from retain.agents.instance_ports import InstancePorts
from retain.errors import RetainError
from retain.ports import Row
from retain.webhooks.delivery_log import DeliveryLog

UNANSWERED_MS = 30_000
"""How soon it is looked again what is owed of a run, after D1 failed or the object died meanwhile."""

_log = logging.getLogger(__name__)


class OwedDeliveries:
    """Sends what webhooks are owed, in the background: no run waits for it."""

    def __init__(self, ports: InstancePorts, tenant_id: str, schedule: Callable[[], Awaitable[None]]) -> None:
        """schedule: sets the instance's alarm."""
        self._local = ports.local
        self._clock = ports.clock
        self._background = ports.background
        self._sender = ports.sender
        self._log = DeliveryLog(ports.sql, ports.clock)
        self._tenant_id = tenant_id
        self._schedule = schedule
        self._one_at_a_time = asyncio.Lock()
        self._news: set[str] = set()
        """The runs that have changed since what they are owed was last read: it may be owed since then."""

    @cached_property
    def _due(self) -> dict[str, int]:
        rows = self._local.run("SELECT run_id, due_at_ms FROM owed_deliveries").rows
        return {row["run_id"]: int(row["due_at_ms"]) for row in rows}

    def heard(self, rows: Sequence[Row]) -> None:
        """Take what D1 answered to an entry of the outbox: a run that has changed, and whether the tenant has webhooks."""
        for row in rows:
            if row.get("has_webhooks") and self._sender is not None:
                self._news.add(row["run_id"])
                self._owe(row["run_id"], self._clock())

    def next_due_ms(self) -> int | None:
        """Return when something is due to be sent, None when nothing is owed."""
        return min(self._due.values(), default=None)

    def start(self) -> None:
        """Begin to send what is due, if anything is."""
        if self._due_runs():
            self._background(self._work())

    async def again(self, message: RedeliverRequest) -> RedeliveredMessage:
        """Send a message again, in the background. Raises: NotFound (code `no_such_delivery`); Unavailable."""
        async with self._one_at_a_time:
            self._owe(message.run_id, self._clock())
            delivery = await self._log.again(self._tenant_id, message.webhook_id, message.message_id)
        await self._schedule()
        self.start()
        return RedeliveredMessage(delivery.to_json())

    def clear(self) -> None:
        """Owe nothing."""
        if self._due:
            self._local.run("DELETE FROM owed_deliveries")
            self._due.clear()
        self._news.clear()

    def _due_runs(self) -> list[str]:
        return [run_id for run_id, due_ms in self._due.items() if due_ms <= self._clock()]

    async def _work(self) -> None:
        """Send what is due, one run after the other. Raises nothing: what fails is due again later."""
        async with self._one_at_a_time:
            for run_id in self._due_runs():
                await self._send(run_id)
        await self._schedule()

    async def _send(self, run_id: str) -> None:
        if self._sender is None:
            self._forget(run_id)
            return
        self._news.discard(run_id)
        self._owe(run_id, self._clock() + UNANSWERED_MS)
        try:
            next_ms = await self._sender.send(self._tenant_id, run_id)
        except RetainError as error:
            _log.warning("messages to webhooks wait", extra={"run_id": run_id, "code": error.code})
            return
        if run_id in self._news:
            return  # it ended, or asked somebody, while another message was sent: it is due already
        if next_ms is None:
            self._forget(run_id)
        elif run_id in self._due:  # unless everything was erased meanwhile
            self._owe(run_id, next_ms)

    def _owe(self, run_id: str, due_ms: int) -> None:
        self._local.run("INSERT OR REPLACE INTO owed_deliveries VALUES (?, ?)", run_id, due_ms)
        self._due[run_id] = due_ms

    def _forget(self, run_id: str) -> None:
        self._local.run("DELETE FROM owed_deliveries WHERE run_id = ?", run_id)
        self._due.pop(run_id, None)
