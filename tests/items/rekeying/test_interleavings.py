"""Readers that copy, writers, deleters and the backfill run concurrently, in any order of their store calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retain.items.rekeying.compatible import Compatible, Keyed
from retain.items.rekeying.flags import Namespacing
from retain.namespace import ItemKey
from tests.items.rekeying.stores import FIRST, KEY, SECOND, DictStore, Layer, Watched, flags, layer, store_of
from tests.memory.semantic.interleaving import Turns

ORDERS = st.lists(st.integers(0, 2), max_size=24)
HELD: tuple[dict[str, str], ...] = ({FIRST: "old"}, {SECOND: "old"}, {FIRST: "old", SECOND: "older"})
Operation = Callable[[Layer], Awaitable[object]]


async def _read(memory: Layer) -> str | None:
    return await memory.read(KEY)


async def _write(memory: Layer) -> str | None:
    """Write, and read the acknowledged value."""
    await memory.upsert(KEY, "new")
    return await memory.read(KEY)


async def _remove(memory: Layer) -> str | None:
    await memory.delete(KEY)
    return await memory.read(KEY)


async def _ran(
    store: DictStore, order: Sequence[int], operations: Sequence[tuple[Operation, Namespacing]], **more: Any
) -> list[object]:
    turns = Turns(more.get("dies"))

    def started(task: int, operation: Operation, namespaces: Namespacing) -> Callable[[], Awaitable[object]]:
        memory = layer("warm", turns.wrap(task, store), namespaces, Watched())
        return lambda: operation(memory)

    return await turns.run(order, [started(task, *one) for task, one in enumerate(operations)])


async def _final(store: DictStore, namespaces: Namespacing) -> str | None:
    return await layer("warm", store, namespaces, Watched()).read(KEY)


# Readers repair while writers and deleters are in phase 2 or already in phase 3.
LATE = st.sampled_from([flags(True, True), flags(True, False)])


@given(ORDERS, st.sampled_from(HELD), LATE)
@example([0, 0, 0, 1, 1, 0], {FIRST: "old"}, flags(True, True))
@settings(max_examples=150, deadline=None)
async def test_a_copy_never_replaces_what_a_writer_wrote(
    order: list[int], held: dict[str, str], late: Namespacing
) -> None:
    store, both = store_of(held), flags(True, True)
    read, written, again = await _ran(store, order, [(_read, both), (_write, late), (_read, both)])
    assert written == "new"
    assert {read, again} <= {"old", "new"}
    assert [await _final(store, one) for one in (both, late, flags(False, True))] == ["new"] * 3


@given(ORDERS, st.sampled_from(HELD), LATE)
@example([0, 0, 1, 1, 1, 0], {FIRST: "old"}, flags(True, True))
@settings(max_examples=150, deadline=None)
async def test_a_copy_never_restores_what_was_removed(
    order: list[int], held: dict[str, str], late: Namespacing
) -> None:
    store, both = store_of(held), flags(True, True)
    read, removed, again = await _ran(store, order, [(_read, both), (_remove, late), (_read, both)])
    assert removed is None
    assert {read, again} <= {"old", "older", None}
    assert [await _final(store, one) for one in (both, late, flags(False, True))] == [None] * 3
    assert store.values.keys() <= {KEY}


@given(ORDERS, st.integers(1, 6), st.sampled_from([_read, _write, _remove]))
@settings(max_examples=150, deadline=None)
async def test_whichever_task_crashes_no_reader_sees_the_old_value_after_the_new_one(
    order: list[int], dies: int, dying: Operation
) -> None:
    store, both = store_of({FIRST: "old"}), flags(True, True)
    _, written, _ = await _ran(store, order, [(dying, both), (_write, both), (_read, both)], dies={0: dies})
    seen = await _final(store, both)
    assert seen in ({"new", None} if dying is _remove else {"new"})
    assert written == "new" or dying is _remove


@given(ORDERS, st.sampled_from([_write, _remove]), LATE)
@settings(max_examples=100, deadline=None)
async def test_the_backfill_overwrites_no_more_than_a_reader(
    order: list[int], act: Operation, late: Namespacing
) -> None:
    store, both, turns = store_of({FIRST: "old"}), flags(True, True), Turns()
    seen, acting = turns.wrap(0, store), layer("warm", turns.wrap(1, store), late, Watched())

    async def copy(old_key: str, canonical: str, value: str) -> bool:
        return await seen.add(canonical, value)

    keyed = Keyed(seen.read, seen.upsert, seen.delete, copy)
    repair = Compatible("warm", both, Watched()).repair
    await turns.run(order, [lambda: repair(keyed, ItemKey.parse(KEY)), lambda: act(acting)])
    assert await _final(store, both) == ("new" if act is _write else None)


@given(ORDERS, st.sampled_from([_write, _remove]))
@settings(max_examples=100, deadline=None)
async def test_while_flags_change_from_phase_1_to_2_nothing_acknowledged_is_lost(
    order: list[int], act: Operation
) -> None:
    """Isolates of both phases answer; no isolate copies yet: that is the purpose of the two minutes."""
    store = store_of({FIRST: "old"})
    turns = Turns()
    first, second = (
        layer("warm", turns.wrap(task, store), flags(*both), Watched(permitted=False))
        for task, both in enumerate(((False, True), (True, True)))
    )
    await turns.run(order, [lambda: act(first), lambda: second.read(KEY)])
    assert [await _final(store, flags(*both)) for both in ((False, True), (True, True))] == (
        ["new"] * 2 if act is _write else [None] * 2
    )


@pytest.mark.parametrize("both", [(False, False), (False, True)], ids=["before", "phase 1"])
@given(order=ORDERS)
@settings(max_examples=50, deadline=None)
async def test_after_a_rollback_writers_keep_the_canonical_value_current(
    both: tuple[bool, bool], order: list[int]
) -> None:
    store, namespaces = store_of({KEY: "old", FIRST: "older"}), flags(*both)
    read, written, _ = await _ran(store, order, [(_read, namespaces), (_write, namespaces), (_read, namespaces)])
    assert (written, read in ("old", "new")) == ("new", True)
    assert await _final(store, namespaces) == "new"
