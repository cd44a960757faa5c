"""Exports of other products become memories with their own times, once, and what cannot is named before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.cli.moving import langgraph, mem0, zep
from retain.cli.moving.memory import ForeignMemory, ImportTarget, lines
from retain.errors import InvalidInput
from retain.lifecycle.importing import Imported, import_lines
from retain.memory.records.derived import spans_of_record
from retain.memory.records.limits import MAX_METADATA_BYTES, MAX_PART_BYTES
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import Record
from retain.memory.scope import Scope
from retain.memory.semantic import RecallQuery
from tests.lifecycle.world import World, living

HERE = Path(__file__).parent
Reader = Callable[[str], Iterator[ForeignMemory]]
READERS: dict[str, tuple[Reader, str]] = {
    "mem0": (mem0.memories, "mem0.json"),
    "zep": (zep.memories, "zep.json"),
    "langgraph": (partial(langgraph.memories, user_at=-1), "langgraph.jsonl"),
}
MEM0 = {"id": "m", "memory": "Likes tea.", "created_at": "2022-01-01T00:00:00Z"}


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


def _to(product: str = "mem0", tenant: str = "acme", **more: Any) -> ImportTarget:
    return ImportTarget(tenant, product, more.get("agent_type"), more.get("user_id"), 1_600_000_000_000)


def _text(product: str) -> str:
    return (HERE / READERS[product][1]).read_text()


async def _move(world: World, product: str, text: str | None = None, **more: Any) -> Imported:
    read = READERS[product][0](_text(product) if text is None else text)
    to = _to(product, **more)
    return await import_lines(world.stores(), to.tenant_id, "\n".join(lines(read, to)))


async def _records(world: World, tenant: str = "acme") -> list[dict[str, Any]]:
    return [dict(row) for row in (await world.sql.run("SELECT * FROM memory_records WHERE tenant_id = ?", tenant)).rows]


@pytest.mark.parametrize("product", list(READERS))
async def test_an_export_is_imported_once_under_the_same_ids_in_each_tenant(world: World, product: str) -> None:
    user = {} if product != "zep" else {"user_id": "emily"}
    first = await _move(world, product, **user)
    assert (first.created, first.duplicates) == (2, 0)
    again = await _move(world, product, **user)
    assert (again.created, again.unchanged) == (0, 2)
    assert (await _move(world, product, tenant="other", **user)).created == 2
    known, other = [{row["id"] for row in await _records(world, tenant)} for tenant in ("acme", "other")]
    assert not known & other


async def test_a_memory_of_mem0_keeps_its_user_its_time_and_what_is_known_of_it(world: World) -> None:
    await _move(world, "mem0")
    memory = world.memory(user_id="alex")
    hits = await memory.search(RecallQuery("What is Alex allergic to?"))
    assert hits[0].record.content == "Is allergic to peanuts"
    assert hits[0].record.metadata == {"agent_id": "helper", "categories": ["health"]}
    assert hits[0].record.recorded_at_ms == hits[0].record.valid_from_ms == 1_659_348_000_000
    assert await world.memory(user_id="bea").search(RecallQuery("What is Alex allergic to?")) == []


async def test_a_fact_of_zep_holds_for_as_long_as_it_did_there(world: World) -> None:
    await _move(world, "zep", user_id="emily")
    found = {row["object"]: row for row in await _records(world)}
    assert (found["Paris"]["valid_from_ms"], found["Paris"]["valid_to_ms"]) == (1_609_459_200_000, 1_643_673_600_000)
    assert (found["Lyon"]["predicate"], found["Lyon"]["valid_to_ms"]) == ("lives_in:lyon", None)


async def test_facts_of_one_relation_hold_side_by_side_as_in_the_graph(world: World) -> None:
    edges = [
        {"uuid": f"e{number}", "fact": f"Ann knows {what}.", "name": "KNOWS", "source_node_name": "Ann",
         "target_node_name": what, "created_at": "2022-01-01T00:00:00Z"}
        for number, what in enumerate(("C", "C++", "C#"))
    ]  # fmt: skip
    await _move(world, "zep", json.dumps(edges))
    assert [row["valid_to_ms"] for row in await _records(world)] == [None] * 3


async def test_the_texts_of_langgraph_are_found_wherever_a_value_has_them(world: World) -> None:
    item = {"namespace": ["docs"], "key": "raw", "value": {"a": 1, "b": ["x"]}, "created_at": "2022-01-01T00:00:00Z"}
    await _move(world, "langgraph", f"{_text('langgraph')}{json.dumps({**item, 'namespace': ['docs', 'lance']})}\n")
    found = {row["content"]: json.loads(row["metadata"]) for row in await _records(world)}
    assert found == {
        "I like pizza": {"rule": "x", "namespace": ["memories", "lance"], "key": "a1"},
        "Lance speaks French.": {"kind": "Memory", "namespace": ["memories", "lance"], "key": "a2"},
        '{"a": 1, "b": ["x"]}': {"namespace": ["docs", "lance"], "key": "raw"},
    }


def _problems(product: str, text: str) -> str:
    with pytest.raises(InvalidInput) as refused:
        list(lines(READERS[product][0](text), _to(product)))
    assert refused.value.code == "invalid_export"
    return refused.value.message


@pytest.mark.parametrize(
    ("product", "text", "problem"),
    [
        pytest.param("mem0", "nothing", "neither JSON nor JSON lines: line 1", id="a text"),
        pytest.param("mem0", '{"results": {"a": 1}}', "no list of entries", id="no list"),
        pytest.param("mem0", "[1]", "entry 1: it is not a JSON object", id="no object"),
        pytest.param("mem0", '[{"id": "m", "memory": " "}]', "entry 1: a memory of mem0 has", id="an empty memory"),
        pytest.param("mem0", json.dumps([{**MEM0, "created_at": "soon"}]), "entry 1: its created_at", id="no time"),
        pytest.param("mem0", json.dumps([{**MEM0, "metadata": 3}]), "entry 1: its metadata", id="no metadata"),
        pytest.param("mem0", json.dumps([MEM0, {**MEM0, "user_id": "a b"}]), "entry 2: not a valid user", id="a user"),
        pytest.param(
            "mem0",
            json.dumps([{**MEM0, "metadata": {"a": "x" * MAX_METADATA_BYTES}}]),
            "entry 1: the metadata is too large",
            id="large metadata",
        ),
        pytest.param("zep", '[{"uuid": "e"}]', "entry 1: an edge of Zep", id="an edge without a fact"),
        pytest.param("langgraph", '{"namespace": "x", "key": "k", "value": {}}', "entry 1: an item", id="no namespace"),
        pytest.param(
            "langgraph", '{"namespace": [], "key": "k", "value": {}}', "has no part -1", id="a namespace without a user"
        ),
    ],
)
def test_what_cannot_be_stored_is_named(product: str, text: str, problem: str) -> None:
    assert problem in _problems(product, text)


def test_all_that_cannot_be_stored_is_named_at_once_and_a_long_list_is_cut() -> None:
    entries = [{**MEM0, "id": str(number), "user_id": "a b"} for number in range(30)]
    named = _problems("mem0", json.dumps(entries)).splitlines()
    assert (len(named), named[0][:8], named[-1]) == (21, "entry 1:", "and 10 more")


async def test_equal_contents_of_a_scope_are_one_memory(world: World) -> None:
    twice = [{**MEM0, "id": "a"}, {**MEM0, "id": "b"}, {**MEM0, "id": "c", "user_id": "ann"}]
    assert (await _move(world, "mem0", json.dumps(twice))).created == 2


async def test_a_name_that_is_too_long_for_a_part_leaves_the_fact_as_text(world: World) -> None:
    edge = {
        "uuid": "e",
        "fact": "A fact.",
        "name": "IS",
        "source_node_name": "x" * (MAX_PART_BYTES + 1),
        "target_node_name": "y",
    }
    await _move(world, "zep", json.dumps([edge]))
    [row] = await _records(world)
    assert (row["subject"], row["predicate"], row["object"], row["recorded_at_ms"]) == (
        None,
        None,
        None,
        1_600_000_000_000,
    )


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
_MEMBERS = st.sampled_from(
    [
        "id",
        "memory",
        "metadata",
        "user_id",
        "created_at",
        "uuid",
        "fact",
        "name",
        "namespace",
        "key",
        "value",
        "valid_at",
    ]
)


@given(st.sampled_from(list(READERS)), st.lists(st.dictionaries(_MEMBERS, _JSON, max_size=6), max_size=3))
def test_any_json_is_read_or_refused_with_a_reason(product: str, entries: list[dict[str, Any]]) -> None:
    try:
        made = list(lines(READERS[product][0](json.dumps(entries)), _to(product)))
    except InvalidInput as refused:
        assert refused.code == "invalid_export"
    else:
        assert all(json.loads(line)["tenant"] == "acme" for line in made)


async def test_an_entry_that_changed_since_it_was_imported_stays_as_it_is(world: World) -> None:
    await _move(world, "mem0", json.dumps([MEM0]))
    more = {**MEM0, "id": "n", "memory": "Likes cake."}
    done = await _move(world, "mem0", json.dumps([{**MEM0, "memory": "Likes coffee."}, more]))
    assert (done.created, done.changed, done.unchanged) == (1, 0, 1)
    assert {row["content"] for row in await _records(world)} == {"Likes tea.", "Likes cake."}


WORKS = {
    "fact": "Ann works at Acme.", "name": "WORKS_AT", "source_node_name": "Ann", "target_node_name": "Acme",
    "created_at": "2022-01-01T00:00:00Z",
}  # fmt: skip
DAY_MS = 86_400_000


@pytest.mark.parametrize("named", [True, False], ids=["a fact", "text alone"])
@pytest.mark.parametrize(
    ("spans", "valid"),
    [
        ([(1, 3), (5, None)], [(1, 3), (5, None)]),
        ([(5, None), (1, 3)], [(1, 3), (5, None)]),
        ([(1, 3), (2, None)], [(1, None)]),
        ([(1, 3), (3, 5), (7, 9)], [(1, 5), (7, 9)]),
        ([(1, 9), (2, 3)], [(1, 9)]),
        ([(1, 1), (2, 3)], [(2, 3)]),
        ([(1, 1), (1, 1)], []),
        ([(day, day + 1) for day in range(1, 81, 2)], [(day, day + 1) for day in range(17, 81, 2)]),
    ],
    ids=str,
)
async def test_a_fact_of_several_edges_holds_when_any_of_them_does(
    world: World, named: bool, spans: list[tuple[int, int | None]], valid: list[tuple[int, int | None]]
) -> None:
    def at(day: int | None) -> str | None:
        return None if day is None else datetime.fromtimestamp(day * DAY_MS / 1000, UTC).isoformat()

    edges = [
        {
            **WORKS,
            "uuid": str(number),
            "valid_at": at(begin),
            "invalid_at": at(end),
            **({} if named else {"name": None}),
        }
        for number, (begin, end) in enumerate(spans)
    ]
    assert (await _move(world, "zep", json.dumps(edges))).created == 1
    assert (await _move(world, "zep", json.dumps(edges))).unchanged == 1
    [record] = await _listed(world)
    days = [(begin // DAY_MS, None if end is None else end // DAY_MS) for begin, end in spans_of_record(record)]
    assert days == valid
    assert not await world.drift()


async def _listed(world: World) -> list[Record]:
    return list((await list_records(world.sql, Scope("acme"), Listing()))[0])


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("1965-03-02T00:00:00Z", 0),
        ("0001-01-01T00:00:00Z", 1_600_000_000_000),
        ("0001-01-01T00:00:00+05:00", 1_600_000_000_000),
        ("2022-01-01T00:00:00Z", 1_640_995_200_000),
    ],
)
async def test_a_time_before_1970_is_the_earliest_and_the_year_1_means_none(
    world: World, time: str, expected: int
) -> None:
    edge = {**WORKS, "uuid": "a", "valid_at": time, "created_at": time, "expired_at": "0001-01-01T00:00:00Z"}
    await _move(world, "zep", json.dumps([edge]))
    [row] = await _records(world)
    assert (row["recorded_at_ms"], row["valid_from_ms"], row["valid_to_ms"]) == (expected, expected, None)


async def test_a_value_of_langgraph_keeps_its_own_key_and_namespace(world: World) -> None:
    value = {"content": "Likes tea.", "key": "K-17", "namespace": "inner"}
    item = {"namespace": ["docs"], "key": "k", "value": value, "created_at": "2022-01-01T00:00:00Z"}
    await _move(world, "langgraph", json.dumps(item))
    [row] = await _records(world)
    expected = {"key": "K-17", "namespace": "inner", "item_key": "k", "item_namespace": ["docs"]}
    assert json.loads(row["metadata"]) == expected
