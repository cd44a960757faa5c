"""Large values are exported, searched, sealed again and erased few at a time: an isolate has 128 MB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from retain.host.objects import SqliteObjects
from retain.host.sql import SqliteSql
from retain.items.rekeying.flags import Namespacing
from retain.items.resealing import reseal
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.export import export_page
from retain.lifecycle.user_export import export_user_page
from retain.limits.pages import PAGE_BYTES
from retain.ports import SqlResult, SqlValue
from tests.lifecycle.legacy import SEALER
from tests.lifecycle.of_users import ANN, erased
from tests.lifecycle.world import World, living

VALUE_BYTES, ITEMS = 1_000_000, 12


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        for number in range(ITEMS):
            key = {"key": f"shop:acme:s:preferences:{number:02}", "namespace_key": "shop:acme:s", "kind": "preferences"}
            value = f"{number} {'v' * VALUE_BYTES}"
            world.plant("memory_items", tenant_id="acme", user_id=ANN, tier="warm", value=value, version=1, **key)
        yield world


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many characters of texts each answer of D1 has from now on."""
    sizes: list[int] = []
    run = SqliteSql.run

    async def measured(self: SqliteSql, sql: str, *values: SqlValue) -> SqlResult:
        result = await run(self, sql, *values)
        sizes.append(sum(len(cell) for row in result.rows for cell in row.values() if isinstance(cell, str)))
        return result

    monkeypatch.setattr(SqliteSql, "run", measured)
    return sizes


def are_small(answers: list[int]) -> bool:
    """Return whether each had no more than a page, with one value that passes it."""
    return max(answers) <= PAGE_BYTES + VALUE_BYTES + 10_000


@pytest.mark.parametrize("of", ["the tenant", "the user"])
async def test_an_export_reads_few_large_values_at_once(world: World, answers: list[int], of: str) -> None:
    found: list[str] = []
    cursor: str | None = None
    while True:
        if of == "the tenant":
            page = await export_page(world.stores(), "acme", cursor)
        else:
            page = await export_user_page(world.stores(), "acme", ANN, cursor)
        found += [line for line in page.lines if '"kind":"item"' in line]
        cursor = page.cursor
        if cursor is None:
            break
    assert len(found) == len(set(found)) == ITEMS
    assert are_small(answers)


@pytest.mark.parametrize("by", ["user", "mention", "tenant"])
async def test_an_erasure_reads_few_large_values_at_once(world: World, answers: list[int], by: str) -> None:
    eraser = Erasure(world.stores())
    if by == "user":
        assert (await erased(world, ANN)).receipt.counts["d1.memory_items"] == ITEMS
    for _ in range(60):
        if by == "mention":
            outcome = await eraser.erase_subject("acme", f"7 {'v' * 10}", "mention")
        else:
            outcome = await eraser.erase_tenant("acme")
        if outcome.retry_after_ms is None:
            break
        world.clock.advance(outcome.retry_after_ms)
    assert outcome.receipt.state == "completed"
    assert are_small(answers)


async def test_a_resealing_reads_few_large_values_at_once(world: World, answers: list[int]) -> None:
    world.sql_now("UPDATE memory_items SET key_id = 'older'")
    done = await reseal(world.sql, SEALER, "acme", Namespacing())
    assert (done.left, done.unreadable) == (ITEMS, ITEMS)
    assert are_small(answers)


async def test_an_erasure_by_mention_reads_few_long_messages_at_once(world: World, answers: list[int]) -> None:
    for number in range(ITEMS):
        who = {"tenant_id": "acme", "scope_id": "tenant", "conversation": "c", "position": number, "message_key": "k"}
        world.plant("ingest_messages", **who, state="received", content=f"{number} {'w' * 200_000} seven{number}")
    for _ in range(60):
        outcome = await Erasure(world.stores()).erase_subject("acme", "seven7", "mention")
        if outcome.retry_after_ms is None:
            break
        world.clock.advance(outcome.retry_after_ms)
    assert outcome.receipt.counts["d1.ingest_messages"] == 1
    assert are_small(answers)


async def test_an_erasure_by_mention_holds_one_object_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    held = most = 0

    class Held(bytes):
        def __del__(self) -> None:
            nonlocal held
            held -= 1

    get = SqliteObjects.get

    async def counted(self: SqliteObjects, key: str) -> bytes | None:
        nonlocal held, most
        content = await get(self, key)
        held += 1
        most = max(most, held)
        return None if content is None else Held(content)

    for number in range(ITEMS):
        await world.objects_store.put(f"tenants/acme/{number}", f"seven{number}".encode())
    monkeypatch.setattr(SqliteObjects, "get", counted)
    for _ in range(60):
        outcome = await Erasure(world.stores()).erase_subject("acme", "seven7", "mention")
        if outcome.retry_after_ms is None:
            break
        world.clock.advance(outcome.retry_after_ms)
    assert outcome.receipt.counts["r2"] == 1
    assert most == 2, "the one before is let go when the next one is there"
