"""The contract of every `Kv`. Cases use their own keys and may be repeated on the same store."""

from __future__ import annotations

from retain.errors import InvalidInput, LimitExceeded
from retain.ports import Kv
from tests.ports import raises


async def check_a_missing_key_is_none(kv: Kv) -> None:
    assert await kv.get("contract:missing:never-written") is None


async def check_a_written_value_is_read_back(kv: Kv) -> None:
    await kv.put("contract:write", "value")
    assert await kv.get("contract:write") == "value"


async def check_values_of_many_keys_are_read_in_their_order(kv: Kv) -> None:
    await kv.put("contract:many:a", "first")
    await kv.put("contract:many:b", "")
    keys = ["contract:many:b", "contract:many:missing", "contract:many:a"]
    assert await kv.get_many(keys) == ["", None, "first"]
    assert await kv.get_many(keys[1:2]) == [None]
    assert await kv.get_many([]) == []
    hundred = [f"contract:many:{number}" for number in range(100)]
    assert await kv.get_many(hundred) == [None] * 100


async def check_too_many_keys_and_invalid_ones_are_refused(kv: Kv) -> None:
    with raises(InvalidInput, code="invalid_limit"):
        await kv.get_many([f"contract:many:{number}" for number in range(101)])
    with raises(InvalidInput, code="invalid_key"):
        await kv.get_many(["contract:many:a", ""])


async def check_a_second_write_replaces_the_first(kv: Kv) -> None:
    await kv.put("contract:replace", "first")
    await kv.put("contract:replace", "second")
    assert await kv.get("contract:replace") == "second"


async def check_an_empty_value_is_not_a_missing_one(kv: Kv) -> None:
    await kv.put("contract:empty", "")
    assert await kv.get("contract:empty") == ""


async def check_unicode_and_nul_survive_in_keys_and_values(kv: Kv) -> None:
    for number, text in enumerate(("ключ", "🦀 \u2028 \ufeff", "a\0b", "%2F/?#&+ ", '"quoted"\n')):
        await kv.put(f"contract:text:{number}:{text}", text)
        assert await kv.get(f"contract:text:{number}:{text}") == text


async def check_a_deleted_key_is_gone(kv: Kv) -> None:
    await kv.put("contract:delete", "value")
    await kv.delete("contract:delete")
    assert await kv.get("contract:delete") is None


async def check_deleting_an_absent_key_is_not_an_error(kv: Kv) -> None:
    await kv.delete("contract:delete:never-written")


async def check_a_key_with_a_time_to_live_is_readable_until_then(kv: Kv) -> None:
    await kv.put("contract:ttl", "value", ttl_s=60)
    assert await kv.get("contract:ttl") == "value"


async def check_a_time_to_live_under_a_minute_is_refused_and_nothing_is_written(kv: Kv) -> None:
    for ttl_s in (59, 1, 0, -1):
        with raises(InvalidInput, code="invalid_ttl"):
            await kv.put("contract:ttl:short", "value", ttl_s=ttl_s)
    assert await kv.get("contract:ttl:short") is None


async def check_a_key_of_512_bytes_is_accepted_and_one_more_refused(kv: Kv) -> None:
    longest = "contract:" + "k" * 503
    await kv.put(longest, "value")
    assert await kv.get(longest) == "value"
    with raises(LimitExceeded, code="key_too_long"):
        await kv.put(longest + "k", "value")
    with raises(LimitExceeded, code="key_too_long"):
        await kv.get(longest + "k")
    with raises(LimitExceeded, code="key_too_long"):
        await kv.delete(longest + "k")


async def check_the_length_of_a_key_counts_bytes_not_characters(kv: Kv) -> None:
    with raises(LimitExceeded, code="key_too_long"):
        await kv.put("é" * 257, "value")


async def check_keys_that_the_platform_reserves_are_refused(kv: Kv) -> None:
    for key in ("", ".", ".."):
        with raises(InvalidInput, code="invalid_key"):
            await kv.put(key, "value")
        with raises(InvalidInput, code="invalid_key"):
            await kv.get(key)


async def check_a_value_over_25_mebibytes_is_refused(kv: Kv) -> None:
    with raises(LimitExceeded, code="value_too_large"):
        await kv.put("contract:large", "v" * (25 * 1024 * 1024 + 1))
    assert await kv.get("contract:large") is None


async def check_text_that_is_not_unicode_is_refused(kv: Kv) -> None:
    with raises(InvalidInput, code="unsupported_value"):
        await kv.put("contract:surrogate", "\ud800")
    with raises(InvalidInput, code="unsupported_value"):
        await kv.get("contract:surrogate:\ud800")


async def check_a_listing_has_the_keys_of_the_prefix_in_the_order_of_their_bytes(kv: Kv) -> None:
    names = ["%", "A", "_", "a", "aa", "b", "é", "\uffee", "𐀀"]  # UTF-16 would put the last one before the other
    for name in reversed(names):
        await kv.put(f"contract:order:{name}", "value")
    await kv.put("contract:order", "not below the prefix")
    await kv.put("contract:order;", "not below the prefix")
    page = await kv.list("contract:order:")
    assert page.keys == [f"contract:order:{name}" for name in names]
    assert page.cursor is None


async def check_pages_follow_each_other_without_gap_or_repetition(kv: Kv) -> None:
    expected = [f"contract:page:{number:02}" for number in range(10)]
    for key in expected:
        await kv.put(key, "value")
    for limit in (1, 3, 5, 10, 11):
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = await kv.list("contract:page:", cursor=cursor, limit=limit)
            assert len(page.keys) <= limit
            seen += page.keys
            if page.cursor is None:
                break
            cursor = page.cursor
        assert seen == expected, f"limit {limit}"


async def check_a_listing_without_hits_is_empty_and_ends(kv: Kv) -> None:
    page = await kv.list("contract:none:")
    assert (page.keys, page.cursor) == ([], None)


async def check_a_deleted_key_is_not_listed(kv: Kv) -> None:
    await kv.put("contract:unlisted:a", "value")
    await kv.put("contract:unlisted:b", "value")
    await kv.delete("contract:unlisted:a")
    assert (await kv.list("contract:unlisted:")).keys == ["contract:unlisted:b"]


async def check_a_page_size_outside_1_to_1000_is_refused(kv: Kv) -> None:
    for limit in (0, -1, 1001):
        with raises(InvalidInput, code="invalid_limit"):
            await kv.list("contract:", limit=limit)
