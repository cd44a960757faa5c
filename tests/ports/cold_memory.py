"""The contract of every `ColdMemory`. Cases use their own keys and may be repeated on the same store."""

from __future__ import annotations

from retain.items.tiers.protocols import ColdMemory

KEY = "contract/shop:acme:contract:order_history:"


async def check_a_missing_key_is_none(cold: ColdMemory) -> None:
    assert await cold.download_text(f"{KEY}never-written") is None


async def check_a_value_is_read_back_replaced_and_removed(cold: ColdMemory) -> None:
    await cold.upload_text(f"{KEY}one", "first")
    assert await cold.download_text(f"{KEY}one") == "first"
    await cold.upload_text(f"{KEY}one", "second")
    assert await cold.download_text(f"{KEY}one") == "second"
    await cold.delete(f"{KEY}one")
    assert await cold.download_text(f"{KEY}one") is None


async def check_removing_an_absent_key_is_not_an_error(cold: ColdMemory) -> None:
    await cold.delete(f"{KEY}never-written")


async def check_an_empty_value_is_not_a_missing_one(cold: ColdMemory) -> None:
    await cold.upload_text(f"{KEY}empty", "")
    assert await cold.download_text(f"{KEY}empty") == ""


async def check_any_text_survives(cold: ColdMemory) -> None:
    for number, text in enumerate(("ключ", "🦀 \u2028 \ufeff", "a\0b", "line\nline\r\n", '"quoted"')):
        await cold.upload_text(f"{KEY}text-{number}", text)
        assert await cold.download_text(f"{KEY}text-{number}") == text


async def check_a_value_of_two_megabytes_survives(cold: ColdMemory) -> None:
    await cold.upload_text(f"{KEY}large", "x" * 2_000_000)
    assert await cold.download_text(f"{KEY}large") == "x" * 2_000_000


async def check_keys_do_not_touch_each_other(cold: ColdMemory) -> None:
    await cold.upload_text(f"{KEY}a", "a")
    await cold.upload_text(f"{KEY}ab", "ab")
    await cold.delete(f"{KEY}a")
    assert (await cold.download_text(f"{KEY}a"), await cold.download_text(f"{KEY}ab")) == (None, "ab")
