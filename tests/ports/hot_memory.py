"""The contract of every `HotMemory`. Cases use their own keys and may be repeated on the same store."""

from __future__ import annotations

from retain.errors import InvalidInput
from retain.items.tiers.protocols import HotMemory
from tests.ports import raises

KEY = "shop:acme:contract:cart:"


async def check_a_missing_key_is_none(hot: HotMemory) -> None:
    assert await hot.get(f"{KEY}never-written") is None


async def check_a_value_is_read_back_replaced_and_removed(hot: HotMemory) -> None:
    await hot.set(f"{KEY}one", "first")
    assert await hot.get(f"{KEY}one") == "first"
    await hot.set(f"{KEY}one", "second", ttl=900)
    assert await hot.get(f"{KEY}one") == "second"
    await hot.delete(f"{KEY}one")
    assert await hot.get(f"{KEY}one") is None


async def check_removing_an_absent_key_is_not_an_error(hot: HotMemory) -> None:
    await hot.delete(f"{KEY}never-written")


async def check_an_empty_value_is_not_a_missing_one(hot: HotMemory) -> None:
    await hot.set(f"{KEY}empty", "")
    assert await hot.get(f"{KEY}empty") == ""


async def check_any_text_survives(hot: HotMemory) -> None:
    for number, text in enumerate(("ключ", "🦀 \u2028 \ufeff", "a\0b", "line\nline\r\n", '"quoted"', "retain1 7 0\nx")):
        await hot.set(f"{KEY}text-{number}", text)
        assert await hot.get(f"{KEY}text-{number}") == text


async def check_a_time_to_live_below_a_minute_is_refused_and_nothing_is_written(hot: HotMemory) -> None:
    for seconds in (59, 1, 0, -1):
        with raises(InvalidInput, code="invalid_ttl"):
            await hot.set(f"{KEY}short", "value", ttl=seconds)
    assert await hot.get(f"{KEY}short") is None


async def check_keys_do_not_touch_each_other(hot: HotMemory) -> None:
    await hot.set(f"{KEY}a", "a")
    await hot.set(f"{KEY}ab", "ab")
    await hot.delete(f"{KEY}a")
    assert (await hot.get(f"{KEY}a"), await hot.get(f"{KEY}ab")) == (None, "ab")
