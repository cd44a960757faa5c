"""SqliteKv: the contract, and expiry by a clock that tests can move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput
from retain.host.clock import ManualClock
from retain.host.kv import SqliteKv
from tests.ports import Case, cases
from tests.ports import kv as suite


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def kv(clock: ManualClock) -> Iterator[SqliteKv]:
    store = SqliteKv.open(clock)
    yield store
    store.close()


@pytest.mark.parametrize("case", cases(suite).values(), ids=cases(suite).keys())
async def test_contract(case: Case, kv: SqliteKv) -> None:
    await case(kv)
    await case(kv)  # a case may be repeated on the same store


async def test_a_key_expires_at_the_end_of_its_time_to_live(kv: SqliteKv, clock: ManualClock) -> None:
    await kv.put("brief", "value", ttl_s=60)
    await kv.put("lasting", "value")
    clock.advance(59_999)
    assert await kv.get("brief") == "value"
    assert (await kv.list("")).keys == ["brief", "lasting"]
    clock.advance(1)
    assert await kv.get("brief") is None
    assert (await kv.list("")).keys == ["lasting"]


async def test_a_new_write_replaces_the_time_to_live(kv: SqliteKv, clock: ManualClock) -> None:
    await kv.put("renewed", "value", ttl_s=60)
    await kv.put("kept", "value", ttl_s=60)
    clock.advance(30_000)
    await kv.put("renewed", "value", ttl_s=60)
    await kv.put("kept", "value")
    clock.advance(59_000)
    assert await kv.get("renewed") == "value"
    clock.advance(1_000_000)
    assert await kv.get("renewed") is None
    assert await kv.get("kept") == "value"


async def test_an_expired_key_does_not_count_in_a_page(kv: SqliteKv, clock: ManualClock) -> None:
    await kv.put("a", "value", ttl_s=60)
    for key in ("b", "c"):
        await kv.put(key, "value")
    clock.advance(60_000)
    page = await kv.list("", limit=2)
    assert (page.keys, page.cursor) == (["b", "c"], None)


@pytest.mark.parametrize("cursor", ["a", "é", "=", "YQ"], ids=repr)
async def test_a_cursor_that_no_listing_returned_is_refused(kv: SqliteKv, cursor: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        await kv.list("", cursor=cursor)
    assert raised.value.code == "invalid_cursor"


async def test_a_file_keeps_keys_and_their_expiry(tmp_path: Path, clock: ManualClock) -> None:
    first = SqliteKv.open(clock, tmp_path / "kv.sqlite")
    await first.put("brief", "value", ttl_s=60)
    first.close()
    second = SqliteKv.open(clock, tmp_path / "kv.sqlite")
    assert await second.get("brief") == "value"
    clock.advance(60_000)
    assert await second.get("brief") is None
    second.close()


@given(
    keys=st.sets(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(lambda k: k[0] != ".")
    ),
    prefix=st.text("ab\0\x7fé", max_size=2),
    limit=st.integers(1, 5),
)
async def test_a_listing_is_the_sorted_keys_of_the_prefix(keys: set[str], prefix: str, limit: int) -> None:
    kv = SqliteKv.open(ManualClock())
    for key in keys:
        await kv.put(key, "value")
    page = await kv.list(prefix, limit=limit)
    seen = list(page.keys)
    while page.cursor is not None:
        page = await kv.list(prefix, cursor=page.cursor, limit=limit)
        seen += page.keys
    kv.close()
    assert seen == sorted((key for key in keys if key.startswith(prefix)), key=str.encode)
