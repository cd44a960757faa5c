"""A tenant may limit how many memories each of its users has: it holds across agents, and with concurrent stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from retain.errors import QuotaExceeded
from retain.memory.records.record import NewRecord
from retain.memory.scope import Scope
from retain.tenants.register import Tenants
from tests.memory.semantic.substrate import PERSON, Substrate
from tests.ports import raises

ANN = Scope("acme", "sdr", user_id="ann")
EVERYWHERE = Scope("acme", user_id="ann")
BOB = Scope("acme", "sdr", user_id="bob")


@pytest.fixture
async def substrate() -> AsyncIterator[Substrate]:
    with closing(Substrate()) as substrate:
        await Tenants(substrate.d1, substrate.clock).register("acme")
        await Tenants(substrate.d1, substrate.clock).limit("acme", max_memories_per_user=3)
        yield substrate


async def test_a_user_has_at_most_as_many_memories_as_the_tenant_allows_in_all_scopes_together(
    substrate: Substrate,
) -> None:
    await substrate.store("Ann likes tea.", ANN)
    await substrate.store("Ann has a bike.", EVERYWHERE)
    with raises(QuotaExceeded, code="user_memory_limit"):
        await substrate.memory(ANN).store_all([NewRecord("Ann is tall."), NewRecord("Ann has a cat.")], PERSON)
    third = await substrate.store("Ann is tall.", ANN)
    for scope in (ANN, EVERYWHERE):
        with raises(QuotaExceeded, code="user_memory_limit"):
            await substrate.memory(scope).store(NewRecord("Ann has a dog."), PERSON)
    assert await substrate.store("Ann is tall.", ANN) == third  # known content needs no room
    assert await substrate.rows("SELECT * FROM memory_outbox WHERE state = 'owed'") == []
    for scope in (BOB, Scope("acme", "sdr"), Scope("acme")):
        for number in range(3 if scope.user_id else 4):
            await substrate.store(f"Number {number} of another.", scope)
    await substrate.memory(ANN).delete(third, PERSON)
    await substrate.store("Ann has a dog.", ANN)


async def test_concurrent_stores_together_keep_the_limit(substrate: Substrate) -> None:
    results = await asyncio.gather(
        *[substrate.memory(ANN).store(NewRecord(f"Ann has {number} lamps."), PERSON) for number in range(8)],
        return_exceptions=True,
    )
    refused = [one for one in results if isinstance(one, QuotaExceeded)]
    assert len(refused) == 5
    assert {error.code for error in refused} == {"user_memory_limit"}
    assert len(await substrate.rows("SELECT * FROM memory_records")) == 3


async def test_without_a_limit_there_is_none(substrate: Substrate) -> None:
    tenants = Tenants(substrate.d1, substrate.clock)
    await tenants.limit("acme", max_memories_per_user=None)
    assert await tenants.max_memories_per_user("acme") is None
    for number in range(5):
        await substrate.store(f"Ann has {number} lamps.", ANN)
    await tenants.limit("acme", max_memories_per_user=0)
    assert await tenants.max_memories_per_user("acme") == 0
    with raises(QuotaExceeded, code="user_memory_limit"):
        await substrate.store("Ann has a dog.", ANN)
