"""Single faults in the code of items, each of which the machine must find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from retain.items import demotion, item_checks, removal, unsealed
from retain.items.entry import Buried, Draft, Held, ItemEntry
from retain.items.rekeying import catalogue, flags, sources
from retain.items.rekeying.catalogue import LayeredCatalogue
from retain.items.tiers import hot_copies, stores
from retain.lifecycle import user_export

Patch = pytest.MonkeyPatch


async def _nothing(*_: Any, **__: Any) -> None:
    return None


def expiry_is_ignored(patch: Patch) -> None:
    patch.setattr(ItemEntry, "shown", lambda entry, _now: not entry.deleted)


def an_expired_row_does_not_hide_its_legacy_value(patch: Patch) -> None:
    find = LayeredCatalogue.find

    async def looks_below(layered: Any, key: str) -> ItemEntry | None:
        found = await find(layered, key)
        if found is not None and not found.deleted and not found.shown(layered._clock()):
            for old_key in layered._compatible.keys(key)[1]:
                found = await layered._inner.find(old_key) or found
        return found

    patch.setattr(LayeredCatalogue, "find", looks_below)


def a_delete_leaves_legacy_rows(patch: Patch) -> None:
    async def bury(layered: Any, key: str) -> Buried:
        return await layered._inner.bury(key)  # type: ignore[no-any-return]

    patch.setattr(LayeredCatalogue, "bury", bury)


def a_write_to_a_legacy_key_leaves_the_canonical_value(patch: Patch) -> None:
    async def write(layered: Any, key: str, draft: Draft) -> int:
        canonical, legacy = layered._compatible.keys(key)
        both = layered._compatible.namespacing
        return await layered._inner.write(canonical if both.write_canonical else legacy[0], draft)  # type: ignore[no-any-return]

    patch.setattr(LayeredCatalogue, "write", write)


def a_delete_leaves_the_hot_copy(patch: Patch) -> None:
    patch.setattr(hot_copies.HotCopies, "drop", _nothing)


def a_put_leaves_an_older_hot_copy(patch: Patch) -> None:
    leave = hot_copies.HotCopies.leave

    async def once(copies: Any, key: str, held: Held, ttl_s: int | None) -> bool:
        return await copies._hot.get(key) is not None or await leave(copies, key, held, ttl_s)

    patch.setattr(hot_copies.HotCopies, "leave", once)


def hot_keys_forget_the_tenant(patch: Patch) -> None:
    for name in ("get", "set", "delete"):
        method = getattr(stores.KvHot, name)

        async def on_any(hot: Any, key: str, *more: Any, method: Any = method, **named: Any) -> Any:
            return await method(hot, key.replace(":other:", ":acme:"), *more, **named)

        patch.setattr(stores.KvHot, name, on_any)


def a_removed_row_leaves_what_it_hides(patch: Patch) -> None:
    patch.setattr(removal.Removal, "_hidden", lambda *_: [])


def any_object_is_adopted(patch: Patch) -> None:
    patch.setattr(sources, "_ADOPT", sources._ADOPT.partition("WHERE")[0] + "WHERE ?8 <> '' ON CONFLICT DO NOTHING")


def a_copy_is_not_sealed(patch: Patch) -> None:
    async def plain(_: Any, __: str, ___: str, value: str) -> tuple[str, None]:
        return value, None

    patch.setattr(sources.SqlItems, "_sealed", plain)


def a_put_does_not_seal(patch: Patch) -> None:
    patch.setattr(item_checks.ItemChecks, "_sealer_of", lambda *_: None)


def the_daily_work_seals_nothing(patch: Patch) -> None:
    async def found_none(*_: Any) -> unsealed.SearchedValues:
        return unsealed.SearchedValues({}, ())

    patch.setattr(unsealed.UnsealedValues, "seal", found_none)


def nothing_is_swept(patch: Patch) -> None:
    async def none(*_: Any) -> int:
        return 0

    patch.setattr(demotion.Demotion, "_sweep", none)


def the_sweep_takes_objects_that_are_read(patch: Patch) -> None:
    patch.setattr(demotion, "_LOOSE", demotion._LOOSE.replace("NOT EXISTS", "0 = EXISTS").replace("NOT i.deleted", "0"))


def a_key_is_renewed_under_another_name(patch: Patch) -> None:
    patch.setattr(flags.Namespacing, "item_of", lambda *_: None)


def a_user_export_shows_everybodys_items(patch: Patch) -> None:
    everybody = user_export._Texts("item", user_export._PHASES["items"].sql.replace("user_id = ?2", "?2 <> ''"))
    patch.setitem(user_export._PHASES, "items", everybody)


def phase_3_reads_legacy_keys_before_canonical_ones(patch: Patch) -> None:
    find = catalogue.LayeredCatalogue.find

    async def legacy_first(layered: Any, key: str) -> ItemEntry | None:
        for old_key in layered._compatible.keys(key)[1]:
            found = await layered._inner.find(old_key)
            if found is not None and not found.deleted:
                return found  # type: ignore[no-any-return]
        return await find(layered, key)

    patch.setattr(catalogue.LayeredCatalogue, "find", legacy_first)


FOUND_SOON: Mapping[str, Callable[[Patch], None]] = {
    fault.__name__: fault
    for fault in (
        expiry_is_ignored,
        a_delete_leaves_legacy_rows,
        a_delete_leaves_the_hot_copy,
        hot_keys_forget_the_tenant,
        a_removed_row_leaves_what_it_hides,
        a_put_does_not_seal,
        a_copy_is_not_sealed,
        nothing_is_swept,
        the_sweep_takes_objects_that_are_read,
        a_key_is_renewed_under_another_name,
        a_user_export_shows_everybodys_items,
    )
}
"""Those that a few hundred steps find: the ordinary suite plants them."""
FOUND_LATER: Mapping[str, Callable[[Patch], None]] = {
    fault.__name__: fault
    for fault in (
        any_object_is_adopted,
        an_expired_row_does_not_hide_its_legacy_value,
        a_write_to_a_legacy_key_leaves_the_canonical_value,
        a_put_leaves_an_older_hot_copy,
        the_daily_work_seals_nothing,
        phase_3_reads_legacy_keys_before_canonical_ones,
    )
}
"""Those that take more steps, as a soak makes them."""
