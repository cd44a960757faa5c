"""Filters read what an index finds: the index has each record's values, and answers do not depend on it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from shutil import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.host.sql import SqliteSql
from retain.json_text import Json, JsonObject
from retain.memory.filters import compile_filter
from retain.memory.recall.candidates import Visible
from retain.memory.recall.evidence import Matching
from retain.memory.recall.sources import first_trip, full_text, matching
from retain.memory.recall.sources.full_text import FoundWords
from retain.memory.recall.sources.statistics import visible_from
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.narrowing import POSTED_CHARACTERS, lookups
from retain.memory.records.record import NewRecord
from retain.memory.scope import Scope, View
from retain.memory.semantic import RecallQuery
from retain.ports import Row
from tests.memory.semantic.substrate import AGENT, PERSON, TENANT, Substrate
from tools.paths import ROOT

MOST = 32
_SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "a", "1", "é", "x" * 150])
_VALUES = _SCALARS | st.lists(_SCALARS, max_size=3) | st.dictionaries(st.sampled_from("ab"), _SCALARS, max_size=2)
_METADATA = st.dictionaries(st.sampled_from(["a", "b-c", "ü", "_d"]), _VALUES, max_size=4)


def posted(metadata: JsonObject) -> set[tuple[str, str]]:
    """Return the field and the value of each row that a record with this metadata has, the value as JSON."""
    values: dict[str, list[Json]] = {
        name: list(value) if isinstance(value, list) else [value] for name, value in metadata.items()
    }
    if sum(map(len, values.values())) > MOST:
        return {("", "1")}
    return {
        (name, json.dumps(_as_sql(one)))
        for name, some in values.items()
        for one in some
        if one is not None and not isinstance(one, dict | list)
    }


def _as_sql(value: Json) -> Json:
    if isinstance(value, str):
        return value[:POSTED_CHARACTERS]
    return int(value) if isinstance(value, bool | int) or (isinstance(value, float) and value.is_integer()) else value


async def check_postings(substrate: Substrate) -> None:
    """Check that the index has exactly the values of the records that there are."""
    records = await substrate.rows("SELECT number, metadata FROM memory_records")
    rows = await substrate.rows("SELECT field, value, number FROM memory_postings")
    found = {(row["number"], row["field"], json.dumps(_as_sql(row["value"]))) for row in rows}
    assert found == {(row["number"], *one) for row in records for one in posted(json.loads(row["metadata"]))}


@settings(max_examples=30)
@given(st.lists(_METADATA, min_size=1, max_size=5), st.lists(_METADATA, min_size=1, max_size=3))
async def test_the_index_has_the_values_of_each_record_after_whatever_happens(
    stored: list[JsonObject], edited: list[JsonObject]
) -> None:
    with closing(Substrate()) as substrate:
        memory = substrate.memory()
        ids = [
            (await memory.store(NewRecord(f"Note {number}.", metadata=own), PERSON)).id
            for number, own in enumerate(stored)
        ]
        await check_postings(substrate)
        for record_id, metadata in zip(ids, edited, strict=False):
            await memory.edit(record_id, {"metadata": metadata}, PERSON)
            await check_postings(substrate)
        for record_id in ids:
            await memory.delete(record_id, PERSON)
        assert await substrate.rows("SELECT * FROM memory_postings") == []


@pytest.mark.parametrize("count", [MOST, MOST + 1], ids=["as many values as are indexed", "one more"])
async def test_a_record_with_many_values_is_found_by_each(substrate: Substrate, count: int) -> None:
    await substrate.memory().store(NewRecord("Many values.", metadata={f"f{n}": n for n in range(count)}), PERSON)
    await substrate.memory().store(NewRecord("One value.", metadata={"f3": 3}), PERSON)
    await check_postings(substrate)
    for place in (AGENT, TENANT):
        page, _ = await list_records(substrate.sql, place, Listing({"f3": 3}))
        assert [record.content for record in page] == ["Many values.", "One value."]
    found = await substrate.memory().recall(RecallQuery("value", filter={"f3": 3}))
    assert {hit.record.content for hit in found.hits} == {"Many values.", "One value."}


_FILTERS: list[JsonObject] = [
    {"a": 1}, {"a": True}, {"a": "1"}, {"a": 0.5}, {"metadata.a": "x" * 150}, {"a": "x" * 149}, {"a": {"$eq": "é"}},
    {"b-c": 1, "a": 0}, {"$and": [{"a": 1}, {"b-c": {"$ne": 1}}]}, {"$or": [{"a": 1}, {"a": 2}]}, {"a": None},
    {"a.b": 1}, {"kind": "task"}, {"kind": "fact"}, {"predicate": "is"}, {"object": "tea"}, {"conversation": "talk"},
    {"subject": "ann", "kind": "task"}, {"a": {"$gte": 1}}, {"a": {"$in": [1, 2]}},
    {"a": {"$in": [-3, -2, -1, 0, 1, "a", "é", True]}}, {"a": {"$in": [1, None]}}, {"a": {"$gt": 0, "$lt": 2.5}},
    {"a": {"$lte": -1}}, {"a": {"$lt": "b"}}, {"a": {"$gt": "x" * 120}}, {"a": {"$lt": "x" * 120, "$gte": "a"}},
    {"kind": {"$in": ["task", "instruction"]}}, {"kind": {"$in": ["task", "fact"]}}, {"subject": {"$in": ["ann", 2]}},
    {"$or": [{"a": n} for n in (-3, -2, -1, 0, 1, 2)]}, {"$or": [{"a": {"$gt": 0}}, {"subject": "ann", "kind": "task"}]},
    {"$or": [{"a": 1}, {"a.b": 1}]}, {"$and": [{"a": {"$gte": 0}}, {"$or": [{"b-c": 1}, {"b-c": "a"}]}]},
    {"importance": {"$gt": 0}}, {"a": {"$nin": [1, 2]}},
]  # fmt: skip


@settings(max_examples=25)
@given(st.lists(st.tuples(_METADATA, st.sampled_from(["fact", "task"]), st.booleans()), min_size=1, max_size=8))
async def test_a_list_has_what_it_has_without_indexes(stored: list[tuple[JsonObject, str, bool]]) -> None:
    with closing(Substrate()) as substrate:
        for number, (metadata, kind, is_fact) in enumerate(stored):
            parts = {"subject": "ann", "predicate": "is", "object": "tea"} if is_fact else {}
            new = NewRecord(f"Note {number}.", metadata=metadata, kind=kind, **parts)  # type: ignore[arg-type]
            await substrate.memory().store(new, PERSON)
        for wanted in _FILTERS:
            page, _ = await list_records(substrate.sql, AGENT, Listing(wanted))
            unindexed: JsonObject = {"$or": [wanted, {"confidence": 7}]}
            same, _ = await list_records(substrate.sql, AGENT, Listing(unindexed))
            assert not lookups(unindexed)
            assert page == same, wanted
            found = await met(substrate, wanted)
            assert found.complete
            now, _ = await list_records(substrate.sql, AGENT, Listing(wanted, held_at_ms=substrate.clock()))
            assert [one for one, *_ in found.rows] == [record.id for record in reversed(now)], wanted


async def met(substrate: Substrate, wanted: JsonObject) -> Matching:
    """Return what a recall finds for a filter without words and vectors."""
    condition, values = compile_filter(wanted)
    visible = Visible(visible_from(View(AGENT)), substrate.clock(), None, condition, tuple(values), lookups(wanted))
    [read] = await substrate.sql.batch([matching.matching(visible, "a model")])
    return matching.read_matching(read.rows[0])


@pytest.mark.parametrize(
    ("wanted", "indexed"),
    [({"a": 1}, True), ({"a": {"$in": [1, 2, 3, 4, 5, 6]}}, True), ({"a": {"$gte": 0}}, True), ({"b.c": 1}, False)],
    ids=["one value", "a list", "a range", "without an index"],
)
async def test_what_meets_a_filter_is_cut_at_a_bound(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch, wanted: JsonObject, indexed: bool
) -> None:
    for number in range(6):
        await substrate.memory().store(NewRecord(f"Note {number}.", metadata={"a": 1, "b": {"c": 1}}), PERSON)
    whole = await met(substrate, wanted)
    assert (len(whole.rows), whole.complete) == (6, True)
    monkeypatch.setattr(matching, "MATCHING_LIMIT", 5)
    monkeypatch.setattr(matching, "HELD_LIMIT", 5)
    monkeypatch.setattr(matching, "NEWEST", 3)
    cut = await met(substrate, wanted)
    assert not cut.complete
    assert list(cut.rows) == list(whole.rows[: len(cut.rows)]), "the newest"
    assert bool(lookups(wanted)) is indexed


async def test_a_scope_that_holds_little_is_searched_whole_although_an_index_finds_more(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what an index finds in the tenant, the newest are another agent's."""
    monkeypatch.setattr(matching, "MATCHING_LIMIT", 20)
    monkeypatch.setattr(matching, "HELD_LIMIT", 20)
    await substrate.store("Paul keeps his automobile in a garage", metadata={"channel": "mail"})
    others = [NewRecord(f"The car is parked on level {n}", metadata={"channel": "mail"}) for n in range(150)]
    for start in range(0, len(others), 50):
        await substrate.memory(Scope("acme", "other")).store_all(others[start : start + 50], PERSON)
    result = await substrate.memory().recall(RecallQuery("where is the bicycle", filter={"channel": "mail"}))
    assert ([hit.record.content for hit in result.hits], result.degraded) == (
        ["Paul keeps his automobile in a garage"],
        (),
    )


async def test_pages_of_a_filtered_list_follow_each_other(substrate: Substrate) -> None:
    for number in range(9):
        await substrate.memory().store(NewRecord(f"Note {number}.", metadata={"odd": number % 2}), PERSON)
    found, cursor = await list_records(substrate.sql, AGENT, Listing({"odd": 0}, limit=2))
    while cursor is not None:
        page, cursor = await list_records(substrate.sql, AGENT, Listing({"odd": 0}, limit=2, cursor=cursor))
        found += page
    assert [record.content for record in found] == [f"Note {number}." for number in (0, 2, 4, 6, 8)]


async def test_full_text_finds_an_old_record_that_meets_a_filter_among_newer_ones(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, patient = substrate.memory(), {"patient": 151}
    stored = await memory.store(NewRecord("The allergy of this patient.", metadata=patient), PERSON)
    others = [NewRecord(f"The allergy is number {n}.", metadata={"patient": n % 7}) for n in range(260)]
    for start in range(0, len(others), 65):
        await memory.store_all(others[start : start + 65], PERSON)
    found: list[FoundWords] = []

    def noted(row: Row) -> FoundWords:
        found.append(full_text.found_words(row))
        return found[-1]

    monkeypatch.setattr(first_trip, "found_words", noted)
    [hit] = (await memory.recall(RecallQuery("allergy", filter=patient))).hits
    assert hit.record.id == stored.id
    assert [one.counts for one in found] == [[(stored.id, 5, [1])]]


def test_the_records_that_there_are_get_their_values_by_the_migration(tmp_path: Path) -> None:
    files = sorted((ROOT / "migrations").glob("*.sql"))
    [last] = [path for path in files if path.name.startswith("0040")]
    for path in files[: files.index(last)]:
        copy(path, tmp_path)
    with closing(SqliteSql.open()) as sql:
        sql.migrate(tmp_path)
        many = {f"f{n}": n for n in range(MOST + 1)}
        for number, metadata in enumerate(({}, {"a": "x", "tags": ["b", 2]}, many)):
            sql._connection.execute(
                "INSERT INTO memory_records (number, id, tenant_id, scope_id, kind, content, metadata, confidence,"
                " importance, valid_from_ms, recorded_at_ms, updated_at_ms, edited, source, content_hash)"
                " VALUES (?1, ?1, 'acme', 'tenant', 'fact', 'x', ?2, 1, 1, 0, 0, 0, 0, '{}', ?1)",
                (number, json.dumps(metadata)),
            )
        sql._connection.commit()
        copy(last, tmp_path)
        sql.migrate(tmp_path)
        rows = sql._connection.execute("SELECT number, field, value FROM memory_postings ORDER BY 1, 2, 3").fetchall()
    assert [tuple(row) for row in rows] == [(1, "a", "x"), (1, "tags", 2), (1, "tags", "b"), (2, "", 1)]


@pytest.mark.parametrize(
    "metadata",
    [{"tags": ["a", "a"]}, {"tags": [1, True, 1.0]}, {"tags": ["x" * 100, "x" * 101]}],
    ids=["texts", "numbers", "cut"],
)
async def test_a_value_that_a_list_has_twice_is_indexed_once(substrate: Substrate, metadata: JsonObject) -> None:
    memory = substrate.memory()
    stored = await memory.store(NewRecord("Twice.", metadata=metadata), PERSON)
    other = await memory.store(NewRecord("Without.", metadata={"tags": ["b"]}), PERSON)
    await memory.edit(other.id, {"metadata": metadata}, PERSON)
    await memory.edit(stored.id, {"importance": 0.75}, PERSON)
    assert len(await substrate.rows("SELECT * FROM memory_postings WHERE field = 'tags'")) == 2
