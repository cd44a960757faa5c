"""Learning events as values: their fold, their order, and the limits of a record."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from retain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from retain.identifiers import new_id
from retain.memory import semantic
from retain.memory.records import supersession
from retain.memory.records.events import LearningEvent, apply, fold, stored
from retain.memory.records.limits import MAX_CONTENT_BYTES, MAX_METADATA_BYTES
from retain.memory.records.record import EDITABLE, NewRecord, Record, RecordSource, Utterance, content_hash
from tests.memory.semantic.agreement import check_agreement
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, PERSON, TENANT, Substrate

_times = st.integers(0, 2**53 - 1)
_places = st.none() | st.builds(
    Utterance, st.text(min_size=1, max_size=9), st.integers(0, 99), st.text(min_size=1, max_size=9), st.none() | _times
)
_records = st.builds(
    Record,
    id=st.just("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    tenant_id=st.just("acme"),
    scope_id=st.just("tenant"),
    kind=st.sampled_from(["fact", "event", "instruction", "task"]),
    content=st.text(min_size=1, max_size=20),
    metadata=st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4) | st.none(), max_size=3),
    subject=st.none() | st.text(min_size=1, max_size=5),
    predicate=st.none() | st.text(min_size=1, max_size=5),
    object=st.none() | st.text(min_size=1, max_size=5),
    confidence=st.floats(0, 1),
    importance=st.floats(0, 1),
    valid_from_ms=_times,
    valid_to_ms=st.none() | _times,
    expires_at_ms=st.none() | _times,
    recorded_at_ms=_times,
    updated_at_ms=_times,
    superseded_by=st.none() | st.just("01ARZ3NDEKTSV4RRFFQ69G5FAW"),
    edited=st.booleans(),
    utterance=_places,
    source=st.just({"origin": "agent"}),
)


@given(record=_records)
def test_a_stored_event_contains_the_whole_record(record: Record) -> None:
    assert stored(json.loads(json.dumps(record.to_json()))) == record


@given(record=_records, at_ms=_times, until=_times, person=st.booleans())
def test_an_event_changes_only_the_fields_it_names(record: Record, at_ms: int, until: int, person: bool) -> None:
    source = {"origin": "person" if person else "agent"}

    def after(kind: Any, data: dict[str, Any]) -> dict[str, Any]:
        changed = apply(record, LearningEvent(new_id(), record.id, kind, data, source, at_ms))
        assert changed is not None
        assert changed.updated_at_ms == at_ms
        before = record.to_json()
        return {
            name: value
            for name, value in changed.to_json().items()
            if value != before[name] and name != "updated_at_ms"
        }

    assert after("edited", {"importance": record.importance, "content": f"{record.content}!"}) == {
        "content": f"{record.content}!",
        **({"edited": True} if person and not record.edited else {}),
    }
    assert after("invalidated", {"valid_to_ms": until}).items() <= {"valid_to_ms": until}.items()
    assert after("superseded", {"by": "x", "valid_to_ms": until}).keys() <= {"superseded_by", "valid_to_ms"}
    assert after("restored", {}).keys() <= {"superseded_by", "valid_to_ms"}
    restored = apply(record, LearningEvent(new_id(), record.id, "restored", {}, source, at_ms))
    assert restored is not None
    assert (restored.valid_to_ms, restored.superseded_by) == (None, None)
    assert apply(record, LearningEvent(new_id(), record.id, "deleted", {}, source, at_ms)) is None


def test_events_without_a_stored_event_make_no_record() -> None:
    for kind, data in (("edited", {"content": "x"}), ("restored", {}), ("deleted", {})):
        event = LearningEvent(new_id(), "x", kind, data, {"origin": "agent"}, 0)  # type: ignore[arg-type]
        assert fold([event]) is None
    assert fold([]) is None


async def test_events_are_listed_in_the_order_in_which_they_happened_whatever_the_clocks(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two isolates write in turn, and the first one's clock is an hour ahead: its ids sort last."""
    ahead = iter(f"7ZZZZZZZZZ00000000000000{number:02d}" for number in range(99))
    record_id = await substrate.store("Ann likes tea.")
    for number in range(4):
        if number % 2 == 0:
            monkeypatch.setattr(semantic, "new_id", lambda: next(ahead))
        await substrate.memory().edit(record_id, {"content": f"Ann likes tea no. {number}."}, PERSON)
        monkeypatch.undo()
        substrate.clock.advance(1_000)
    record, events = await substrate.memory().get(record_id)
    assert [event.data.get("content") for event in events[1:]] == [
        f"Ann likes tea no. {number}." for number in range(4)
    ]
    assert fold(events) == record
    start = record.recorded_at_ms
    for number in range(4):
        at_ms = start + number * 1_000
        assert await substrate.found("tea", as_of_ms=at_ms) == [f"Ann likes tea no. {number}."]
    await check_agreement(substrate)


async def test_the_past_is_in_order_even_if_a_later_writers_clock_is_slow(substrate: Substrate) -> None:
    record_id = await substrate.store("Ann likes tea.")
    start = substrate.clock()
    substrate.clock.advance(10_000)
    await substrate.memory().edit(record_id, {"content": "Ann likes milk."}, PERSON)
    substrate.clock.set(start + 5_000)
    await substrate.memory().edit(record_id, {"importance": 0.9}, PERSON)
    record, events = await substrate.memory().get(record_id)
    assert [event.at_ms for event in events] == [start, start + 10_000, start + 10_000]
    assert (record.content, record.importance) == ("Ann likes milk.", 0.9)
    assert await substrate.found("Ann likes", as_of_ms=start + 6_000) == ["Ann likes tea."]
    await check_agreement(substrate)


async def test_the_events_of_one_call_are_in_order(substrate: Substrate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids within one millisecond are random: here each is smaller than the previous one."""
    falling = iter(f"01ARZ3NDEKTSV4RRFFQ69G5F{letters}" for letters in ("ZZ", "YY", "XX", "WW", "VV", "TT", "SS", "RR"))
    for module in (semantic, supersession):
        monkeypatch.setattr(module, "new_id", lambda: next(falling))
    news = [NewRecord(f"Ann lives in {city}.", subject="ann", predicate="lives_in") for city in ("Berlin", "Munich")]
    await substrate.memory().store_all(news, AGENT_SOURCE)
    [berlin, _] = await substrate.listed()
    assert [event.kind for event in (await substrate.memory().get(berlin.id))[1]] == ["stored", "superseded"]
    await check_agreement(substrate)


async def test_a_record_is_read_with_the_events_that_made_it(substrate: Substrate) -> None:
    source = RecordSource("agent", run_id="run-1", step=3)
    record_id = await substrate.store("Ann likes tea.", source=source, metadata={"a": 1})
    memory = substrate.memory()
    await memory.edit(record_id, {"content": "Ann likes coffee.", "confidence": 0.4}, PERSON)
    await memory.invalidate(record_id, 5, AGENT_SOURCE)
    await memory.restore(record_id, PERSON)
    record, events = await memory.get(record_id)
    assert [(event.kind, dict(event.data), dict(event.source)) for event in events[1:]] == [
        ("edited", {"content": "Ann likes coffee.", "confidence": 0.4}, {"origin": "person"}),
        ("invalidated", {"valid_to_ms": 5}, {"origin": "agent"}),
        ("restored", {}, {"origin": "person"}),
    ]
    assert events[0].data["content"] == "Ann likes tea."
    assert dict(events[0].source) == {"origin": "agent", "run_id": "run-1", "step": 3} == dict(record.source)
    assert (record.content, record.edited, record.confidence) == ("Ann likes coffee.", True, 0.4)


async def test_what_a_person_wrote_or_changed_is_marked(substrate: Substrate) -> None:
    by_agent, by_person = await substrate.store("A."), await substrate.store("B.", source=PERSON)
    assert [record.edited for record in await substrate.listed()] == [False, True]
    await substrate.memory().edit(by_agent, {"importance": 1.0}, AGENT_SOURCE)
    assert not (await substrate.record(by_agent)).edited
    await substrate.memory().edit(by_agent, {"importance": 0.0}, PERSON)
    assert (await substrate.record(by_agent)).edited
    await substrate.memory().edit(by_person, {"importance": 0.0}, AGENT_SOURCE)
    assert (await substrate.record(by_person)).edited


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("Ann likes tea.", "Ann likes tea.", True),
        ("Ann likes tea.", "  Ann likes tea.\n", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("Ann likes tea.", "ann likes tea.", False),
        ("Ann likes tea.", "Ann likes  tea.", False),
    ],
    ids=["same", "outer space", "composed", "case", "inner space"],
)
async def test_equal_content_is_the_same_memory(substrate: Substrate, first: str, second: str, equal: bool) -> None:
    one = await substrate.store(first)
    assert (await substrate.store(second) == one) == equal
    assert (content_hash(first, None) == content_hash(second, None)) == equal


async def test_equal_contents_in_one_call_are_one_memory(substrate: Substrate) -> None:
    news = [NewRecord(content) for content in ("A.", "B.", "A.", " A. ")]
    results = await substrate.memory().store_all(news, AGENT_SOURCE)
    assert [result.created for result in results] == [True, True, False, False]
    assert results[0].id == results[2].id == results[3].id
    assert len(await substrate.listed()) == 2


async def test_content_that_was_deleted_or_edited_away_may_be_stored_again(substrate: Substrate) -> None:
    first = await substrate.store("Ann likes tea.")
    await substrate.memory().edit(first, {"content": "Ann likes coffee."}, PERSON)
    second = await substrate.store("Ann likes tea.")
    assert second != first
    await substrate.memory().delete(second, PERSON)
    third = await substrate.store("Ann likes tea.")
    assert third not in (first, second)
    assert sorted(await substrate.contents()) == ["Ann likes coffee.", "Ann likes tea."]


async def test_of_changes_that_are_based_on_the_same_state_one_is_made(substrate: Substrate) -> None:
    tea = await substrate.store("Ann likes tea.")
    known, _, _ = await substrate.memory().page_of(tea)
    based_on, memory = known.last_event_id, substrate.memory()
    done = await asyncio.gather(
        memory.edit(tea, {"content": "Ann likes coffee."}, PERSON, based_on=based_on),
        memory.edit(tea, {"importance": 0.9}, PERSON, based_on=based_on),
        memory.invalidate(tea, substrate.clock(), PERSON, based_on=based_on),
        return_exceptions=True,
    )
    refused = [one for one in done if isinstance(one, Conflict)]
    assert [one.code for one in refused] == ["memory_changed", "memory_changed"]
    now, events, _ = await substrate.memory().page_of(tea)
    assert len(events) == 2
    assert {one.last_event_id for one in (now, known)} == {event.event_id for event in events}
    await check_agreement(substrate)


async def test_an_edit_to_content_that_the_scope_has_is_refused_and_changes_nothing(substrate: Substrate) -> None:
    tea, coffee = await substrate.store("Ann likes tea."), await substrate.store("Ann likes coffee.")
    with pytest.raises(Conflict) as raised:
        await substrate.memory().edit(coffee, {"content": "Ann likes tea."}, PERSON)
    assert raised.value.code == "duplicate_content"
    assert await substrate.contents() == ["Ann likes tea.", "Ann likes coffee."]
    await check_agreement(substrate)
    assert (await substrate.memory().edit(tea, {"content": "Ann likes tea."}, PERSON)).content == "Ann likes tea."


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "empty": ({"content": ""}, "empty_content"),
    "blank": ({"content": " \n\u3000"}, "empty_content"),
    "not Unicode": ({"content": "a\ud800"}, "invalid_content"),
    "NUL": ({"content": "a\x00b"}, "invalid_content"),
    "kind": ({"kind": "opinion"}, "invalid_kind"),
    "no kind": ({"kind": None}, "invalid_kind"),
    "confidence": ({"confidence": 1.1}, "invalid_confidence"),
    "importance": ({"importance": -0.1}, "invalid_importance"),
    "not a number": ({"importance": float("nan")}, "invalid_importance"),
    "confidence is text": ({"confidence": "high"}, "invalid_confidence"),
    "no confidence": ({"confidence": None}, "invalid_confidence"),
    "confidence is a truth value": ({"confidence": True}, "invalid_confidence"),
    "empty subject": ({"subject": ""}, "invalid_subject"),
    "long predicate": ({"predicate": "x" * 513}, "invalid_predicate"),
    "subject is a number": ({"subject": 7}, "invalid_subject"),
    "object is a list": ({"object": ["tea"]}, "invalid_object"),
    "time before the epoch": ({"expires_at_ms": -1}, "invalid_expires_at_ms"),
    "time is not a whole number": ({"expires_at_ms": 1.5}, "invalid_expires_at_ms"),
    "time is text": ({"expires_at_ms": "tomorrow"}, "invalid_expires_at_ms"),
    "time out of bounds": ({"expires_at_ms": 2**53}, "invalid_expires_at_ms"),
    "metadata is not finite": ({"metadata": {"a": float("inf")}}, "invalid_metadata"),
    "metadata has a number beyond every double": ({"metadata": {"a": 10**309}}, "invalid_metadata"),
    "metadata is not JSON": ({"metadata": {"a": {1, 2}}}, "invalid_metadata"),
}
TOO_LARGE: dict[str, tuple[dict[str, Any], str]] = {
    "content": ({"content": "é" * (MAX_CONTENT_BYTES // 2 + 1)}, "content_too_large"),
    "metadata": ({"metadata": {"a": "x" * MAX_METADATA_BYTES}}, "metadata_too_large"),
}


@pytest.mark.parametrize("name", [*REFUSED, *TOO_LARGE])
async def test_what_cannot_be_remembered_is_refused_by_store_and_edit_alike(substrate: Substrate, name: str) -> None:
    fields, code = {**REFUSED, **TOO_LARGE}[name]
    with pytest.raises(InvalidInput) as raised:
        NewRecord(**{"content": "Ann likes tea.", **fields})
    assert raised.value.code == code
    assert isinstance(raised.value, LimitExceeded) == (name in TOO_LARGE)
    record_id = await substrate.store("Ann likes tea.")
    with pytest.raises(InvalidInput) as raised:
        await substrate.memory().edit(record_id, fields, PERSON)
    assert raised.value.code == code
    assert (await substrate.memory().get(record_id))[0].updated_at_ms == substrate.clock()
    assert len((await substrate.memory().get(record_id))[1]) == 1


@pytest.mark.parametrize(
    ("place", "code"),
    [
        (Utterance("", 0, "Ann"), "invalid_conversation"),
        (Utterance("c" * 513, 0, "Ann"), "invalid_conversation"),
        (Utterance("c", 0, ""), "invalid_speaker"),
        (Utterance("c", 0, "s" * 513), "invalid_speaker"),
        (Utterance("c", -(2**53), "Ann"), "invalid_position"),
        (Utterance("c", 2**53, "Ann"), "invalid_position"),
        (Utterance("c", 0, "Ann", -1), "invalid_at_ms"),
        (Utterance("c", 0, "Ann", 253_402_300_800_000), "invalid_at_ms"),
    ],
    ids=[
        "no conversation",
        "long conversation",
        "no speaker",
        "long speaker",
        "far before",
        "far",
        "before",
        "year 10000",
    ],
)
def test_a_position_in_a_conversation_has_bounds(place: Utterance, code: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        NewRecord("Yes.", utterance=place)
    assert raised.value.code == code


@pytest.mark.parametrize(
    "changes", [{}, {"id": "x"}, {"tenant_id": "other"}, {"scope_id": "tenant"}, {"valid_to_ms": 5, "content": "x"},
                {"recorded_at_ms": 1}, {"superseded_by": None}, {"content": None}, {"content": 5}, {"metadata": []},
                {"metadata": None}],
    ids=str,
)  # fmt: skip
async def test_an_edit_changes_only_editable_fields(substrate: Substrate, changes: dict[str, Any]) -> None:
    record_id = await substrate.store("Ann likes tea.")
    with pytest.raises(InvalidInput) as raised:
        await substrate.memory().edit(record_id, changes, PERSON)
    assert raised.value.code == "invalid_edit"


async def test_every_editable_field_can_be_edited_and_cleared(substrate: Substrate) -> None:
    record_id = await substrate.store("Ann likes tea.")
    changes: dict[str, Any] = {
        "content": "Ann likes coffee.", "metadata": {"a": [1, {"b": None}]}, "kind": "task", "subject": "ann",
        "predicate": "likes", "object": "coffee", "confidence": 0, "importance": 1, "expires_at_ms": 2**53 - 1,
    }  # fmt: skip
    assert set(changes) == set(EDITABLE)
    record = await substrate.memory().edit(record_id, changes, PERSON)
    assert {name: getattr(record, name) for name in changes} == changes
    assert record == await substrate.record(record_id)
    cleared: dict[str, Any] = {
        "subject": None,
        "predicate": None,
        "object": None,
        "expires_at_ms": None,
        "metadata": {},
    }
    record = await substrate.memory().edit(record_id, cleared, PERSON)
    assert {name: getattr(record, name) for name in cleared} == cleared
    await check_agreement(substrate)


async def test_a_memory_that_does_not_exist_cannot_be_changed(substrate: Substrate) -> None:
    memory = substrate.memory(TENANT)
    for wrong in ("01ARZ3NDEKTSV4RRFFQ69G5FAV",):
        for attempt in (
            lambda wrong=wrong: memory.get(wrong),
            lambda wrong=wrong: memory.edit(wrong, {"content": "x"}, PERSON),
            lambda wrong=wrong: memory.invalidate(wrong, 0, PERSON),
            lambda wrong=wrong: memory.restore(wrong, PERSON),
            lambda wrong=wrong: memory.delete(wrong, PERSON),
        ):
            with pytest.raises(NotFound):
                await attempt()


@pytest.mark.parametrize("record_id", ["", "x", "01ARZ3NDEKTSV4RRFFQ69G5FA", "01ARZ3NDEKTSV4RRFFQ69G5FAV#0", "*"])
async def test_an_invalid_id_is_refused(substrate: Substrate, record_id: str) -> None:
    memory = substrate.memory(TENANT)
    for attempt in (memory.get(record_id), memory.delete(record_id, PERSON), memory.restore(record_id, PERSON)):
        with pytest.raises(InvalidInput):
            await attempt


async def test_the_largest_record_is_stored_found_and_forgotten(substrate: Substrate) -> None:
    content = "Ann likes tea. " + "a volcano erupts. " * ((MAX_CONTENT_BYTES - 30) // 18)
    record_id = await substrate.store(content, metadata={"a": "x" * (MAX_METADATA_BYTES - 20)}, subject="s" * 512)
    assert len(substrate.vectors.held()) > 50
    assert await substrate.found("eruption of a volcano") == [content]
    await check_agreement(substrate)
    await substrate.memory().delete(record_id, PERSON)
    assert substrate.vectors.held() == {}


async def test_an_event_that_follows_one_of_a_clock_ahead_has_no_other_record_s_event_id(
    substrate: Substrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = itertools.count(int(ULID.from_str("02ARZ3NDEKTSV4RRFFQ69G5FAV")))
    for module in (semantic, supersession):
        monkeypatch.setattr(module, "new_id", lambda: str(ULID.from_int(next(numbers))))
    ids = [await substrate.store(f"Ann has {number} canoes.") for number in range(3)]
    numbers = itertools.count(int(ULID.from_str("01ARZ3NDEKTSV4RRFFQ69G5FAV")))
    for record_id in ids:
        await substrate.memory(AGENT).edit(record_id, {"importance": 0.9}, PERSON)
    assert [record.importance for record in await substrate.listed()] == [0.9] * 3
