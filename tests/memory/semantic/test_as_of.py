"""`as_of_ms` applies to both times: what was valid then, as far as it was known then."""

from __future__ import annotations

from typing import Any

from retain.memory.recall.as_of import list_known
from retain.memory.records.listing import Listing
from tests.memory.semantic.substrate import AGENT, PERSON, TENANT, Substrate

CITY: dict[str, Any] = {"subject": "ann", "predicate": "lives_in"}
BERLIN, MUNICH = "Ann lives in Berlin.", "Ann lives in Munich."
QUERY = "Where does Ann live?"
HOUR = 3_600_000


async def known_at(substrate: Substrate, at_ms: int | None, query: str = QUERY) -> list[str]:
    return sorted(await substrate.found(query, AGENT, as_of_ms=at_ms, top_k=50))


async def test_a_supersession_is_not_known_before_it_was_recorded(substrate: Substrate) -> None:
    start = substrate.clock()
    await substrate.store(BERLIN, **CITY)
    substrate.clock.advance(HOUR)
    moved = substrate.clock()
    await substrate.store(MUNICH, **CITY)
    substrate.clock.advance(HOUR)
    assert await known_at(substrate, start - 1) == []
    assert await known_at(substrate, start) == [BERLIN]
    assert await known_at(substrate, moved - 1) == [BERLIN]
    assert await known_at(substrate, moved) == [MUNICH]
    assert await known_at(substrate, None) == [MUNICH]


async def test_a_fact_stored_late_was_valid_before_but_not_known_before(substrate: Substrate) -> None:
    """She moved an hour before anybody recorded it: in between, Berlin was known, and valid as far as known."""
    start = substrate.clock()
    await substrate.store(BERLIN, **CITY)
    substrate.clock.advance(2 * HOUR)
    await substrate.store(MUNICH, valid_from_ms=start + HOUR, **CITY)
    stored_at = substrate.clock()
    substrate.clock.advance(HOUR)
    assert await known_at(substrate, stored_at - 1) == [BERLIN]
    assert await known_at(substrate, stored_at) == [MUNICH]
    [berlin, munich] = await substrate.listed()
    assert (berlin.valid_to_ms, munich.valid_from_ms) == (start + HOUR, start + HOUR)


async def test_an_edit_is_not_known_before_it_was_recorded(substrate: Substrate) -> None:
    record_id = await substrate.store(BERLIN, metadata={"checked": False})
    substrate.clock.advance(HOUR)
    edited = substrate.clock()
    await substrate.memory().edit(record_id, {"content": MUNICH, "metadata": {"checked": True}}, PERSON)
    substrate.clock.advance(HOUR)
    assert await known_at(substrate, edited) == [MUNICH]
    [hit] = await substrate.hits(QUERY, AGENT, as_of_ms=edited - 1)
    assert (hit.record.content, hit.record.metadata, hit.record.edited) == (BERLIN, {"checked": False}, False)
    assert hit.record.updated_at_ms == edited - HOUR


async def test_every_past_state_of_a_record_is_readable(substrate: Substrate) -> None:
    """The changes are an hour apart: what was known at a time is the record's state at that time."""
    record_id = await substrate.store(BERLIN)
    memory, start = substrate.memory(), substrate.clock()
    substrate.clock.advance(HOUR)
    await memory.invalidate(record_id, substrate.clock(), PERSON)
    substrate.clock.advance(HOUR)
    await memory.edit(record_id, {"content": MUNICH}, PERSON)
    substrate.clock.advance(HOUR)
    await memory.restore(record_id, PERSON)
    substrate.clock.advance(HOUR)
    await memory.edit(record_id, {"expires_at_ms": substrate.clock() + HOUR}, PERSON)
    substrate.clock.advance(HOUR)
    known = [await known_at(substrate, start + hour * HOUR + 1) for hour in range(-1, 6)]
    assert known == [[], [BERLIN], [], [], [MUNICH], [MUNICH], []]


async def test_what_was_closed_for_an_earlier_time_was_known_until_it_was_closed(substrate: Substrate) -> None:
    record_id = await substrate.store(BERLIN)
    start = substrate.clock()
    substrate.clock.advance(2 * HOUR)
    await substrate.memory().invalidate(record_id, start + HOUR, PERSON)
    assert await known_at(substrate, start + HOUR + 1) == [BERLIN]
    assert await known_at(substrate, None) == []


async def test_what_was_recorded_later_is_not_known_even_if_it_was_valid(substrate: Substrate) -> None:
    start = substrate.clock()
    substrate.clock.advance(HOUR)
    await substrate.store(BERLIN, valid_from_ms=start - HOUR)
    assert await known_at(substrate, start) == []
    assert await known_at(substrate, start + HOUR) == [BERLIN]


async def test_what_was_deleted_is_gone_as_of_every_time(substrate: Substrate) -> None:
    record_id = await substrate.store(BERLIN)
    start = substrate.clock()
    substrate.clock.advance(HOUR)
    await substrate.memory().delete(record_id, PERSON)
    assert await known_at(substrate, start) == []


async def test_an_expired_memory_is_recalled_only_as_of_a_time_before_its_expiry(substrate: Substrate) -> None:
    start = substrate.clock()
    await substrate.store(BERLIN, expires_at_ms=start + HOUR)
    assert await known_at(substrate, None) == [BERLIN]
    substrate.clock.set(start + HOUR - 1)
    assert await known_at(substrate, None) == [BERLIN]
    substrate.clock.set(start + HOUR)
    assert await known_at(substrate, None) == []
    assert await known_at(substrate, start + HOUR - 1) == [BERLIN]


async def test_the_past_is_filtered_by_its_values_at_that_time(substrate: Substrate) -> None:
    record_id = await substrate.store(BERLIN, metadata={"state": "open"})
    start = substrate.clock()
    substrate.clock.advance(HOUR)
    await substrate.memory().edit(record_id, {"importance": 0.9}, PERSON)
    assert [
        hit.record.importance for hit in await substrate.hits(QUERY, AGENT, as_of_ms=start, filter={"state": "open"})
    ] == [0.5]


async def test_the_past_is_filtered_by_its_metadata_at_that_time(substrate: Substrate) -> None:
    record_id = await substrate.store(BERLIN, metadata={"state": "open"})
    start = substrate.clock()
    substrate.clock.advance(HOUR)
    await substrate.memory().edit(record_id, {"metadata": {"state": "closed"}}, PERSON)
    assert await substrate.found(QUERY, AGENT, as_of_ms=start, filter={"state": "open"}) == [BERLIN]
    assert await substrate.found(QUERY, AGENT, as_of_ms=start, filter={"state": "closed"}) == []


async def test_the_past_is_the_same_from_the_tenant_as_from_the_agent(substrate: Substrate) -> None:
    start = substrate.clock()
    await substrate.store(BERLIN, **CITY)
    substrate.clock.advance(HOUR)
    await substrate.store(MUNICH, **CITY)
    assert await substrate.found(QUERY, TENANT, as_of_ms=start, below=True) == [BERLIN]


async def test_what_had_ended_by_then_and_changed_since_does_not_crowd_out_what_was_valid_then(
    substrate: Substrate,
) -> None:
    """Records that changed since pass the query and are judged by their events: a dozen fill more than one page."""
    ended = [await substrate.store(f"Ann lives in city number {number}.") for number in range(12)]
    await substrate.store("Ann has a dog, and it lives with her.")
    substrate.clock.advance(HOUR)
    for record_id in ended:
        await substrate.memory().invalidate(record_id, substrate.clock(), PERSON)
    at_ms = substrate.clock()
    substrate.clock.advance(HOUR)
    for record_id in ended:
        await substrate.memory().edit(record_id, {"metadata": {"checked": True}}, PERSON)
    found = await substrate.found("In which city does Ann live?", AGENT, as_of_ms=at_ms, top_k=1)
    assert found == ["Ann has a dog, and it lives with her."]


async def test_superseded_facts_do_not_crowd_out_what_was_valid_then(substrate: Substrate) -> None:
    """Twenty later states of the same fact rank like the one that was valid: none of them displaces it."""
    start = substrate.clock()
    await substrate.store("Ann lives in city number 0.", **CITY)
    for number in range(1, 21):
        substrate.clock.advance(HOUR)
        await substrate.store(f"Ann lives in city number {number}.", **CITY)
    for number in (0, 10, 20):
        at_ms = start + number * HOUR
        assert await substrate.found("Ann lives in city number", AGENT, as_of_ms=at_ms, top_k=1) == [
            f"Ann lives in city number {number}."
        ]


async def test_a_list_has_what_was_known_in_the_state_that_it_had(substrate: Substrate) -> None:
    async def known(at_ms: int, **wanted: Any) -> list[str]:
        found: list[str] = []
        cursor: str | None = None
        while True:
            listing = Listing(known_at_ms=at_ms, limit=1, cursor=cursor, **{"held_at_ms": at_ms, **wanted})
            page, cursor = await list_known(substrate.d1, TENANT, listing)
            found += [record.content for record in page]
            if cursor is None:
                return found

    start = substrate.clock()
    edited = await substrate.store("Ann likes tea.", metadata={"checked": False})
    await substrate.store(BERLIN, **CITY)
    substrate.clock.advance(HOUR)
    await substrate.store(MUNICH, **CITY)
    await substrate.memory().edit(edited, {"content": "Ann likes coffee.", "metadata": {"checked": True}}, PERSON)
    now = substrate.clock()
    assert await known(start - 1) == []
    assert await known(now - 1) == ["Ann likes tea.", BERLIN]
    assert await known(now) == ["Ann likes coffee.", MUNICH]
    assert await known(now, held_at_ms=None) == ["Ann likes coffee.", BERLIN, MUNICH]
    assert await known(now - 1, filter={"checked": False}) == ["Ann likes tea."]
    assert await known(now, filter={"checked": False}) == []
    assert await known(now - 1, filter={"checked": True}) == []
