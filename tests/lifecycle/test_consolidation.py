"""Consolidation: what the rules do each night, and what they must not do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import RetainError, Unavailable
from retain.ledgers.errors import list_errors
from retain.lifecycle import consolidation
from retain.lifecycle.consolidation import Consolidated, consolidate, likeness, similarity
from retain.lifecycle.verification import verify_page
from retain.memory.recall.words import stem, words
from retain.memory.records.record import NewRecord, Record, RecordSource, Utterance
from retain.memory.records.similar import similar_records
from tests.lifecycle.world import AGENT, PERSON, World, living
from tests.support.faults import Crash, Fault
from tests.support.instances import shipped_embedder

HOUR_MS = 3_600_000


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


async def _record(world: World, record_id: str) -> Record:
    return (await world.memory().get(record_id))[0]


async def _superseded(world: World, *ids: str) -> list[str | None]:
    return [(await _record(world, record_id)).superseded_by for record_id in ids]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ann prefers e-mail.", "Ann prefers e\u2011mail"),
        ("The customer prefers a call in the morning.", "The customer\n prefers a call  in the morning!"),
        ('Ann\'s order "SO-4411" was refunded', "Ann\u2019s order \u201cSO-4411\u201d was refunded."),
        ("Order number \uff19\uff10\uff12\uff11\uff14", "Order number 90214"),
    ],
)
async def test_duplicates_are_superseded_by_the_oldest(world: World, first: str, second: str) -> None:
    kept = await world.store(first)
    world.clock.advance(1000)
    other = await world.store(second)
    done = await consolidate(world.stores())
    assert (done.superseded, done.compared) == (1, 2)
    assert await _superseded(world, kept, other) == [None, kept]
    record, events = await world.memory().get(other)
    assert (record.valid_to_ms, [event.kind for event in events]) == (world.clock(), ["stored", "superseded"])
    assert events[-1].source == {"origin": "rule", "rule": "near_duplicate"}
    assert [hit.record.id for hit in await world.recall(second)] == [kept]
    assert (await world.stores().history().verify("acme")).problem is None


@pytest.mark.parametrize("source", [AGENT, PERSON], ids=["an agent's", "a person's"])
async def test_of_duplicates_the_one_that_is_valid_longest_stays(world: World, source: RecordSource) -> None:
    ending = (await world.memory().store(NewRecord("Parking is free."), source)).id
    await world.memory().invalidate(ending, world.clock() + 24 * HOUR_MS, AGENT)
    world.clock.advance(1000)
    open_, again = await world.store("Parking is free"), await world.store("Parking is free!")
    assert (await consolidate(world.stores())).superseded == (2 if source is AGENT else 1)
    assert await _superseded(world, ending, open_, again) == [open_ if source is AGENT else None, None, open_]
    world.clock.advance(48 * HOUR_MS)
    assert [hit.record.id for hit in await world.recall("Is parking free?")] == [open_]


_TWINS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"content": "Ann owes Bob five."}, {"content": "Bob owes Ann five."}),
    ({"content": "Ann is a customer."}, {"content": "Ann is not a customer."}),
    ({"content": "Ann is a customer."}, {"content": "Is Ann a customer?"}),
    ({"content": "Ann is a customer"}, {"content": "Ann is a customer?"}),
    ({"content": "Refund order 4411."}, {"content": "Refund order 4412."}),
    ({"content": "Her blood is O+."}, {"content": "Her blood is O-."}),
    ({"content": "Bob writes C."}, {"content": "Bob writes C#."}),
    ({"content": "Bob was paid $5"}, {"content": "Bob was paid €5"}),
    ({"content": "The tank holds 10\u00b3 litres."}, {"content": "The tank holds 103 litres."}),
    ({"content": "The tank holds 10\u2083 litres."}, {"content": "The tank holds 103 litres."}),
    ({"content": "It has 2\u207f parts."}, {"content": "It has 2n parts."}),
    ({"content": "Room \u2460\u2461 is free."}, {"content": "Room 12 is free."}),
    ({"content": "Ann's share is 1\u00bd."}, {"content": "Ann's share is 11\u20442."}),
    ({"content": "Bob likes tea."}, {"content": "Bob likes tea and coffee."}),
    ({"content": "Prefers mail.", "subject": "ann"}, {"content": "Prefers mail!", "subject": "bob"}),
    ({"content": "Prefers mail.", "metadata": {"of": "ann"}}, {"content": "Prefers mail!", "metadata": {"of": "bob"}}),
    ({"content": "Send a report.", "kind": "task"}, {"content": "Send a report!", "kind": "instruction"}),
    (
        {"content": "Send a report.", "kind": "task", "expires_at_ms": 2 * 10**12},
        {"content": "Send a report!", "kind": "task", "expires_at_ms": 2 * 10**12 + 1},
    ),
    (
        {"content": "Ann came.", "kind": "event", "valid_from_ms": 1},
        {"content": "Ann came!", "kind": "event", "valid_from_ms": 2},
    ),
]


@pytest.mark.parametrize(("first", "second"), _TWINS, ids=[str(second) for _, second in _TWINS])
async def test_records_that_differ_in_more_than_fillers_are_kept(
    world: World, first: dict[str, Any], second: dict[str, Any]
) -> None:
    ids = [await world.store(**first), await world.store(**second)]
    assert (await consolidate(world.stores())).superseded == 0
    assert await _superseded(world, *ids) == [None, None]


_SIMILAR = [
    ("Ann smokes cigarettes", "Ann smoked cigarettes"),
    ("Tom loves Eve", "Tom loved Eve"),
    ("We hire Carl", "We hired Carl"),
    ("Bob works in markets", "Bob works in marketing"),
    ("She studies the university", "She studies the universe"),
    ("Vitamin helps", "Vitamin A helps"),
    ("Room", "Room A"),
    ("He left", "He just left"),
    ("She polishes shoes", "She Polishes shoes"),
    ("He works for IT", "He works for it"),
    ("Ann, Bob and Carl came", "Ann Bob and Carl came"),
]


@pytest.mark.parametrize(("first", "second"), _SIMILAR)
async def test_records_that_differ_in_a_word_or_its_form_are_shown_and_not_merged(
    world: World, first: str, second: str
) -> None:
    ids = [await world.store(first), await world.store(second), await world.store("Something else altogether.")]
    assert (await consolidate(world.stores())).superseded == 0
    page = await similar_records(world.sql, "acme", at_ms=world.clock(), limit=10, cursor=None)
    assert ([[one.id for one in group] for group in page.groups], page.cursor) == ([ids[:2]], None)
    await world.memory().invalidate(ids[0], world.clock(), PERSON)
    world.clock.advance(1)
    page = await similar_records(world.sql, "acme", at_ms=world.clock(), limit=10, cursor=None)
    assert page.groups == []


async def test_groups_of_similar_records_are_paged_and_stay_in_their_tenant(world: World) -> None:
    for number in range(5):
        for text in (f"Lamp {number} shines", f"Lamp {number} shining"):
            await world.store(text)
            await world.store(text, tenant="rival")
    await consolidate(world.stores())
    shown: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        page = await similar_records(world.sql, "acme", at_ms=world.clock(), limit=2, cursor=cursor)
        shown += [record.content for group in page.groups for record in group]
        assert {record.tenant_id for group in page.groups for record in group} == {"acme"}
        cursor = page.cursor
    assert cursor is None
    assert len(shown) == len(set(shown)) == 10


@pytest.mark.parametrize(
    ("template", "one", "other"),
    [
        ("Customer Ann Miller asked that the refund of {} euros for the broken lamp be sent"
         " to the card that she paid with last week", "50", "60"),
        ("Customer Ann Miller of the office in Rome {} our delivery in the morning between nine and ten o'clock"
         " at the main entrance of the building.", "accepts", "refuses"),
        ("After the call on Monday the customer Ann Miller asked that the refund for her broken lamp {} be sent"
         " to the card that she paid with.", "should", "should not"),
    ],
    ids=["amount", "verb", "negation"],
)  # fmt: skip
async def test_similarity_of_words_and_vectors_would_merge_what_differs_in_a_value(
    world: World, template: str, one: str, other: str
) -> None:
    texts = [template.format(one), template.format(other)]
    stems = [{stem(word) for word in words(text)} for text in texts]
    assert len(stems[0] & stems[1]) / len(stems[0] | stems[1]) >= 0.9
    a, b = await shipped_embedder().embed(texts)
    assert sum(x * y for x, y in zip(a, b, strict=True)) >= 0.97
    await world.store_all([NewRecord(text) for text in texts])
    assert (await consolidate(world.stores())).superseded == 0


async def test_scopes_and_turns_of_conversations_are_not_compared(world: World) -> None:
    ids = [
        await world.store("Bob likes tea."),
        await world.store("Bob likes tea!", agent_type="sales"),
        await world.store("Bob likes tea!", tenant="other"),
        await world.store("Bob likes tea!", utterance=Utterance("chat", 0, "Bob")),
        await world.store("Bob likes tea!!", utterance=Utterance("chat", 1, "Bob")),
    ]
    assert (await consolidate(world.stores())).superseded == 0
    assert len(ids) == len(set(ids))


async def test_what_a_person_wrote_or_edited_is_not_changed(world: World) -> None:
    machine = await world.store("Bob likes tea.")
    world.clock.advance(1)
    written = await world.store("Bob likes tea!", source=PERSON)
    edited = await world.store("Bob likes cake.")
    await world.memory().edit(edited, {"content": "Bob likes tea!!"}, PERSON)
    world.clock.advance(1)
    late = await world.store("Bob likes tea")
    before = [await _record(world, record_id) for record_id in (written, edited)]
    assert (await consolidate(world.stores())).superseded == 2
    assert [await _record(world, record_id) for record_id in (written, edited)] == before
    assert set(await _superseded(world, machine, late)) <= {written, edited}


async def test_repetition_does_not_raise_trust(world: World) -> None:
    kept = await world.store("Bob likes tea.", confidence=0.4, importance=0.3)
    before = await _record(world, kept)
    for number in range(5):
        world.clock.advance(1000)
        await world.store("Bob likes tea" + "!" * (number + 1), confidence=1.0, importance=1.0)
        await consolidate(world.stores())
    assert await _record(world, kept) == before
    assert [(hit.record.id, hit.record.confidence) for hit in await world.recall("tea")] == [(kept, 0.4)]


async def test_a_later_duplicate_is_found_and_a_changed_record_is_examined_again(world: World) -> None:
    kept = await world.store("Bob likes tea.")
    other = await world.store("Bob likes coffee.")
    assert (await consolidate(world.stores())).compared == 2
    assert await consolidate(world.stores()) == Consolidated()
    await world.memory().edit(other, {"content": "Bob likes tea!!"}, AGENT)
    assert (await consolidate(world.stores())).superseded == 1
    assert await _superseded(world, kept, other) == [None, kept]


async def test_a_superseded_duplicate_can_be_restored_and_stays_restored(world: World) -> None:
    await world.store("Bob likes tea.")
    other = await world.store("Bob likes tea!")
    await consolidate(world.stores())
    await world.memory().restore(other, PERSON)
    assert (await consolidate(world.stores())).superseded == 0
    assert await _superseded(world, other) == [None]


async def test_expired_tasks_are_closed_and_other_expired_records_deleted(world: World) -> None:
    soon = world.clock() + HOUR_MS
    task = await world.store("Write the report.", kind="task", expires_at_ms=soon)
    fact = await world.store("The code is 1234.", expires_at_ms=soon)
    persons = await world.store("The door is open.", expires_at_ms=soon, source=PERSON)
    later = await world.store("The shop is open.", expires_at_ms=soon + HOUR_MS)
    assert await consolidate(world.stores()) == Consolidated(compared=4)
    world.clock.advance(HOUR_MS)
    assert await consolidate(world.stores()) == Consolidated(closed=1, deleted=2)
    assert (await _record(world, task)).valid_to_ms == soon
    assert {row["id"] for row in world.sql_now("SELECT id FROM memory_records")} == {task, later}
    assert {vector.partition("#")[0] for vector in world.vectors()} == {task, later}
    kinds = {row["record_id"]: row["kind"] for row in world.sql_now("SELECT * FROM memory_events ORDER BY event_id")}
    assert kinds == {task: "invalidated", fact: "deleted", persons: "deleted", later: "stored"}
    assert world.sql_now("SELECT * FROM memory_outbox WHERE state = 'owed'") == []
    assert await consolidate(world.stores()) == Consolidated()


async def test_the_vectors_of_closed_tasks_and_of_duplicates_are_closed_too(world: World) -> None:
    soon = world.clock() + HOUR_MS
    task = await world.store("Write the report.", kind="task", expires_at_ms=soon)
    kept, other = await world.store("Bob likes tea."), await world.store("Bob likes tea!")
    world.clock.advance(HOUR_MS)
    assert await consolidate(world.stores()) == Consolidated(closed=1, superseded=1, compared=3)
    vectors = world.vectors()
    ends = {
        one: [vectors[f"{one}#0"].get(name) for name in ("valid_to", "superseded_by")] for one in (task, kept, other)
    }
    assert ends == {task: [soon, None], kept: [None, None], other: [world.clock(), kept]}
    await world.rest()
    assert (await verify_page(world.stores(), "acme", None, repair=False)).drift == {}


async def test_an_expiry_that_was_moved_meanwhile_counts(world: World) -> None:
    fact = await world.store("The code is 1234.", expires_at_ms=world.clock() + 1)
    world.clock.advance(10)
    await world.memory().edit(fact, {"expires_at_ms": world.clock() + HOUR_MS}, PERSON)
    assert (await consolidate(world.stores())).deleted == 0


async def test_a_run_is_bounded_and_the_next_one_continues(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidation, "COMPARED_PER_RUN", 4)
    monkeypatch.setattr(consolidation, "EXPIRED_PER_RUN", 3)
    monkeypatch.setattr(consolidation, "CHUNK", 2)
    await world.store_all([NewRecord(f"Lamp {n}", expires_at_ms=world.clock() + 1) for n in range(5)])
    await world.store_all([NewRecord("Bob likes tea" + "." * n) for n in range(1, 6)])
    world.clock.advance(2)
    done = [await consolidate(world.stores()) for _ in range(4)]
    assert [one.deleted for one in done] == [3, 2, 0, 0]
    assert [one.complete for one in done] == [False, True, True, True]
    assert sum(one.superseded for one in done) == 4
    assert len(await world.recall("tea")) == 1


async def test_a_tenant_that_fails_does_not_stop_the_others(world: World) -> None:
    for tenant in ("acme", "other"):
        await world.store("Bob likes tea.", tenant=tenant)
        await world.store("Bob likes tea!", tenant=tenant)
    world.sql_now("INSERT INTO erased_tenants VALUES ('acme', '', 1)")
    done = await consolidate(world.stores())
    assert (done.superseded, done.failed) == (1, 1)
    world.sql_now("DELETE FROM erased_tenants")
    assert (await consolidate(world.stores())).superseded == 1


async def test_tenants_whose_expired_records_cannot_be_deleted_come_after_all_others_and_after_each_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidation, "EXPIRED_PER_RUN", 2)
    for tenant in ("aaa", "bbb", "ccc"):
        lamps = [NewRecord(f"Lamp {n} is lit.", expires_at_ms=world.clock() + 1) for n in range(2)]
        await world.store_all(lamps, tenant=tenant)
    world.sql_now(
        "CREATE TRIGGER broken BEFORE INSERT ON memory_events WHEN new.tenant_id <> 'ccc' AND new.kind = 'deleted'"
        " BEGIN SELECT RAISE(ABORT, 'refused'); END"
    )
    tried: list[list[str]] = []
    complete: list[bool] = []
    for _ in range(5):
        world.clock.advance(2)
        complete.append((await consolidate(world.stores())).complete)
        found = (await list_errors(world.sql, stage="consolidation")).entries
        tried.append([one.tenant_id for one in found if one.last_at_ms == world.clock()])
    assert tried == [["aaa"], ["bbb"], [], ["aaa"], ["bbb"]]
    assert complete == [False, False, False, True, True]  # no more is done by repeating what fails
    assert world.sql_now("SELECT 1 FROM memory_records WHERE tenant_id = 'ccc'") == []


async def test_a_tenant_whose_new_records_cannot_be_compared_comes_after_all_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidation, "COMPARED_PER_RUN", 2)
    for tenant, records in (("aaa", 20), ("bbb", 2)):
        await world.store_all([NewRecord(f"Lamp {n} is lit.") for n in range(records)], tenant=tenant)
    world.sql_now(
        "CREATE TRIGGER broken BEFORE UPDATE ON memory_likeness WHEN new.tenant_id = 'aaa'"
        " BEGIN SELECT RAISE(ABORT, 'refused'); END"
    )
    for _ in range(4):
        world.clock.advance(2)
        await consolidate(world.stores())
    new = world.sql_now("SELECT tenant_id, COUNT(*) AS n FROM memory_likeness WHERE key IS NULL GROUP BY tenant_id")
    assert new == [{"tenant_id": "aaa", "n": 20}]


async def test_what_was_parked_is_settled_when_the_tenant_is_consolidated(world: World) -> None:
    for tenant in ("acme", "other"):
        await world.store("Bob likes tea.", tenant=tenant)
        world.sql_now(
            f"CREATE TRIGGER of_{tenant} BEFORE UPDATE ON memory_likeness WHEN new.tenant_id = '{tenant}'"
            " BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
    await consolidate(world.stores())
    world.clock.advance(1)
    world.sql_now("DROP TRIGGER of_acme")
    await consolidate(world.stores())
    found = (await list_errors(world.sql, stage="consolidation")).entries
    assert {one.tenant_id: (one.state, one.attempts) for one in found} == {
        "acme": ("replayed", 1),
        "other": ("parked", 2),
    }


async def test_a_consolidation_that_stops_anywhere_is_finished_by_the_next(world: World) -> None:
    ends = world.clock() + 1
    await world.store("Bob likes tea.")
    await world.store("Bob likes tea!")
    await world.store("The code is 1234.", expires_at_ms=ends)
    await world.store("Write the report.", kind="task", expires_at_ms=ends)
    await world.rest()
    base = world.snapshot()
    await consolidate(world.stores())
    await world.rest()
    undisturbed = _state(world)
    for error in (Crash(), Unavailable("down")):
        points = 0
        while True:
            points += 2
            with living(base) as stopped:
                stopped.faults.plan(Fault(error, nth=points))
                with suppress(Crash, RetainError):
                    await consolidate(stopped.stores())
                if stopped.faults.pending:
                    break
                await stopped.restart()
                await consolidate(stopped.stores())
                await stopped.rest()
                await stopped.rest()  # what the reconciler sent the first time is shown by now
                assert _state(stopped) == undisturbed, f"stopped at point {points}"
                assert (await verify_page(stopped.stores(), "acme", None, repair=False)).drift == {}
        assert points > 15


def _state(world: World) -> dict[str, Any]:
    records = world.sql_now("SELECT id, superseded_by, valid_to_ms IS NULL AS holds FROM memory_records ORDER BY id")
    events = sorted((row["record_id"], row["kind"]) for row in world.sql_now("SELECT * FROM memory_events"))
    return {
        "records": records,
        "events": events,
        "vectors": world.vectors(),
        "outbox": world.everything()["d1/memory_outbox"],
    }


_WORDS = st.lists(st.sampled_from(["ann", "bob", "owes", "not", "5", "6", "tea", "the", "a", "?", "-"]), min_size=1)


@given(one=_WORDS, other=_WORDS)
def test_duplicates_have_the_same_words_in_order_and_similar_records_except_articles(
    one: list[str], other: list[str]
) -> None:
    def stripped(words: list[str]) -> list[str]:
        return [word for word in words if word not in ("the", "a")]

    first, second = _made(" ".join(one)), _made("  ".join(other))
    assert (likeness(first) == likeness(second)) == (one == other)
    assert (similarity(first) == similarity(second)) == (stripped(one) == stripped(other))


def _made(content: str) -> Record:
    return Record(
        id="x", tenant_id="acme", scope_id="tenant", kind="fact", content=content, metadata={}, subject=None,
        predicate=None, object=None, confidence=1, importance=1, valid_from_ms=0, valid_to_ms=None, expires_at_ms=None,
        recorded_at_ms=0, updated_at_ms=0, superseded_by=None, edited=False, utterance=None, source={},
    )  # fmt: skip


async def test_an_expired_fact_that_is_deleted_leaves_no_gap_in_the_one_that_it_had_replaced(world: World) -> None:
    begun = world.clock()
    older = await world.store("Ann lives in Oslo.", subject="ann", predicate="lives_in")
    world.clock.advance(1000)
    expires = world.clock() + HOUR_MS
    await world.store("Ann lives in Rome.", subject="ann", predicate="lives_in", expires_at_ms=expires)
    world.clock.advance(2 * HOUR_MS)
    assert (await consolidate(world.stores())).deleted == 1
    record = await _record(world, older)
    assert (record.valid_from_ms, record.valid_to_ms, record.gaps, record.superseded_by) == (begun, None, (), None)
    assert (await verify_page(world.stores(), "acme", None, repair=False)).drift == {}


@pytest.mark.parametrize("kind", ["fact", "task"])
async def test_what_the_rules_closed_stays_closed_when_it_is_edited(world: World, kind: Any) -> None:
    later, expires = world.clock() + 2000, world.clock() + HOUR_MS if kind == "task" else None
    fields: dict[str, Any] = {"kind": kind, "expires_at_ms": expires, "subject": "ann", "predicate": "owes"}
    if kind == "fact":
        await world.store("Ann owes Bob", subject="ann")
        fields |= {"predicate": None}
    twice = await world.store("Ann owes Bob.", **fields)
    await world.store("Ann owes Bob.", **fields, valid_from_ms=later)  # two claims
    world.clock.advance(2 * HOUR_MS)
    await consolidate(world.stores())
    ended = (await _record(world, twice)).valid_to_ms
    assert ended == expires or ended == world.clock()
    await world.memory().edit(twice, {"predicate": "owed", "expires_at_ms": None}, AGENT)
    assert (await _record(world, twice)).valid_to_ms == ended
