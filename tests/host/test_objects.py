"""SqliteObjects: the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from retain.errors import InvalidInput
from retain.host.objects import SqliteObjects
from tests.ports import Case, cases
from tests.ports import objects as suite


@pytest.fixture
def objects() -> Iterator[SqliteObjects]:
    store = SqliteObjects.open()
    yield store
    store.close()


@pytest.mark.parametrize("case", cases(suite).values(), ids=cases(suite).keys())
async def test_contract(case: Case, objects: SqliteObjects) -> None:
    await case(objects)
    await case(objects)  # a case may be repeated on the same store


async def test_a_cursor_that_no_listing_returned_is_refused(objects: SqliteObjects) -> None:
    with pytest.raises(InvalidInput) as raised:
        await objects.list("", cursor="é")
    assert raised.value.code == "invalid_cursor"


async def test_a_file_keeps_what_was_written(tmp_path: Path) -> None:
    first = SqliteObjects.open(tmp_path / "objects.sqlite")
    await first.put("key", b"\0\xff")
    first.close()
    second = SqliteObjects.open(tmp_path / "objects.sqlite")
    assert await second.get("key") == b"\0\xff"
    second.close()
