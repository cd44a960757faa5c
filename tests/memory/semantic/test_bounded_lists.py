"""Lists with a filter look at a bounded number of records for a page, and their pages have all that meet it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from retain.json_text import Json
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import NewRecord
from retain.memory.scope import Scope
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, TENANT, Substrate

COUNT = 60
OTHER = Scope("acme", "writer")
FILTERS: dict[str, Mapping[str, object]] = {
    "one of two values": {"place": {"$in": ["p-1", "p-3"]}},
    "either of two names": {"$or": [{"place": "p-1"}, {"colour": "c-2"}]},
    "a value of a list": {"labels": {"$in": ["l-1", "l-2"]}},
    "six names": {"$or": [{f"name-{number}": 1} for number in range(5)] + [{"place": "p-2"}]},
    "a range": {"size": {"$gte": 10, "$lt": 20}},
    "no index": {"confidence": {"$lt": 0.5}},
    "another value": {"place": {"$ne": "p-1"}},
    "nothing": {"confidence": {"$lt": 0.01}},
    "an index, and what it does not find": {"place": {"$in": ["p-1", "p-3"]}, "confidence": {"$lt": 0.01}},
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at ten records for a page, so that sixty are several pages."""
    monkeypatch.setattr("retain.memory.records.listing.EXAMINED", 10)


async def stored(substrate: Substrate) -> None:
    """Store records with places, colours, sizes and labels, of two agents in turn."""
    for number in range(COUNT):
        metadata: dict[str, Json] = {
            "place": f"p-{number % 7}",
            "colour": f"c-{number % 5}",
            "size": number,
            "labels": [f"l-{number % 4}", f"l-{number % 3}"],
        }
        new = NewRecord(f"Thing {number}", metadata=metadata, confidence=0.3 if number % 9 == 0 else 1.0)
        await substrate.memory(OTHER if number % 2 else AGENT).store(new, AGENT_SOURCE)


def meets(name: str, number: int) -> bool:
    """Return whether a thing meets the filter of a name."""
    return {
        "one of two values": number % 7 in (1, 3),
        "either of two names": number % 7 == 1 or number % 5 == 2,
        "a value of a list": bool({number % 4, number % 3} & {1, 2}),
        "six names": number % 7 == 2,
        "a range": 10 <= number < 20,
        "no index": number % 9 == 0,
        "another value": number % 7 != 1,
        "nothing": False,
        "an index, and what it does not find": False,
    }[name]


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("place", [TENANT, AGENT, OTHER], ids=["tenant", "agent", "other agent"])
async def test_the_pages_have_each_record_that_meets_the_filter_once_in_order(
    substrate: Substrate, place: Scope, name: str
) -> None:
    await stored(substrate)
    for limit in (1, 4, 50):
        found: list[str] = []
        cursor, pages = None, 0
        while cursor is not None or pages == 0:
            page, cursor = await list_records(substrate.d1, place, Listing(FILTERS[name], cursor=cursor, limit=limit))
            assert len(page) <= limit
            found += [record.content for record in page]
            pages += 1
            assert pages <= COUNT + 1
        mine = [n for n in range(COUNT) if place == TENANT or (n % 2 == 1) == (place == OTHER)]
        assert found == [f"Thing {number}" for number in mine if meets(name, number)]


async def test_a_page_ends_where_it_has_looked_enough(substrate: Substrate) -> None:
    await stored(substrate)
    page, cursor = await list_records(substrate.d1, TENANT, Listing(FILTERS["nothing"], limit=1))
    assert (page, cursor is not None) == ([], True), "fourteen records were looked at, and sixty are there"


async def test_a_page_with_something_looks_no_further(substrate: Substrate) -> None:
    await stored(substrate)
    page, cursor = await list_records(substrate.d1, TENANT, Listing(FILTERS["no index"], limit=3))
    assert [record.content for record in page] == ["Thing 0", "Thing 9"], "of the first twelve"
    assert cursor is not None


async def test_a_record_with_more_values_than_are_indexed_is_in_the_list(substrate: Substrate) -> None:
    await stored(substrate)
    many = {f"n-{number}": number for number in range(40)} | {"place": "p-3"}
    await substrate.store("Thing with many values", metadata=many)
    found: list[str] = []
    cursor, first = None, True
    while cursor is not None or first:
        page, cursor = await list_records(
            substrate.d1, TENANT, Listing(FILTERS["one of two values"], cursor=cursor, limit=50)
        )
        found, first = [*found, *(record.content for record in page)], False
    assert found[-1] == "Thing with many values"
    assert len(found) == 1 + sum(meets("one of two values", number) for number in range(COUNT))
