"""Export and import: what is exported is imported once, completely, and ranked as before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from retain.errors import InvalidInput, LimitExceeded, Unavailable
from retain.lifecycle.export import export_page
from retain.lifecycle.importing import Imported, import_lines
from retain.lifecycle.verification import verify_page
from retain.memory.records.limits import MAX_CONTENT_BYTES, MAX_METADATA_BYTES
from retain.memory.records.record import NewRecord, Utterance
from retain.memory.records.supersession import COMPARED
from retain.memory.scope import user_scope_id
from tests.lifecycle.world import AGENT, PERSON, World, living
from tests.support.faults import Crash, Fault


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


QUERIES = ("When was the refund of Ann?", "weekly report", "who likes tea", "SO-4411", "my lamp")


async def fill(world: World, tenant: str = "acme") -> dict[str, str]:
    ids = {
        "lamp": await world.store("Ann's lamp SO-4411 was refunded.", tenant=tenant, metadata={"order": "SO-4411"}),
        "tea": await world.store("Bob likes tea.", tenant=tenant, subject="bob", predicate="likes", object="tea"),
        "agent": await world.store("Refunds above 50 need a person.", tenant=tenant, agent_type="refund_decision"),
        "task": await world.store("Write the weekly report.", tenant=tenant, kind="task", expires_at_ms=2 * 10**12),
        "house": (await world.memory(tenant, None, house="support").store(NewRecord("Bob likes tea."), AGENT)).id,
    }
    news = [
        NewRecord(text, utterance=Utterance("chat-1", number, who, 1_699_000_000_000 + number))
        for number, (who, text) in enumerate(
            [("Ann", "My lamp broke."), ("Bob", "Which one?"), ("Ann", "The “green” one\u2028.")]
        )
    ]
    for number, stored in enumerate(await world.store_all(news, tenant=tenant)):
        ids[f"turn {number}"] = stored.id
    memory = world.memory(tenant)
    world.clock.advance(1000)
    await memory.edit(ids["lamp"], {"content": "Ann's lamp SO-4411 was refunded in full.", "importance": 0.9}, PERSON)
    ids["coffee"] = await world.store(
        "Bob likes coffee.", tenant=tenant, subject="bob", predicate="likes", object="coffee"
    )
    world.clock.advance(1000)
    await memory.invalidate(ids["task"], world.clock(), AGENT)
    await memory.restore(ids["task"], AGENT)
    ids["gone"] = await world.store("Forget this.", tenant=tenant)
    await memory.delete(ids["gone"], PERSON)
    await world.rest()  # a record that was changed in the last minutes is ranked by an estimate of its new vector
    return ids


async def pages(world: World, tenant: str = "acme") -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await export_page(world.stores(), tenant, cursor)
        found.append(page.text)
        cursor = page.cursor
        if cursor is None:
            return found


async def take(world: World, texts: list[str], tenant: str) -> list[Imported]:
    return [await import_lines(world.stores(), tenant, text) for text in texts]


async def ranked(world: World, tenant: str, query: str) -> list[tuple[str, float]]:
    return [(hit.record.content, hit.score) for hit in await world.recall(query, tenant=tenant)]


async def test_recall_is_equal_after_an_import_into_an_empty_tenant(world: World) -> None:
    await fill(world)
    await take(world, await pages(world), "other")
    for query in QUERIES:
        assert await ranked(world, "other", query) == await ranked(world, "acme", query)
    await world.rest()
    for query in QUERIES:
        assert await ranked(world, "other", query) == await ranked(world, "acme", query)


async def test_a_restore_elsewhere_keeps_ids_history_and_past_knowledge(world: World) -> None:
    ids = await fill(world)
    exported = await pages(world)
    with living() as elsewhere:
        elsewhere.clock.set(world.clock())
        await take(elsewhere, exported, "acme")
        for record_id in set(ids.values()) - {ids["gone"]}:
            record, events = await world.memory().get(record_id)
            copied, copies = await elsewhere.memory().get(record_id)
            assert copied.to_json() == record.to_json() | {"source": {**record.source, "imported_from": "acme"}}
            assert [(e.event_id, e.kind, e.at_ms, e.source["origin"]) for e in copies] == [
                (e.event_id, e.kind, e.at_ms, e.source["origin"]) for e in events
            ]
        began = (await world.memory().get(ids["lamp"]))[0].recorded_at_ms
        lamps = []
        for then in (began + 500, began + 1500):
            known = await _as_of(world, then)
            assert await _as_of(elsewhere, then) == known
            lamps.append(next(content for content, _ in known if "lamp SO" in content))
        assert lamps == ["Ann's lamp SO-4411 was refunded.", "Ann's lamp SO-4411 was refunded in full."]
        assert [
            e["kind"] for e in elsewhere.sql_now("SELECT * FROM memory_events WHERE record_id = ?", ids["gone"])
        ] == [
            "stored",
            "deleted",
        ]
        assert (await elsewhere.stores().history().verify("acme")).problem is None


async def test_facts_that_became_true_again_are_restored_elsewhere(world: World) -> None:
    fact: dict[str, Any] = {"subject": "bob", "predicate": "lives_in"}
    for city in ("Berlin", "Munich", "Berlin"):
        await world.store(f"Bob lives in {city}.", **fact)
        world.clock.advance(1000)
    await world.store("The lift is broken.", expires_at_ms=world.clock() + 500)
    world.clock.advance(1000)
    await world.store("The lift is broken.", expires_at_ms=world.clock() + 10**9)
    turn = NewRecord("Hello.", utterance=Utterance("chat-1", -1, "Ann", 1_699_000_000_000))
    await world.store_all([turn])
    exported = await pages(world)
    with living() as elsewhere:
        elsewhere.clock.set(world.clock())
        await take(elsewhere, exported, "acme")
        for query in ("Where does Bob live?", "lift", "Hello"):
            assert await ranked(elsewhere, "acme", query) == await ranked(world, "acme", query)
            assert await ranked(world, "acme", query) != []


@pytest.mark.parametrize("fact", [{}, {"subject": "lift", "predicate": "is"}])
async def test_a_record_closed_after_its_expiry_shows_when_and_is_restored_elsewhere(
    world: World, fact: dict[str, Any]
) -> None:
    expiry = world.clock() + 500
    record_id = await world.store("The lift is broken.", expires_at_ms=expiry, **fact)
    closed = await world.memory("acme").invalidate(record_id, expiry + 1000, PERSON)
    assert (closed.valid_to_ms, closed.expires_at_ms) == (expiry + 1000, expiry)
    exported = await pages(world)
    with living() as elsewhere:
        elsewhere.clock.set(world.clock())
        await take(elsewhere, exported, "acme")
        restored, _ = await elsewhere.memory("acme").get(record_id)
        assert replace(restored, source=closed.source) == closed


async def _as_of(world: World, at_ms: int) -> list[tuple[str, float]]:
    return [(hit.record.content, hit.score) for hit in await world.recall("lamp SO-4411 tea", as_of_ms=at_ms)]


async def test_an_import_twice_changes_nothing(world: World) -> None:
    await fill(world)
    exported = await pages(world)
    first = await take(world, exported, "other")
    before = world.everything()
    again = await take(world, exported, "other")
    assert sum(done.created for done in first) == 10
    assert [(done.created, done.changed, done.events, done.scopes) for done in again] == [(0, 0, 0, 0)] * len(exported)
    assert world.everything() == before


async def test_an_import_into_the_tenant_itself_changes_nothing(world: World) -> None:
    await fill(world)
    before = world.everything()
    await take(world, await pages(world), "acme")
    assert world.everything() == before


async def test_a_later_export_adds_what_happened_since(world: World) -> None:
    ids = await fill(world)
    await take(world, await pages(world), "other")
    await world.memory().edit(ids["tea"], {"content": "Bob likes green tea."}, PERSON)
    await world.memory().delete(ids["task"], PERSON)
    done = await take(world, await pages(world), "other")
    assert (sum(one.created for one in done), sum(one.changed for one in done)) == (0, 2)
    for query in QUERIES:
        assert await ranked(world, "other", query) == await ranked(world, "acme", query)
    await world.rest()
    assert _vector_counts(world, "other") == _vector_counts(world, "acme")


def _vector_counts(world: World, tenant: str) -> list[str]:
    return sorted(str(v["created_at"]) for v in world.vectors().values() if v["tenant_id"] == tenant)


async def test_edits_on_both_sides_are_merged_by_time(world: World) -> None:
    tea = await world.store("Bob likes tea.")
    await take(world, await pages(world), "other")
    [(other, _)] = [(hit.record.id, hit.score) for hit in await world.recall("tea", tenant="other")]
    await world.memory("other").edit(other, {"importance": 0.9}, AGENT)
    await world.memory().edit(tea, {"confidence": 0.2}, AGENT)
    await take(world, await pages(world), "other")
    record, events = await world.memory("other").get(other)
    assert (record.importance, record.confidence, len(events)) == (0.9, 0.2, 3)


async def test_content_that_the_scope_already_has_is_left_out_as_a_duplicate(world: World) -> None:
    await fill(world)
    exported = await pages(world)
    mine = await world.store("Bob likes coffee.", tenant="other")
    done = await take(world, exported, "other")
    assert sum(one.duplicates for one in done) == 1
    hits = await world.recall("Bob likes coffee", tenant="other")
    assert [hit.record.id for hit in hits if hit.record.content == "Bob likes coffee."] == [mine]


async def test_of_two_facts_that_an_import_brings_together_one_is_valid(world: World) -> None:
    city: dict[str, Any] = {"subject": "ann", "predicate": "lives_in"}
    await world.store("Ann lives in Berlin.", **city)
    exported = await pages(world)
    world.clock.advance(1_000)
    await world.store("Ann lives in Lyon.", tenant="other", **city)
    await take(world, exported, "other")
    hits = await world.recall("Where does Ann live?", tenant="other")
    assert [hit.record.content for hit in hits] == ["Ann lives in Lyon."]
    rows = world.sql_now("SELECT id, valid_to_ms, superseded_by FROM memory_records WHERE tenant_id = 'other'")
    vectors = world.vectors()
    for row in rows:
        metadata = vectors[f"{row['id']}#0"]
        assert (metadata.get("valid_to"), metadata.get("superseded_by")) == (row["valid_to_ms"], row["superseded_by"])
    assert sorted(row["superseded_by"] is None for row in rows) == [False, True]
    events = world.sql_now("SELECT * FROM memory_events WHERE tenant_id = 'other'")
    await take(world, exported, "other")
    assert world.sql_now("SELECT * FROM memory_events WHERE tenant_id = 'other'") == events


async def test_an_import_makes_as_many_calls_of_d1_for_many_facts_as_for_one(world: World) -> None:
    async def calls_of(tenant: str, facts: int) -> int:
        news = [
            NewRecord(f"Guest {number} likes tea.", subject=f"guest {number}", predicate="likes", object="tea")
            for number in range(facts)
        ]
        await world.store_all(news, tenant=tenant)
        before = len(world.faults.trace)
        await take(world, await pages(world, tenant), f"into-{tenant}")
        reached = [point for _, point in world.faults.trace[before:]]
        return sum(point in ("sql.run", "sql.batch") for point in reached)

    assert await calls_of("many", COMPARED) == await calls_of("one", 1)


async def test_a_record_with_more_events_than_fit_on_a_page_is_exported_in_parts(world: World) -> None:
    long = await world.store("0 " + "word " * 6000)
    for number in range(1, 20):
        await world.memory().edit(long, {"content": f"{number} " + "word " * 6000}, PERSON)
    await world.store("Another one.")
    exported = await pages(world)
    assert all(len(text.encode()) < 1_048_576 for text in exported)
    assert sum(f'"id":"{long}"' in text for text in exported) > 1
    await take(world, exported, "other")
    assert await ranked(world, "other", "19 word") == await ranked(world, "acme", "19 word")
    await take(world, exported, "other")
    assert len(world.sql_now("SELECT * FROM memory_events WHERE tenant_id = 'other'")) == 21


async def test_pages_end_at_the_limit_of_lines_and_miss_nothing(world: World) -> None:
    for start in range(0, 1100, 100):
        await world.store_all([NewRecord(f"fact number {start + number}") for number in range(100)])
    exported = await pages(world)
    assert [text.count("\n") for text in exported] == [2, 500, 500, 103, 1, 1, 1]
    done = await take(world, exported, "other")
    assert sum(one.created for one in done) == 1100


def _mangled(text: str, change: Callable[[dict[str, Any]], object]) -> str:
    """Return the text with its second record's line changed."""
    lines = text.split("\n")
    value = json.loads(lines[1])
    change(value)
    lines[1] = json.dumps(value)
    return "\n".join(lines)


def _event(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda line: line["events"][0].update(changes)


def _data(**changes: Any) -> Callable[[dict[str, Any]], object]:
    def change(line: dict[str, Any]) -> None:
        del line["record"]
        line["events"][0]["data"].update(changes)

    return change


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"more": value}
    return value


@pytest.mark.parametrize("number", ["1e400", "-Infinity", "9" * 400], ids=["a float", "infinite", "an integer"])
async def test_a_number_that_no_store_can_hold_is_not_imported(world: World, number: str) -> None:
    await world.store("The first.", metadata={"n": "MARK"})
    scopes, records, *_ = await pages(world)
    await take(world, [scopes], "other")
    before = world.everything()
    with pytest.raises(InvalidInput) as raised:
        await import_lines(world.stores(), "other", records.replace('"MARK"', number))
    assert raised.value.details["problems"] == ["it is not JSON"]
    assert world.everything() == before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda line: line.update(kind="memory"), id="unknown kind"),
        pytest.param(lambda line: line.update(version=2), id="later version"),
        pytest.param(lambda line: line.update(more=1), id="unknown field"),
        pytest.param(lambda line: line.update(tenant="A B"), id="no tenant"),
        pytest.param(lambda line: line.update(id="x"), id="no id"),
        pytest.param(lambda line: line.update(events=[]), id="no events"),
        pytest.param(
            lambda line: line["record"].update(content="Something else."), id="a record its events do not make"
        ),
        pytest.param(_event(kind="restored", data={}), id="events that begin in the middle"),
        pytest.param(_event(source={}), id="no origin"),
        pytest.param(_event(at_ms="now"), id="no time"),
        pytest.param(_data(tenant_id="another"), id="another tenant's record"),
        pytest.param(_data(id="01HF7YAT00AAAAAAAAAAAAAAAA"), id="another record's event"),
        pytest.param(_data(scope_id="agent.unknown"), id="unknown scope"),
        pytest.param(_data(scope_id="everything"), id="no scope"),
        pytest.param(_data(content=" "), id="empty content"),
        pytest.param(_data(content="\ud800"), id="not Unicode"),
        pytest.param(_data(content="x" * (MAX_CONTENT_BYTES + 1)), id="too long"),
        pytest.param(_data(metadata=_nested(100)), id="nested too deeply"),
        pytest.param(_data(confidence=1.5), id="confidence above one"),
        pytest.param(_data(confidence=float("nan")), id="not a number"),
        pytest.param(_data(confidence="high"), id="confidence in words"),
        pytest.param(_data(metadata={"x": "y" * MAX_METADATA_BYTES}), id="too much metadata"),
        pytest.param(_data(expires_at_ms=-1), id="negative time"),
        pytest.param(_data(utterance={"conversation": "c", "position": 0, "speaker": "s" * 600}), id="long speaker"),
    ],
)
async def test_a_bad_line_is_named_and_nothing_of_the_request_is_applied(
    world: World, change: Callable[[dict[str, Any]], object]
) -> None:
    await world.store("The first.")
    await world.store("The second.")
    scopes, records, *_ = await pages(world)
    await take(world, [scopes], "other")
    before = world.everything()
    with pytest.raises(InvalidInput) as raised:
        await import_lines(world.stores(), "other", _mangled(records, change))
    assert (raised.value.code, raised.value.details["line"]) == ("invalid_line", 2)
    assert world.everything() == before


@pytest.mark.parametrize("text", ["{", "[]", "17", '{"kind": "record", "version": NaN}', "[" * 100_000])
async def test_a_line_that_is_not_an_object_is_named(world: World, text: str) -> None:
    with pytest.raises(InvalidInput, match="line 3"):
        await import_lines(world.stores(), "acme", f"\n\n{text}\n")


async def test_an_id_of_another_tenant_cannot_be_taken_over(world: World) -> None:
    victim = await world.store("The victim's secret.", tenant="victim")
    await world.store("Mine.", tenant="acme")
    exported = await pages(world)
    forged = exported[1].replace(json.loads(exported[1].split("\n")[0])["id"], victim)
    before = world.everything()
    with pytest.raises(InvalidInput, match="another tenant"):
        await import_lines(world.stores(), "acme", forged)
    assert world.everything() == before


async def test_an_event_with_a_known_id_and_other_data_is_refused(world: World) -> None:
    await world.store("The truth.")
    exported = await pages(world)
    with pytest.raises(InvalidInput, match="line 1"):
        await import_lines(world.stores(), "acme", exported[1].replace("The truth.", "A lie."))


async def test_more_lines_or_bytes_than_allowed_are_refused(world: World) -> None:
    with pytest.raises(LimitExceeded, match="lines"):
        await import_lines(world.stores(), "acme", "{}\n" * 501)
    with pytest.raises(LimitExceeded, match="large"):
        await import_lines(world.stores(), "acme", " " * 1_048_577)


async def test_two_concurrent_imports_of_the_same_lines_import_them_once(world: World) -> None:
    await fill(world)
    exported = await pages(world)
    done = await asyncio.gather(*[take(world, exported, "other") for _ in range(3)])
    assert sum(one.created for imports in done for one in imports) == 10
    await world.rest()
    for query in QUERIES:
        assert await ranked(world, "other", query) == await ranked(world, "acme", query)
    assert (await verify_page(world.stores(), "other", None, repair=False)).drift == {}
    assert (await world.stores().history().verify("other")).problem is None


@pytest.mark.parametrize("error", [Crash(), Unavailable("down")], ids=["dies", "fails"])
async def test_an_import_that_stops_anywhere_is_finished_by_the_next(world: World, error: BaseException) -> None:
    ids = await fill(world)
    exported = await pages(world)
    await take(world, exported[:1], "other")
    await take(world, [exported[1].replace(exported[1].split("\n")[1] + "\n", "")], "other")  # one is missing
    await world.memory().edit(ids["tea"], {"content": "Bob likes green tea, " + "very much. " * 200}, PERSON)
    await world.memory().delete(ids["task"], PERSON)
    exported = await pages(world)
    await world.rest()
    base = world.snapshot()
    await take(world, exported, "other")
    await world.rest()
    undisturbed = _state(world)
    points = 0
    while True:
        points += 2  # only after each call: before the next one is the same point
        with living(base) as crashed:
            crashed.faults.plan(Fault(error, nth=points))
            with suppress(Crash, Unavailable):
                await take(crashed, exported, "other")
            if crashed.faults.pending:
                break
            await crashed.restart()
            for query in QUERIES:  # nothing is shown half-done
                await crashed.recall(query, tenant="other")
            await take(crashed, exported, "other")
            await crashed.rest()
            assert _state(crashed) == undisturbed, f"stopped at point {points}"
            assert (await crashed.stores().history().verify("other")).problem is None
    assert points > 40


async def test_an_import_reads_no_scopes_of_users_of_whom_it_has_nothing(world: World) -> None:
    await world.memory(user_id="ann").store(NewRecord("Ann likes tea."), AGENT)
    exported = await pages(world)
    await take(world, exported, "acme")
    few = await world.steps_of(lambda: take(world, exported, "acme"))
    for number in range(1000):
        user_id = f"user-{number}"
        scope = ("acme", user_scope_id("tenant", user_id), "tenant", "user", user_id)
        world.sql_now(
            "INSERT INTO scopes (tenant_id, scope_id, parent_id, kind, user_id) VALUES (?, ?, ?, ?, ?)", *scope
        )
    assert await world.steps_of(lambda: take(world, exported, "acme")) < few + 100


def _state(world: World) -> dict[str, Any]:
    tables = world.everything()
    return {
        "records": [row[1:] for row in tables["d1/memory_records"]],
        "events": sorted((row[0], row[2], row[3], row[4]) for row in tables["d1/memory_events"]),
        "search": len(tables["d1/memory_search"]),
        "outbox": tables["d1/memory_outbox"],
        "vectors": world.vectors(),
    }
