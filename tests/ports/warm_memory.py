"""The contract of every `WarmMemory`. Cases use their own keys and may be repeated on the same store."""

from __future__ import annotations

from retain.items.tiers.protocols import WarmMemory

KEY = "shop:acme:contract:preferences:"


async def check_a_missing_key_is_none(warm: WarmMemory) -> None:
    assert await warm.read(f"{KEY}never-written") is None


async def check_a_value_is_read_back_replaced_and_removed(warm: WarmMemory) -> None:
    await warm.upsert(f"{KEY}one", "first")
    assert await warm.read(f"{KEY}one") == "first"
    await warm.upsert(f"{KEY}one", "second")
    assert await warm.read(f"{KEY}one") == "second"
    await warm.delete(f"{KEY}one")
    assert await warm.read(f"{KEY}one") is None
    await warm.upsert(f"{KEY}one", "third")
    assert await warm.read(f"{KEY}one") == "third"


async def check_removing_an_absent_key_is_not_an_error(warm: WarmMemory) -> None:
    await warm.delete(f"{KEY}never-written")


async def check_an_empty_value_is_not_a_missing_one(warm: WarmMemory) -> None:
    await warm.upsert(f"{KEY}empty", "")
    assert await warm.read(f"{KEY}empty") == ""


async def check_any_text_survives(warm: WarmMemory) -> None:
    for number, text in enumerate(("ключ", "🦀 \u2028 \ufeff", "line\nline\r\n", '"quoted"', "{}", "retain1 {}\nx")):
        await warm.upsert(f"{KEY}text-{number}", text)
        assert await warm.read(f"{KEY}text-{number}") == text


async def check_a_legacy_key_is_kept_unchanged(warm: WarmMemory) -> None:
    await warm.upsert("contract-cart/acme:active", "legacy")
    assert await warm.read("contract-cart/acme:active") == "legacy"


async def check_keys_do_not_touch_each_other(warm: WarmMemory) -> None:
    await warm.upsert(f"{KEY}a", "a")
    await warm.upsert(f"{KEY}ab", "ab")
    await warm.delete(f"{KEY}a")
    assert (await warm.read(f"{KEY}a"), await warm.read(f"{KEY}ab")) == (None, "ab")
