"""The layered catalogue on D1, and `MemoryClient`'s whole items: owner, expiry and version survive."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retain.errors import InvalidInput
from retain.items.entry import Draft
from retain.items.rekeying.sources import SqlItems
from retain.items.tiers.sql_warm import SqlWarm
from tests.items.rekeying.deployment import Deployment
from tests.items.rekeying.stores import FIRST, KEY, SECOND
from tests.memory.semantic.interleaving import Turns

COMBINATIONS = ((False, False), (False, True), (True, True), (True, False))


@pytest.fixture
async def deployment() -> AsyncIterator[Deployment]:
    made = Deployment()
    yield made
    made.close()


async def test_a_read_copies_the_whole_item_with_its_namespace(deployment: Deployment) -> None:
    legacy = SqlWarm(deployment.sql, "acme", deployment.clock)
    version = await legacy.write(SECOND, Draft("warm", "old", 3, user_id="ann", expires_at_ms=1_800_000_000_000))
    phase_2 = await deployment.to_phase_2()
    found = await phase_2.warm().find(KEY)
    assert found is not None
    assert (found.value, found.version, found.user_id) == ("old", version, "ann")
    row = (await deployment.rows("SELECT * FROM memory_items WHERE key = ?", KEY))[0]
    assert (row["namespace_key"], row["kind"], row["user_id"]) == ("crm:acme:s1", "cart", "ann")
    assert (row["version"], row["expires_at_ms"], row["value"]) == (version, 1_800_000_000_000, "old")
    assert (await legacy.read(SECOND)) == "old"


@pytest.mark.parametrize("both", COMBINATIONS, ids=str)
@pytest.mark.parametrize("held", [(), (KEY,), (FIRST,), (SECOND,), (KEY, FIRST, SECOND)], ids=str)
async def test_a_buried_item_is_gone_for_every_reader_and_no_copy_restores_it(
    deployment: Deployment, both: tuple[bool, bool], held: tuple[str, ...]
) -> None:
    inner = SqlWarm(deployment.sql, "acme", deployment.clock)
    for key in held:
        await inner.upsert(key, key)
    await deployment.to_phase_2()
    memory = deployment.isolate(*both).warm()
    assert (await memory.bury(KEY)).found == bool(held)
    assert not (await memory.bury(KEY)).found
    for other in COMBINATIONS:
        assert await deployment.isolate(*other).warm().read(KEY) is None
        assert await deployment.isolate(*other).warm().version(KEY) is None
    assert not await SqlItems(deployment.sql, "acme", deployment.clock).copy(FIRST, KEY)
    assert await deployment.rows("SELECT key FROM memory_items WHERE NOT deleted") == []


@pytest.mark.parametrize("both", COMBINATIONS, ids=str)
@pytest.mark.parametrize("held", [(), (KEY,), (FIRST,), (SECOND, KEY)], ids=str)
async def test_the_version_that_a_write_returns_is_the_one_that_is_read(
    deployment: Deployment, both: tuple[bool, bool], held: tuple[str, ...]
) -> None:
    inner = SqlWarm(deployment.sql, "acme", deployment.clock)
    for key in held:
        await inner.upsert(key, key)
    memory = deployment.isolate(*both).warm()
    version = await memory.write(KEY, Draft("warm", "new", 3))
    found = await memory.find(KEY)
    assert found is not None
    assert (found.value, found.version) == ("new", version)
    assert await memory.version(KEY) == version


async def test_an_expired_item_hides_its_legacy_value(deployment: Deployment) -> None:
    inner = SqlWarm(deployment.sql, "acme", deployment.clock)
    await inner.upsert(FIRST, "old")
    await inner.write(KEY, Draft("warm", "new", 3, expires_at_ms=deployment.clock() + 60_000))
    phase_2 = await deployment.to_phase_2()
    assert await phase_2.warm().read(KEY) is None


async def test_nothing_is_copied_for_another_tenant(deployment: Deployment) -> None:
    items = SqlItems(deployment.sql, "contoso", deployment.clock)
    for act in (items.copy(FIRST, KEY), items.add(KEY, "v")):
        with pytest.raises(InvalidInput) as raised:
            await act
        assert raised.value.code == "invalid_namespace"


async def test_adding_writes_only_if_there_is_no_row(deployment: Deployment) -> None:
    items, inner = SqlItems(deployment.sql, "acme", deployment.clock), SqlWarm(deployment.sql, "acme", deployment.clock)
    assert await items.add(KEY, "first")
    assert not await items.add(KEY, "second")
    assert await inner.read(KEY) == "first"
    await inner.delete(KEY)
    assert not await items.add(KEY, "third")
    assert await inner.read(KEY) is None


async def test_a_copy_replaces_neither_a_newer_item_nor_a_deleted_one(deployment: Deployment) -> None:
    items, inner = SqlItems(deployment.sql, "acme", deployment.clock), SqlWarm(deployment.sql, "acme", deployment.clock)
    await inner.upsert(FIRST, "old")
    await inner.upsert(KEY, "new")
    assert not await items.copy(FIRST, KEY)
    assert await inner.read(KEY) == "new"
    await inner.delete(KEY)
    assert not await items.copy(FIRST, KEY)
    assert await inner.read(KEY) is None


@given(order=st.lists(st.integers(0, 1), max_size=12))
@settings(max_examples=60, deadline=None)
@example(order=[1, 1, 0, 0, 0, 1, 1])
async def test_a_reader_that_copies_while_an_item_is_buried_does_not_restore_it(order: list[int]) -> None:
    deployment, turns = Deployment(), Turns()
    await SqlWarm(deployment.sql, "acme", deployment.clock).upsert(FIRST, "old")
    settled = await deployment.to_phase_2()
    await settled.reads.may_repair()
    reader, deleter = (deployment.isolate(True, True, sql=turns.wrap(task, deployment.sql)) for task in range(2))
    reader.reads = settled.reads
    await turns.run(order, [lambda: reader.warm().read(KEY), lambda: deleter.warm().delete(KEY)])
    assert await settled.warm().read(KEY) is None
    deployment.close()
