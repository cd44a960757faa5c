"""What is due of a run is sent in portions, and nothing to an address that is no longer allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from retain.errors import InvalidInput
from retain.host.clock import ManualClock
from retain.host.sql import SqliteSql
from retain.ports import HttpResponse
from retain.webhooks.endpoints import EVENTS, Webhooks
from retain.webhooks.sender import AT_ONCE, Sender
from tests.support.databases import migrated_d1
from tests.support.receiver import URL, Receiver, allow, keyring


@dataclass
class Shop:
    """A tenant with a webhook, and a run of which it is owed messages."""

    sql: SqliteSql
    clock: ManualClock = field(default_factory=ManualClock)
    receiver: Receiver = field(default_factory=Receiver)
    refused: set[str] = field(default_factory=set)
    bounds: list[tuple[int, int]] = field(default_factory=list)

    async def owe(self, messages: int) -> None:
        """Create the webhook, and owe it so many messages."""
        made, _ = await Webhooks(self.sql, self.clock, keyring, allow).create("acme", URL, EVENTS, by="ada")
        await self.sql.run(
            "INSERT INTO agent_runs (run_id, tenant_id, agent_type, instance_id, status, input, model, created_at_ms)"
            " VALUES ('r1', 'acme', 'clerk', 'main', 'completed', '{}', 'scripted', 1)"
        )
        for number in range(messages):
            await self.sql.run(
                "INSERT INTO webhook_deliveries (tenant_id, webhook_id, message_id, event, run_id, agent_type,"
                " instance_id, at_ms, due_at_ms) VALUES ('acme', ?, ?, 'run.completed', 'r1', 'clerk', 'main', 1, 1)",
                made.webhook_id,
                f"msg_{number}",
            )

    async def send(self) -> int | None:
        """Send what is due; return when the next attempt is."""
        return await Sender(self.sql, self._fetch, self.clock, keyring, self._guard).send("acme", "r1")

    async def _fetch(self, method: str, url: str, **request: Any) -> HttpResponse:
        self.bounds.append((request["timeout_ms"], request["limit_bytes"]))
        return await self.receiver.fetch(method, url, **request)

    async def _guard(self, url: str) -> None:
        if url in self.refused:
            raise InvalidInput("nothing may be sent there", code="forbidden_upstream")


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    sql = migrated_d1()
    yield Shop(sql)
    sql.close()


async def test_an_address_that_is_refused_since_the_webhook_was_created_is_sent_nothing(shop: Shop) -> None:
    await shop.owe(1)
    shop.refused.add(URL)
    again_ms = await shop.send()
    assert (shop.receiver.received, again_ms) == ([], shop.clock() + 5_000)
    [row] = (await shop.sql.run("SELECT status, attempts, error FROM webhook_deliveries")).rows
    assert row == {"status": "pending", "attempts": 1, "error": "forbidden_upstream"}


async def test_a_receiver_has_ten_seconds_for_an_answer_of_64_kib_and_sees_who_sends(shop: Shop) -> None:
    await shop.owe(1)
    await shop.send()
    [message] = shop.receiver.received
    assert shop.bounds == [(10_000, 65_536)]
    assert (message.headers["content-type"], message.headers["user-agent"]) == ("application/json", "retain")


async def test_more_than_one_portion_is_due_again_at_once(shop: Shop) -> None:
    await shop.owe(AT_ONCE + 1)
    assert await shop.send() == shop.clock()
    assert len(shop.receiver.received) == AT_ONCE
    assert await shop.send() is None
    assert {message.id for message in shop.receiver.received} == {f"msg_{number}" for number in range(AT_ONCE + 1)}


async def test_more_than_one_portion_that_waits_is_not_asked_for_until_it_is_due(shop: Shop) -> None:
    await shop.owe(AT_ONCE + 1)
    shop.receiver.status = 500
    assert await shop.send() == shop.clock()
    assert await shop.send() == shop.clock() + 5_000
    assert len(shop.receiver.received) == AT_ONCE + 1
    assert await shop.send() == shop.clock() + 5_000
