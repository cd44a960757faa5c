"""Large values are exported, searched, sealed again and erased few at a time: an isolate has 128 MB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from retain.host.objects import SqliteObjects
from retain.host.sql import SqliteSql
from retain.items.rekeying.flags import Namespacing
from retain.items.resealing import reseal
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.erasure.mentions import OWNERS_BYTES
from retain.lifecycle.export import export_page
from retain.lifecycle.user_export import export_user_page
from retain.limits.pages import PAGE_BYTES
from retain.ports import SqlResult, SqlValue, Statement
from tests.lifecycle.legacy import SEALER
from tests.lifecycle.of_users import ANN, erased, forgotten
from tests.lifecycle.world import World, living

VALUE_BYTES, ITEMS = 1_000_000, 12
EVENT_BYTES, EVENTS, RUNS = 200_000, 8, 30
NAME = "Zelda Quux"


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
    run, batch = SqliteSql.run, SqliteSql.batch

    def measure(*results: SqlResult) -> None:
        cells = [cell for result in results for row in result.rows for cell in row.values()]
        sizes.append(sum(len(cell) for cell in cells if isinstance(cell, str)))

    async def one(self: SqliteSql, sql: str, *values: SqlValue) -> SqlResult:
        result = await run(self, sql, *values)
        measure(result)
        return result

    async def several(self: SqliteSql, statements: Sequence[Statement]) -> list[SqlResult]:
        results = await batch(self, statements)
        measure(*results)
        return results

    monkeypatch.setattr(SqliteSql, "run", one)
    monkeypatch.setattr(SqliteSql, "batch", several)
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
    if by == "user":
        assert (await erased(world, ANN)).receipt.counts["d1.memory_items"] == ITEMS
    if by == "mention":
        outcome = await forgotten(world, f"7 {'v' * 10}")
    else:
        outcome = await world.completed(lambda: Erasure(world.stores()).erase_tenant("acme"))
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
    outcome = await forgotten(world, "seven7")
    assert outcome.receipt.counts["d1.ingest_messages"] == 1
    assert are_small(answers)


async def test_an_erasure_by_mention_reads_few_messages_of_a_long_list_at_once(answers: list[int]) -> None:
    with living() as world:
        for number in range(120):
            text = "x" * 100_000 + (f" {NAME}" if number % 40 == 39 else "")
            world.plant("memory_episodes", episode_id=f"{number:03}", tenant_id="acme", instance_id="a", content=text)
        await forgotten(world, NAME)
        assert world.mentions(NAME) == []
        assert len(world.sql_now("SELECT 1 FROM memory_episodes")) == 117
    assert max(answers) < 1_000_000


async def test_an_erasure_by_mention_reads_few_runs_with_large_events_at_once(world: World, answers: list[int]) -> None:
    runs = [f"{number:026}" for number in range(RUNS)]
    naming = {0, 9, RUNS - 1}
    for number, run_id in enumerate(runs):
        place = {"tenant_id": "acme", "run_id": run_id}
        world.plant("agent_runs", **place, agent_type="sdr", instance_id="a", status="completed", input="{}")
        for seq in range(EVENTS):
            text = f'"{"x" * EVENT_BYTES} {NAME if number in naming and seq == EVENTS - 1 else ""}"'
            world.plant("run_events", **place, seq=seq, data=text)
    await forgotten(world, NAME)
    assert world.mentions(NAME) == []
    kept = {row["run_id"] for row in world.sql_now("SELECT DISTINCT run_id FROM run_events")}
    assert kept == set(runs) - {runs[number] for number in naming}
    assert max(answers) < OWNERS_BYTES + EVENTS * EVENT_BYTES + 100_000


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
    outcome = await forgotten(world, "seven7")
    assert outcome.receipt.counts["r2"] == 1
    assert most == 2, "the one before is let go when the next one is there"
