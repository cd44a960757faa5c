"""What each of the four flag combinations reads, writes and removes, in each tier; and what a failure leaves."""

from __future__ import annotations

from typing import Literal

import pytest

from retain.errors import InvalidInput, Unavailable
from retain.items.rekeying.compatible import PROBE_EVERY, REMOVED, ReadOutcome
from tests.items.rekeying.stores import FIRST, KEY, SECOND, TIERS, DictStore, Watched, flags, layer, store_of
from tests.support.faults import Fault, Faults

BOTH = ((False, False), (False, True), (True, True), (True, False))
IDS = ("before", "phase 1", "phase 2", "phase 3")
Flags = tuple[bool, bool]

each_tier = pytest.mark.parametrize("tier", TIERS)
each_flags = pytest.mark.parametrize("both", BOTH, ids=IDS)


@each_tier
@pytest.mark.parametrize(
    ("both", "held", "seen", "left"),
    [
        ((False, False), {KEY: "new", FIRST: "old"}, "new", {KEY: "new", FIRST: "old"}),
        ((False, False), {FIRST: "old", SECOND: "older"}, "old", {FIRST: "old", SECOND: "older"}),
        ((False, False), {SECOND: "older"}, None, {SECOND: "older"}),
        ((False, True), {KEY: "new", FIRST: "old"}, "new", {KEY: "new", FIRST: "old"}),
        ((False, True), {FIRST: "old", SECOND: "older"}, "old", {FIRST: "old", SECOND: "older"}),
        ((False, True), {SECOND: "older"}, "older", {SECOND: "older"}),
        ((True, True), {KEY: "new", FIRST: "old"}, "new", {KEY: "new", FIRST: "old"}),
        ((True, True), {FIRST: "old", SECOND: "older"}, "old", {KEY: "old", FIRST: "old", SECOND: "older"}),
        ((True, True), {SECOND: "older"}, "older", {KEY: "older", SECOND: "older"}),
        ((True, False), {KEY: "new", FIRST: "old"}, "new", {KEY: "new", FIRST: "old"}),
        ((True, False), {FIRST: "old", SECOND: "older"}, None, {FIRST: "old", SECOND: "older"}),
        ((True, True), {}, None, {}),
        ((True, True), {KEY: REMOVED, FIRST: "old"}, None, {KEY: REMOVED, FIRST: "old"}),
        ((False, True), {KEY: REMOVED, FIRST: "old"}, None, {KEY: REMOVED, FIRST: "old"}),
    ],
)
async def test_a_read_uses_the_canonical_key_and_then_the_keys_of_the_flags(
    tier: str, both: Flags, held: dict[str, str], seen: str | None, left: dict[str, str]
) -> None:
    store = store_of(held)
    assert await layer(tier, store, flags(*both), Watched()).read(KEY) == seen
    assert store.values == left


@each_tier
@pytest.mark.parametrize(
    ("both", "held", "left"),
    [
        ((False, False), {}, {FIRST: "v"}),
        ((False, True), {}, {FIRST: "v"}),
        ((False, True), {SECOND: "old"}, {FIRST: "v", SECOND: "old"}),
        ((False, True), {KEY: "old"}, {KEY: "v", FIRST: "v"}),
        ((False, False), {KEY: REMOVED}, {KEY: "v", FIRST: "v"}),
        ((True, True), {FIRST: "old"}, {KEY: "v", FIRST: "old"}),
        ((True, False), {FIRST: "old", KEY: REMOVED}, {KEY: "v", FIRST: "old"}),
    ],
)
async def test_a_write_uses_the_keys_of_the_flags_and_never_leaves_the_canonical_value_stale(
    tier: str, both: Flags, held: dict[str, str], left: dict[str, str]
) -> None:
    store = store_of(held)
    memory = layer(tier, store, flags(*both), Watched())
    await memory.upsert(KEY, "v")
    assert store.values == left
    assert await memory.read(KEY) == "v"


@each_tier
@each_flags
@pytest.mark.parametrize(
    "held",
    [{}, {KEY: "c"}, {FIRST: "a"}, {SECOND: "b"}, {KEY: "c", FIRST: "a", SECOND: "b"}, {KEY: REMOVED, FIRST: "a"}],
    ids=["nothing", "canonical", "first", "second", "all", "removed"],
)
async def test_a_removed_item_is_gone_under_every_key_and_for_every_reader(
    tier: str, both: Flags, held: dict[str, str]
) -> None:
    store = store_of(held)
    await layer(tier, store, flags(*both), Watched()).delete(KEY)
    assert store.values.keys() <= {KEY}
    assert store.values.get(KEY, REMOVED) == REMOVED
    for other in BOTH:
        assert await layer(tier, store, flags(*other), Watched()).read(KEY) is None


@each_tier
@each_flags
@pytest.mark.parametrize("nth", [1, 2, 3, None])
async def test_without_copies_a_removed_item_leaves_no_mark_and_a_failure_leaves_its_newest_value(
    tier: str, both: Flags, nth: int | None
) -> None:
    store, faults = store_of({KEY: "c", FIRST: "a", SECOND: "b"}), Faults(lambda owner: None)
    memory = layer(tier, faults.wrap("store", store, faults.life("x")), flags(*both), Watched(), adds=False)
    if nth is not None:
        faults.plan(Fault(Unavailable("no"), nth=nth, point="store.delete"))
        with pytest.raises(Unavailable):
            await memory.delete(KEY)
        assert await memory.read(KEY) == "c"
    await memory.delete(KEY)
    assert store.values == {}


@each_tier
async def test_a_removed_item_can_be_written_again(tier: str) -> None:
    store = store_of({FIRST: "old"})
    memory = layer(tier, store, flags(True, True), Watched())
    await memory.delete(KEY)
    await memory.upsert(KEY, "new")
    assert await memory.read(KEY) == "new"


HELD = ({KEY: "c", FIRST: "a", SECOND: "b"}, {FIRST: "a", SECOND: "b"}, {KEY: "c", SECOND: "b"}, {SECOND: "b"})


@each_flags
@pytest.mark.parametrize("held", HELD, ids=["all", "legacy", "canonical and second", "second"])
@pytest.mark.parametrize("when", ["", " done"], ids=["before", "after"])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("act", ["delete", "upsert"])
async def test_a_failure_at_any_call_leaves_the_old_or_the_new_item_and_a_repetition_completes_it(
    both: Flags, held: dict[str, str], when: Literal["", " done"], nth: int, act: str
) -> None:
    for method in ("read", "upsert", "delete"):
        store = store_of(held)
        before = await layer("warm", store_of(held), flags(*both), Watched()).read(KEY)
        faults = Faults(lambda owner: None)
        faults.plan(Fault(Unavailable("no"), nth=nth, point=f"store.{method}{when}"))
        memory = layer("warm", faults.wrap("store", store, faults.life("store")), flags(*both), Watched())

        async def attempt(memory: object = memory) -> None:
            await (memory.delete(KEY) if act == "delete" else memory.upsert(KEY, "v"))  # type: ignore[attr-defined]

        after = None if act == "delete" else "v"
        try:
            await attempt()
            wanted: tuple[str | None, ...] = (after,)
        except Unavailable:
            wanted = (before, after)
        assert await layer("warm", store_of(store.values), flags(*both), Watched()).read(KEY) in wanted
        faults.cancel()
        await attempt()
        assert await layer("warm", store, flags(*both), Watched()).read(KEY) == after
        if act == "delete":
            assert store.values.keys() <= {KEY}


async def test_a_delete_that_crashes_halfway_is_not_undone_by_the_copies_of_readers() -> None:
    store = store_of({FIRST: "a", SECOND: "b"})
    faults = Faults(lambda owner: None)
    faults.plan(Fault(Unavailable("no"), point="store.delete"))
    memory = layer("warm", faults.wrap("store", store, faults.life("store")), flags(True, True), Watched())
    with pytest.raises(Unavailable):
        await memory.delete(KEY)
    assert store.values == {KEY: REMOVED, FIRST: "a", SECOND: "b"}
    assert await memory.read(KEY) is None
    assert store.values[KEY] == REMOVED


async def test_a_copy_that_fails_does_not_fail_the_read_and_is_counted() -> None:
    store, watch = store_of({FIRST: "old"}), Watched()
    faults = Faults(lambda owner: None)
    faults.plan(Fault(Unavailable("no"), point="store.add"))
    memory = layer("warm", faults.wrap("store", store, faults.life("store")), flags(True, True), watch)
    assert await memory.read(KEY) == "old"
    assert (watch.copies[False], watch.copies[True], store.values) == (1, 0, {FIRST: "old"})
    assert await memory.read(KEY) == "old"
    assert (watch.copies[True], store.values[KEY]) == (1, "old")


async def test_a_store_that_is_down_is_an_error_and_not_a_miss() -> None:
    store = store_of({FIRST: "old"})
    faults = Faults(lambda owner: None)
    faults.down.add("store")
    memory = layer("warm", faults.wrap("store", store, faults.life("store")), flags(True, True), Watched())
    with pytest.raises(Unavailable):
        await memory.read(KEY)


@each_tier
async def test_nothing_is_copied_before_it_is_permitted_or_if_the_store_cannot_add(tier: str) -> None:
    for adds, permitted in ((True, False), (False, True)):
        store = store_of({FIRST: "old"})
        assert await layer(tier, store, flags(True, True), Watched(permitted), adds=adds).read(KEY) == "old"
        assert store.values == {FIRST: "old"}


async def test_an_item_that_expired_under_its_canonical_key_does_not_reappear_from_a_legacy_one() -> None:
    class Expired(DictStore):
        async def read(self, key: str) -> str | None:
            return None if key == KEY else await super().read(key)

    store = Expired(**{KEY: "expired", FIRST: "old"})
    assert await layer("warm", store, flags(True, True), Watched()).read(KEY) is None
    assert store.values[KEY] == "expired"


async def test_reads_are_counted_by_the_key_that_answered_them() -> None:
    watch = Watched()
    memory = layer("warm", store_of({FIRST: "old"}), flags(True, True), watch)
    for _ in range(3):
        await memory.read(KEY)
    await memory.read("crm:acme:s1:cart:none")
    assert watch.counts == {ReadOutcome.LEGACY: 1, ReadOutcome.CANONICAL: 2, ReadOutcome.ABSENT: 1}


async def test_with_canonical_keys_alone_some_misses_are_probed_and_counted() -> None:
    watch, store = Watched(), store_of({SECOND: "old"})
    memory = layer("warm", store, flags(True, False), watch)
    assert [await memory.read(KEY) for _ in range(3 * PROBE_EVERY)] == [None] * 3 * PROBE_EVERY
    assert watch.counts == {ReadOutcome.UNREAD: 3, ReadOutcome.ABSENT: 3 * PROBE_EVERY - 3}
    assert store.values == {SECOND: "old"}


@each_tier
@pytest.mark.parametrize(
    "key", ["", "a:b", "crm:acme:s1:cart:*", "crm:acme::cart:active", "crm:acme:s1:cart:a:b", SECOND]
)
async def test_a_key_that_is_not_canonical_is_refused(tier: str, key: str) -> None:
    store = store_of({})
    memory = layer(tier, store, flags(True, True), Watched())
    for act in (memory.read(key), memory.delete(key), memory.upsert(key, "v")):
        with pytest.raises(InvalidInput) as raised:
            await act
        assert raised.value.code == "invalid_namespace"
    assert store.values == {}


async def test_the_mark_of_removed_items_cannot_be_written_as_a_value() -> None:
    with pytest.raises(InvalidInput) as raised:
        await layer("warm", store_of({}), flags(True, True), Watched()).upsert(KEY, REMOVED)
    assert raised.value.code == "reserved_value"


@each_flags
async def test_another_tenants_item_never_uses_a_key_that_is_fixed_to_one_tenant(both: Flags) -> None:
    store = store_of({SECOND: "acme's"})
    memory = layer("warm", store, flags(*both), Watched())
    assert await memory.read("crm:contoso:s1:cart:active") is None
    assert await memory.read("other:acme:s1:cart:active") is None
    await memory.delete("crm:contoso:s1:cart:active")
    assert store.values[SECOND] == "acme's"


@each_flags
async def test_an_item_without_legacy_keys_has_only_its_canonical_key(both: Flags) -> None:
    store, key = store_of({}), "other:acme:s1:cart:active"
    memory = layer("warm", store, flags(*both), Watched())
    await memory.upsert(key, "v")
    assert store.values == {key: "v"}
    await memory.delete(key)
    assert store.values == {}


async def test_the_cold_tiers_prefix_precedes_the_canonical_key() -> None:
    store = store_of({FIRST: "old"})
    memory = layer("cold", store, flags(True, True), Watched())
    assert await memory.read(f"uploads/{KEY}") == "old"
    assert store.values == {FIRST: "old", f"uploads/{KEY}": "old"}
