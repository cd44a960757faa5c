"""The contract of every `Objects`. Cases use their own keys and may be repeated on the same store."""

from __future__ import annotations

from collections.abc import AsyncIterator

from retain.attachments.objects import StreamedObjects
from retain.errors import InvalidInput, LimitExceeded, Unavailable
from retain.ports import Objects
from tests.ports import raises


async def check_a_missing_object_is_none(objects: Objects) -> None:
    assert await objects.get("contract/missing") is None


async def check_every_byte_survives(objects: Objects) -> None:
    value = bytes(range(256)) * 3
    await objects.put("contract/bytes", value)
    stored = await objects.get("contract/bytes")
    assert stored == value
    assert isinstance(stored, bytes)


async def check_a_second_write_replaces_the_first(objects: Objects) -> None:
    await objects.put("contract/replace", b"first, and longer")
    await objects.put("contract/replace", b"second", content_type="text/plain")
    assert await objects.get("contract/replace") == b"second"


async def check_adding_never_replaces_an_object(objects: Objects) -> None:
    await objects.delete("contract/add")
    assert await objects.add("contract/add", b"first", content_type="text/plain")
    assert not await objects.add("contract/add", b"second")
    assert await objects.get("contract/add") == b"first"
    await objects.delete("contract/add")
    assert await objects.add("contract/add", b"")
    assert not await objects.add("contract/add", b"third")
    assert await objects.get("contract/add") == b""
    with raises(LimitExceeded, code="key_too_long"):
        await objects.add("k" * 1025, b"value")


async def check_an_empty_object_is_not_a_missing_one(objects: Objects) -> None:
    await objects.put("contract/empty", b"")
    assert await objects.get("contract/empty") == b""


async def check_a_large_object_is_kept_whole(objects: Objects) -> None:
    value = b"0123456789abcdef" * (3 * 1024 * 1024 // 16)
    await objects.put("contract/large", value)
    assert await objects.get("contract/large") == value


async def check_a_deleted_object_is_gone(objects: Objects) -> None:
    await objects.put("contract/delete", b"value")
    await objects.delete("contract/delete")
    assert await objects.get("contract/delete") is None
    assert (await objects.list("contract/delete")).keys == []


async def check_deleting_an_absent_object_is_not_an_error(objects: Objects) -> None:
    await objects.delete("contract/delete/never-written")


async def check_keys_are_taken_literally(objects: Objects) -> None:
    for key in ("contract/literal/../up", "contract/literal//double", "contract/literal/ключ 🦀?#%2F"):
        await objects.put(key, key.encode())
        assert await objects.get(key) == key.encode()
    assert await objects.get("contract/up") is None


async def check_a_key_of_1024_bytes_is_accepted_and_one_more_refused(objects: Objects) -> None:
    longest = "contract/" + "k" * 1015
    await objects.put(longest, b"value")
    assert await objects.get(longest) == b"value"
    with raises(LimitExceeded, code="key_too_long"):
        await objects.put(longest + "k", b"value")
    with raises(LimitExceeded, code="key_too_long"):
        await objects.get(longest + "k")


async def check_an_empty_key_is_refused(objects: Objects) -> None:
    with raises(InvalidInput, code="invalid_key"):
        await objects.put("", b"value")


async def check_a_key_that_is_not_unicode_is_refused(objects: Objects) -> None:
    with raises(InvalidInput, code="unsupported_value"):
        await objects.put("contract/\ud800", b"value")


async def check_a_listing_has_the_keys_of_the_prefix_in_the_order_of_their_bytes(objects: Objects) -> None:
    names = ["%", "A", "_", "a", "a/b", "b", "é", "\uffee", "𐀀"]  # UTF-16 would put the last one before the other
    for name in reversed(names):
        await objects.put(f"contract/order/{name}", b"value")
    await objects.put("contract/order", b"not below the prefix")
    await objects.put("contract/order0", b"not below the prefix")
    page = await objects.list("contract/order/")
    assert page.keys == [f"contract/order/{name}" for name in names]
    assert page.cursor is None


async def check_pages_follow_each_other_without_gap_or_repetition(objects: Objects) -> None:
    expected = [f"contract/page/{number:02}" for number in range(10)]
    for key in expected:
        await objects.put(key, b"value")
    for limit in (1, 3, 5, 10, 11):
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = await objects.list("contract/page/", cursor=cursor, limit=limit)
            assert len(page.keys) <= limit
            seen += page.keys
            if page.cursor is None:
                break
            cursor = page.cursor
        assert seen == expected, f"limit {limit}"


async def check_a_page_size_outside_1_to_1000_is_refused(objects: Objects) -> None:
    for limit in (0, -1, 1001):
        with raises(InvalidInput, code="invalid_limit"):
            await objects.list("contract/", limit=limit)


async def _pieces(*pieces: bytes, then: Exception | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if then is not None:
        raise then


async def check_a_streamed_object_is_written_and_read_piece_by_piece(objects: StreamedObjects) -> None:
    pieces = [bytes([number]) * 65_536 for number in range(20)]
    await objects.put_stream("contract/streamed", _pieces(*pieces), size_bytes=20 * 65_536, content_type="text/plain")
    assert await objects.get("contract/streamed") == b"".join(pieces)
    content = await objects.stream("contract/streamed")
    assert content is not None
    read = [piece async for piece in content]
    assert all(read)
    assert b"".join(read) == b"".join(pieces)
    assert await objects.stream("contract/never-streamed") is None


async def check_a_stream_of_another_size_or_that_breaks_off_writes_nothing(objects: StreamedObjects) -> None:
    await objects.put("contract/unstreamed", b"before")
    for pieces in ((b"abc",), (b"abc", b"def")):
        with raises(InvalidInput, code="invalid_content"):
            await objects.put_stream("contract/unstreamed", _pieces(*pieces), size_bytes=5)
    broken = Unavailable("the body did not arrive completely", code="body_interrupted")
    with raises(Unavailable, code="body_interrupted"):
        await objects.put_stream("contract/unstreamed", _pieces(b"ab", then=broken), size_bytes=5)
    assert await objects.get("contract/unstreamed") == b"before"
    with raises(LimitExceeded, code="key_too_long"):
        await objects.put_stream("k" * 1025, _pieces(b"a"), size_bytes=1)
