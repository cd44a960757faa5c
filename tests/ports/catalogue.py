"""The contract of every `ItemCatalogue`. Cases use their own keys and may be repeated on the same store."""

from __future__ import annotations

from retain.items.entry import Draft
from retain.items.tiers.protocols import ItemCatalogue

KEY = "shop:acme:contract:catalogue:"


def _warm(value: str) -> Draft:
    return Draft("warm", value, len(value))


async def check_versions_grow_with_every_write_even_across_a_delete(catalogue: ItemCatalogue) -> None:
    key = f"{KEY}versions"
    versions = [await catalogue.write(key, _warm("first")), await catalogue.write(key, _warm("second"))]
    versions += [(await catalogue.bury(key)).version, await catalogue.write(key, _warm("third"))]
    assert versions == sorted(set(versions))
    assert await catalogue.version(key) == versions[-1]


async def check_what_is_written_is_found_unchanged(catalogue: ItemCatalogue) -> None:
    key = f"{KEY}fields"
    object_key = await catalogue.new_object(key, "contract/")
    version = await catalogue.write(key, Draft("cold", None, 7, object_key, expires_at_ms=9_999_999_999_999))
    entry = await catalogue.find(key)
    assert entry is not None
    assert (entry.version, entry.tier, entry.value, entry.object_key) == (version, "cold", None, object_key)
    assert (entry.size_bytes, entry.expires_at_ms, entry.deleted) == (7, 9_999_999_999_999, False)


async def check_a_deleted_item_has_no_value_and_deleting_it_again_changes_nothing(catalogue: ItemCatalogue) -> None:
    key = f"{KEY}bury"
    await catalogue.write(key, _warm("value"))
    first = await catalogue.bury(key)
    assert first.found
    second = await catalogue.bury(key)
    assert (second.found, second.version) == (False, first.version)
    entry = await catalogue.find(key)
    assert entry is None or (entry.deleted and entry.value is None)
    assert await catalogue.version(key) is None


async def check_a_copy_of_an_older_version_is_not_accepted(catalogue: ItemCatalogue) -> None:
    key = f"{KEY}copy"
    first = await catalogue.write(key, Draft("cold", None, 5, await catalogue.new_object(key, "contract/")))
    second = await catalogue.write(key, Draft("cold", None, 5, await catalogue.new_object(key, "contract/")))
    assert not await catalogue.copy_in(key, first, "first")
    entry = await catalogue.find(key)
    assert entry is not None
    assert entry.value is None
    assert await catalogue.copy_in(key, second, "second")
    entry = await catalogue.find(key)
    assert entry is not None
    assert (entry.value, entry.version, entry.tier) == ("second", second, "cold")


async def check_nothing_is_known_of_what_was_never_written(catalogue: ItemCatalogue) -> None:
    assert await catalogue.find(f"{KEY}never-written") is None
    assert await catalogue.version(f"{KEY}never-written") is None
    assert not (await catalogue.bury(f"{KEY}never-written")).found
