"""An import does not bring back what was erased, unless it is asked to; and nothing is imported from the future."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from retain.errors import InvalidInput
from retain.lifecycle.export import export_page
from retain.lifecycle.importing import Imported, import_lines
from retain.lifecycle.transfer import erased as erased_module
from retain.lifecycle.transfer.lines import CLOCKS_AGREE_MS
from retain.memory.records.record import NewRecord
from retain.memory.scope import user_scope_id
from retain.tenants.register import Tenants
from tests.lifecycle import erasable, of_users
from tests.lifecycle.world import PERSON, World, living

SECRET = "Ann has a lupuscanary."
HARMLESS = "Bob likes tea."
ANN = "ann@shop.example"


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


async def exported(world: World) -> str:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await export_page(world.stores(), "acme", cursor)
        found += page.lines[:-1]
        cursor = page.cursor
        if cursor is None:
            return "\n".join(found)


async def imported(world: World, text: str, *, include_erased: bool = False) -> Imported:
    return await import_lines(world.stores(), "acme", text, include_erased=include_erased)


async def contents(world: World) -> list[str]:
    return sorted(row["content"] for row in world.sql_now("SELECT content FROM memory_records"))


def brought_back(world: World) -> list[str]:
    rows = world.sql_now("SELECT subject_id FROM world_history WHERE kind = 'erased_imported' ORDER BY seq")
    return [row["subject_id"] for row in rows]


async def verified(world: World) -> bool:
    return (await world.stores().history().verify("acme")).problem is None and not await world.drift()


@pytest.mark.parametrize("match", ["subject", "mention"])
async def test_an_old_export_does_not_bring_back_an_erased_record(world: World, match: str) -> None:
    ids = [await world.store(SECRET, subject="lupuscanary"), await world.store(HARMLESS)]
    gone = await world.store(f"{SECRET} It was deleted.", subject="lupuscanary")
    await world.memory().delete(gone, PERSON)
    before = await exported(world)
    await erasable.erased(world, subject="lupuscanary", match=match)
    done = await imported(world, before)
    assert (done.erased, done.created, done.unchanged) == (2, 0, 1)
    assert await contents(world) == [HARMLESS]
    assert world.mentions("lupuscanary") == []
    assert await verified(world)

    done = await imported(world, before, include_erased=True)
    assert (done.erased, done.created) == (0, 2)  # the deleted one with its events, but not as a record
    assert await contents(world) == [SECRET, HARMLESS]
    assert brought_back(world) == [ids[0], gone]
    assert await verified(world)
    again = await imported(world, before)
    assert (again.erased, again.created, again.unchanged) == (0, 0, 3)
    assert brought_back(world) == [ids[0], gone]


async def test_the_past_of_a_record_that_stayed_is_not_brought_back(world: World) -> None:
    """The record is no longer about the subject: its present state stayed, and its past was erased."""
    record_id = await world.store(SECRET)
    before = await exported(world)
    await world.memory().edit(record_id, {"content": HARMLESS}, PERSON)
    await erasable.erased(world, subject="lupuscanary")
    assert (await imported(world, before)).erased == 1
    assert await contents(world) == [HARMLESS]
    assert world.mentions("lupuscanary") == []
    after = await exported(world)
    world.clock.advance(1000)
    await world.memory().edit(record_id, {"importance": 0.9}, PERSON)
    assert (await imported(world, after)).unchanged == 1


async def test_an_export_from_before_the_tenant_s_erasure_is_left_out(world: World) -> None:
    tenants = Tenants(world.sql, world.clock)
    await tenants.register("acme")
    await world.store(SECRET)
    before = await exported(world)
    await erasable.erased(world, tenant="acme")
    await tenants.register("acme")
    world.clock.advance(1000)
    await world.store(HARMLESS)
    assert (await imported(world, before)).erased == 1
    assert await contents(world) == [HARMLESS]
    assert (await imported(world, before, include_erased=True)).created == 1
    assert await contents(world) == [SECRET, HARMLESS]
    assert await verified(world)


async def test_a_profile_from_before_the_tenant_s_erasure_is_left_out(world: World) -> None:
    tenants = Tenants(world.sql, world.clock)
    await tenants.register("acme")
    await remember(world, SECRET)
    world.sql_now("UPDATE users SET name = 'lupuscanary', created_at_ms = ?", world.clock())
    before = await exported(world)
    await erasable.erased(world, tenant="acme")
    await tenants.register("acme")
    world.clock.advance(1000)
    done = await imported(world, before)
    assert (done.erased, done.users) == (2, 0)
    assert world.mentions("lupuscanary") == []
    await remember(world, HARMLESS)
    later = await exported(world)
    world.sql_now("DELETE FROM users")
    assert (await imported(world, later)).users == 1


async def test_another_tenant_that_was_erased_takes_an_export_that_it_never_had(world: World) -> None:
    await world.store(SECRET)
    before = await exported(world)
    with living() as elsewhere:
        elsewhere.clock.set(world.clock() + 1000)
        tenants = Tenants(elsewhere.sql, elsewhere.clock)
        await tenants.register("other")
        await elsewhere.store(HARMLESS, tenant="other")
        await erasable.erased(elsewhere, tenant="other")
        await tenants.register("other")
        done = await import_lines(elsewhere.stores(), "other", before)
        assert (done.erased, done.created) == (0, 1)


async def remember(world: World, text: str) -> str:
    memory = world.memory("acme", "clerk", house="shop", user_id=ANN)
    return (await memory.store(NewRecord(text), PERSON)).id


async def test_nothing_of_an_erased_user_is_brought_back(world: World) -> None:
    await world.store(HARMLESS)
    record_id = await remember(world, SECRET)
    world.sql_now("UPDATE users SET name = 'lupuscanary', created_at_ms = ?", world.clock())
    before = await exported(world)
    await of_users.erased(world, ANN)
    done = await imported(world, before)
    assert (done.erased, done.users, done.scopes, done.unchanged) == (2, 0, 0, 1)
    assert world.mentions("lupuscanary") == []
    assert world.sql_now("SELECT * FROM users") == []
    assert world.sql_now("SELECT * FROM scopes WHERE user_id IS NOT NULL") == []
    [record] = [line for line in before.split("\n") if SECRET in line]  # without the line of its scope
    assert (await imported(world, record)).erased == 1

    done = await imported(world, before, include_erased=True)
    assert (done.erased, done.users, done.created) == (0, 1, 1)
    assert await contents(world) == [SECRET, HARMLESS]
    assert brought_back(world)[1:] == [record_id] or brought_back(world)[:1] == [record_id]
    assert len(brought_back(world)) == 2
    assert await verified(world)
    await imported(world, before, include_erased=True)
    assert len(brought_back(world)) == 2


async def test_the_scope_of_an_erased_user_in_the_tenant_is_known_without_a_line(world: World) -> None:
    await world.memory("acme", user_id=ANN).store(NewRecord(SECRET), PERSON)
    before = await exported(world)
    await of_users.erased(world, ANN)
    world.sql_now("DELETE FROM world_history")  # as elsewhere: the user decides alone
    assert (await imported(world, json.dumps(_line(before, "record")))).erased == 1


async def test_the_scopes_of_erased_users_are_computed_once_for_all_lines_of_an_import(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        await remember(world, f"{SECRET} It is number {number}.")
    before = await exported(world)
    await of_users.erased(world, ANN)
    world.sql_now("DELETE FROM world_history")
    computed: list[str] = []

    def counted(parent: str, user_id: str) -> str:
        computed.append(parent)
        return user_scope_id(parent, user_id)

    monkeypatch.setattr(erased_module, "user_scope_id", counted)
    records = [line for line in before.split("\n") if '"record"' in line]
    assert (await imported(world, "\n".join(records))).erased == 20
    assert sorted(computed) == sorted(2 * ["agent.clerk", "tenant"]), "once for the plan, and once to decide"


async def test_what_a_user_had_elsewhere_before_the_erasure_stays_out_and_later_memories_come_in(world: World) -> None:
    """The records were never in this deployment, so its history does not name them: the user and the time decide."""
    with living() as elsewhere:
        elsewhere.clock.set(world.clock())
        await remember(elsewhere, SECRET)
        early = await exported(elsewhere)
        await remember(world, "Another memory.")
        world.sql_now("UPDATE users SET created_at_ms = ?", world.clock())
        await of_users.erased(world, ANN)
        elsewhere.clock.set(world.clock() + 1000)
        await remember(elsewhere, HARMLESS)
        late = await exported(elsewhere)
    world.clock.advance(2000)
    assert (await imported(world, early)).erased == 1
    assert world.sql_now("SELECT * FROM scopes WHERE user_id IS NOT NULL") == []
    done = await imported(world, late)
    assert (done.erased, done.created) == (1, 1)
    assert await contents(world) == [HARMLESS]
    assert await verified(world)


async def test_later_memories_of_an_erased_user_come_in_although_their_scope_was_on_an_earlier_page(
    world: World,
) -> None:
    with living() as elsewhere:
        await remember(world, SECRET)
        world.sql_now("UPDATE users SET created_at_ms = ?", world.clock())
        await of_users.erased(world, ANN)
        elsewhere.clock.set(world.clock() + 1000)
        await remember(elsewhere, HARMLESS)
        late = await exported(elsewhere)
    world.clock.advance(2000)
    is_record = [json.loads(line)["kind"] == "record" for line in late.split("\n")]
    for on_page in (False, True):
        page = [line for line, one in zip(late.split("\n"), is_record, strict=True) if one is on_page]
        done = await imported(world, "\n".join(page))
    assert done.created == 1
    [scope] = world.sql_now("SELECT user_id FROM scopes JOIN memory_records USING (tenant_id, scope_id)")
    assert scope["user_id"] == ANN
    assert await verified(world)


def _line(text: str, kind: str) -> dict[str, Any]:
    [line] = [line for line in map(json.loads, text.split("\n")) if line["kind"] == kind]
    return dict(line)


@pytest.mark.parametrize(
    ("event", "data", "named"),
    [
        pytest.param({"at_ms": 1}, {}, "at_ms", id="event"),
        pytest.param({}, {"recorded_at_ms": 1}, "recorded_at_ms", id="recorded"),
        pytest.param({}, {"updated_at_ms": 1}, "updated_at_ms", id="changed"),
    ],
)
async def test_a_time_of_the_future_is_refused_with_the_line(
    world: World, event: Mapping[str, int], data: Mapping[str, int], named: str
) -> None:
    """A record that was recorded in the future would be found by nobody, and would keep its content from being stored."""
    await world.store(SECRET)
    text = await exported(world)
    line = _line(text, "record")
    del line["record"]
    latest_ms = world.clock() + CLOCKS_AGREE_MS
    line["events"][0] |= {name: latest_ms + more for name, more in event.items()}
    line["events"][0]["data"] |= {name: latest_ms + more for name, more in data.items()}
    before = world.everything()
    with pytest.raises(InvalidInput, match="future") as raised:
        await imported(world, f"{json.dumps(_line(text, 'scope'))}\n\n{json.dumps(line)}")
    assert (raised.value.code, raised.value.details["line"]) == ("invalid_line", 3)
    assert named in str(raised.value.details["problems"])
    assert world.everything() == before
    world.clock.advance(1)
    await import_lines(world.stores(), "other", f"{json.dumps(_line(text, 'scope'))}\n\n{json.dumps(line)}")


async def test_what_a_clock_recorded_that_is_ahead_or_was_set_back_since_is_imported_and_found_at_its_time(
    world: World,
) -> None:
    await remember(world, SECRET)
    text = await exported(world)
    world.clock.set(world.clock() - CLOCKS_AGREE_MS)
    assert (await import_lines(world.stores(), "other", text)).created == 1
    assert await world.recall(SECRET, tenant="other") == []
    world.clock.advance(CLOCKS_AGREE_MS)
    assert [hit.record.content for hit in await world.recall(SECRET, tenant="other")] == [SECRET]


async def test_what_becomes_valid_or_expires_in_the_future_is_imported(world: World) -> None:
    await world.store(SECRET, valid_from_ms=world.clock() + 10**6, expires_at_ms=world.clock() + 10**7)
    assert (await import_lines(world.stores(), "other", await exported(world))).created == 1


async def test_a_user_who_ran_in_the_future_and_an_unknown_origin_are_refused(world: World) -> None:
    await remember(world, SECRET)
    text = await exported(world)
    user, record = _line(text, "user"), _line(text, "record")
    user["user"]["last_run_at_ms"] = world.clock() + CLOCKS_AGREE_MS + 1
    with pytest.raises(InvalidInput, match=r"line 1.*last_run_at_ms"):
        await imported(world, json.dumps(user))
    del record["record"]
    record["events"][0]["source"]["origin"] = "nobody"
    with pytest.raises(InvalidInput, match=r"line 1.*origin"):
        await imported(world, json.dumps(record))
