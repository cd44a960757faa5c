"""A later export brings a copy to where the tenant is, also when contents went from one record to another meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from retain.lifecycle.importing import Imported, import_lines
from retain.lifecycle.transfer.steps import ImportStep, duplicates_of
from retain.memory.records.record import Record, content_hash
from tests.lifecycle.test_export_import import pages
from tests.lifecycle.world import AGENT, PERSON, World, living


@pytest.fixture
def world() -> Iterator[World]:
    with living() as made:
        yield made


async def moved(world: World) -> list[Imported]:
    """Import what the tenant has into the copy, page by page; check that the copy is as the tenant is."""
    done = [await import_lines(world.stores(), "copy", text) for text in await pages(world)]
    sql = "SELECT content FROM memory_records WHERE tenant_id = ? ORDER BY content"
    copied, own = [(await world.sql.run(sql, tenant)).rows for tenant in ("copy", "acme")]
    assert [*copied] == [*own]
    await world.rest()
    assert not await world.drift("copy")
    return done


async def test_a_memory_that_was_deleted_and_stored_again(world: World) -> None:
    first = await world.store("Ann likes tea.")
    await moved(world)
    await world.memory().delete(first, AGENT)
    world.clock.advance(1_000)
    assert await world.store("Ann likes tea.") != first
    assert sum(done.duplicates for done in await moved(world)) == 0
    before = world.everything()
    await moved(world)
    assert world.everything() == before


EDITS: dict[str, Sequence[tuple[int, int]]] = {
    "a chain": [(2, 9), (1, 2), (0, 1)],
    "a chain against the order of the records": [(0, 9), (1, 0), (2, 1)],
    "an exchange": [(0, 9), (1, 0), (0, 1)],
    "a circle": [(0, 9), (1, 0), (2, 1), (0, 2)],
}


@pytest.mark.parametrize("edits", EDITS.values(), ids=list(EDITS))
async def test_contents_that_went_from_record_to_record(world: World, edits: Sequence[tuple[int, int]]) -> None:
    ids = [await world.store(f"Ann's desk is {number}.") for number in range(3)]
    await moved(world)
    for one, number in edits:
        await world.memory().edit(ids[one], {"content": f"Ann's desk is {number}."}, PERSON)
    done = await moved(world)
    assert (sum(one.duplicates for one in done), sum(one.created for one in done)) == (0, 0)


async def test_a_content_that_a_record_of_the_copy_has_stays_with_it(world: World) -> None:
    mine = await world.store("Ann's desk is 1.", tenant="copy")
    desk = await world.store("Ann's desk is 0.")
    for text in await pages(world):
        await import_lines(world.stores(), "copy", text)
    await world.memory().edit(desk, {"content": "Ann's desk is 1."}, PERSON)
    await world.store("Ann's desk is 0.")
    done = [await import_lines(world.stores(), "copy", text) for text in await pages(world)]
    assert sum(one.duplicates for one in done) == 2, "the edited one stays as it is, and so keeps its content"
    rows = world.sql_now("SELECT id, content FROM memory_records WHERE tenant_id = 'copy' ORDER BY content")
    assert [row["content"] for row in rows] == ["Ann's desk is 0.", "Ann's desk is 1."]
    assert rows[1]["id"] == mine


def _record(content: str | None) -> Record | None:
    if content is None:
        return None
    return Record(
        content, id="r", tenant_id="acme", scope_id="tenant", valid_from_ms=0, valid_to_ms=None, recorded_at_ms=0,
        updated_at_ms=0, superseded_by=None, edited=False, utterance=None, source={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "holders", "expected"),
    [
        ({"a": (None, "x"), "b": (None, "x")}, {}, "b"),
        ({"a": (None, "x")}, {"x": "z"}, "a"),
        ({"a": (None, "x"), "b": ("x", "x")}, {"x": "b"}, "a"),
        ({"a": (None, "x"), "b": ("x", None)}, {"x": "b"}, ""),
        ({"a": ("x", "y"), "b": ("y", "x")}, {"x": "a", "y": "b"}, ""),
        ({"a": ("x", "y"), "b": ("w", "x"), "c": (None, "w")}, {"x": "a", "y": "z", "w": "b"}, "abc"),
    ],
    ids=str,
)
def test_which_records_are_duplicates(
    steps: dict[str, tuple[str | None, str | None]], holders: dict[str, str], expected: str
) -> None:
    made = {name: ImportStep(_record(before), _record(after), (), "") for name, (before, after) in steps.items()}
    held = {("tenant", content_hash(content, None)): name for content, name in holders.items()}
    assert duplicates_of(made, held) == set(expected)
