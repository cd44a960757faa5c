"""A request is read as it arrives: however it is cut, it has the same members, and long values are not kept."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.ingest.request import MAX_VALUE_CHARACTERS, Member, Oversized, read_members
from retain.json_text import distinct

texts = st.text(alphabet=st.sampled_from('ab"\\/{}[],:\n\u00e9\u20ac\U0001f600 '), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-1e9, 1e9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
bodies = st.fixed_dictionaries({"messages": st.lists(values, max_size=4)}) | st.dictionaries(
    texts | st.just("messages"), values, max_size=4
)


async def pieces_of(text: bytes, cuts: Sequence[int] = ()) -> AsyncIterator[bytes]:
    """Yield the text in pieces, cut at these positions."""
    places = sorted({min(cut, len(text)) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        yield text[start:end]


async def read(text: bytes, cuts: Sequence[int] = ()) -> list[Member]:
    """Return all members."""
    return [member async for member in read_members(pieces_of(text, cuts), "messages")]


def rebuilt(members: list[Member]) -> dict[str, Any]:
    """Return the object with these members."""
    found: dict[str, Any] = {member.name: member.value for member in members if not member.item}
    items = [member.value for member in members if member.item]
    return {**found, "messages": items} if items else found


def expected(body: dict[str, Any]) -> list[Member]:
    """Return the members as the standard library reads them."""
    found: list[Member] = []
    for name, value in body.items():
        if name == "messages" and isinstance(value, list):
            found += [Member(name, [], item=False), *[Member(name, item, item=True) for item in value]]
        else:
            found.append(Member(name, value, item=False))
    return found


@given(
    body=bodies,
    cuts=st.lists(st.integers(0, 200), max_size=12),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
async def test_every_object_is_read_unchanged_wherever_it_is_cut(
    body: dict[str, Any], cuts: list[int], ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(body, ensure_ascii=ascii_only, indent=indent).encode()
    assert await read(text, cuts) == expected(body)
    assert await read(b"\xef\xbb\xbf " + text + b"\r\n", range(len(text) + 4)) == expected(body)


@given(body=bodies, place=st.integers(0, 200), change=st.sampled_from([b"", b",", b"}", b"]", b'"', b"\\", b"x", b"{"]))
async def test_what_the_standard_library_refuses_is_refused_and_a_name_that_comes_twice(
    body: dict[str, Any], place: int, change: bytes
) -> None:
    text = json.dumps(body).encode()
    broken = text[:place] + change + text[place + 1 :]
    try:
        whole = json.loads(broken, object_pairs_hook=distinct)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 -- of any message
            await read(broken, [place])
    else:
        if isinstance(whole, dict):
            assert rebuilt(await read(broken)) == whole


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"[]",
        b'"messages"',
        b"{",
        b'{"messages"',
        b'{"messages": [',
        b'{"messages": [1',
        b'{"messages": [1,',
        b'{"messages": [1,]}',
        b'{"messages": [1 2]}',
        b'{"messages": ["a]}',
        b'{"messages": ["a\\"]}',
        b'{"messages": [{"a": 1]]}',
        b'{"messages": []',
        b'{"messages": [],}',
        b'{"messages": []} x',
        b'{"messages": []}{}',
        b'{"messages": [], "messages": []}',
        b'{"messages": [nul]}',
        b"{messages: []}",
        b'{"messages": ["\xff"]}',
        b'{"messages": ["\xc3',
        b'{"messages": [' + b"[" * 65 + b"]" * 65 + b"]}",
        b'{"messages": [' + b"[" * 100_000,
        b'{"messages": [{"a": "\x01"}]}',
        b'{"conversation": "a", "messages": [], "conversation": "b"}',
        b'{"messages": [{"content": "a", "content": "b"}]}',
    ],
    ids=range(28),
)
async def test_a_malformed_text_is_refused_wherever_it_is_malformed(text: bytes) -> None:
    for cuts in ((), range(min(len(text), 200))):
        with pytest.raises(ValueError):  # noqa: PT011 -- of any message
            await read(text, cuts)


@pytest.mark.parametrize(
    "long",
    [
        '"' + "x" * MAX_VALUE_CHARACTERS + '"',
        "[" + "1," * MAX_VALUE_CHARACTERS + "1]",
        "1" * MAX_VALUE_CHARACTERS + "0",
    ],
    ids=["text", "list", "number"],
)
async def test_a_value_that_is_too_long_is_marked_and_not_kept(long: str) -> None:
    text = f'{{"messages": [1, {long}, 2, {long[:-1]}{long[-1]}], "conversation": "c"}}'.encode()
    _, first, one, second, other, last = await read(text, range(0, len(text), 7001))
    assert (first.value, second.value, last.value) == (1, 2, "c")
    assert isinstance(one.value, Oversized)
    assert one.value == other.value
    changed = long.replace("x", "y").replace("1", "3")
    [_, third] = await read(f'{{"messages": [{changed}]}}'.encode())
    assert third.value != one.value


async def test_memory_use_does_not_grow_with_the_request() -> None:
    message = json.dumps({"speaker": "Bea", "content": "\n" * 32_000}).encode()

    async def arriving(count: int) -> AsyncIterator[bytes]:
        yield b'{"messages": ['
        for number in range(count):
            yield message[:30_000]
            yield message[30_000:] + (b"," if number < count - 1 else b"")
        yield b"]}"

    peaks = []
    for count in (5, 50):
        tracemalloc.start()
        read_messages = [member.item async for member in read_members(arriving(count), "messages")]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert sum(read_messages) == count
    assert peaks[1] < 1.5 * peaks[0]
