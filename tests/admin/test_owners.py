"""What an administrator lists, recalls and changes of a user: what a run for that user sees, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import fields
from typing import Any

import pytest

from retain.admin.context import AdminContext
from retain.admin.mcp import MemoryTools
from retain.admin.memories.memory_desk import MemoryDesk, Owner
from retain.agents.versions.tenant_agents import TenantAgents
from retain.errors import InvalidInput, NotFound
from retain.host.clock import system_time_zones
from retain.memory.records.record import NewRecord
from retain.memory.scope import View
from retain.memory.semantic import SemanticMemory
from retain.memory.users import Users
from tests.e2e.puppet import order
from tests.lifecycle.of_users import shop
from tests.lifecycle.world import World
from tests.ports import raises

ANN, BOB = "ann", "bob"
ALL = "What about the bike?"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    with closing(shop()) as world:
        await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        yield world


@pytest.fixture
async def desk(world: World) -> MemoryDesk:
    """A desk of a tenant with a bike in every place."""

    def semantic(view: View) -> SemanticMemory:
        return SemanticMemory(view.scope, world.sql, world.index, world.embedder, world.clock, view=view)

    given: dict[str, Any] = {field.name: None for field in fields(AdminContext)}
    given |= {"sql": world.sql, "semantic": semantic, "clock": world.clock}
    given["agents"] = TenantAgents(world.catalogue, world.sql, world.clock)
    desk = MemoryDesk(AdminContext(**given), "acme")
    for place, owner in PLACES.items():
        await desk.store(owner, NewRecord(f"The bike of {place}."))
    return desk


PLACES = {
    "tenant": Owner(),
    "house": Owner(house="shop"),
    "clerk": Owner("clerk"),
    "ann": Owner(user_id=ANN),
    "ann's clerk": Owner("clerk", user_id=ANN),
    "ann's helper": Owner("helper", user_id=ANN),
    "bob": Owner(user_id=BOB),
    "bob's clerk": Owner("clerk", user_id=BOB),
}


def names(contents: list[str]) -> set[str]:
    return {content.removeprefix("The bike of ").removesuffix(".") for content in contents}


@pytest.mark.parametrize(
    ("owner", "listed", "recalled"),
    [
        (Owner(user_id=ANN), {"ann", "ann's clerk", "ann's helper"}, {"tenant", "house", "clerk"}),
        (Owner("clerk", user_id=ANN), {"ann's clerk"}, {"tenant", "house", "clerk"}),
        (Owner("helper", user_id=ANN), {"ann's helper"}, {"tenant", "ann"}),
        (Owner(user_id=BOB), {"bob", "bob's clerk"}, {"tenant", "house", "clerk"}),
        (Owner(user_id="carl"), set(), {"tenant"}),
        (Owner("clerk", user_id="carl"), set(), {"tenant", "house", "clerk"}),
        (Owner("clerk"), {"clerk", "ann's clerk", "bob's clerk"}, {"tenant", "house"}),
        (Owner(), set(PLACES), set()),
    ],
    ids=[
        "user",
        "user of an agent",
        "user of a sharing agent",
        "other user",
        "unknown",
        "unknown of an agent",
        "agent",
        "all",
    ],
)
async def test_a_list_has_what_is_the_owner_s_and_a_recall_what_a_run_would_see(
    desk: MemoryDesk, owner: Owner, listed: set[str], recalled: set[str]
) -> None:
    page = await desk.list(owner, conditions={})
    assert names([record.content for record in page.records]) == listed
    hits = (await desk.recall(owner, ALL, top_k=50)).result.hits
    own = listed - {"ann's clerk", "bob's clerk"} if owner == Owner("clerk") else listed
    assert names([hit.record.content for hit in hits]) == own | recalled


@pytest.mark.parametrize("agent", ["clerk", "helper"])
@pytest.mark.parametrize("user", [ANN, BOB])
async def test_the_administrator_recalls_what_a_run_of_the_agent_for_the_user_recalls(
    world: World, desk: MemoryDesk, agent: str, user: str
) -> None:
    asked = order(("recall_memory", {"query": ALL, "top_k": 20}))
    result = await world.run(agent, asked, instance=f"of-{user}", user={"id": user})
    [answer] = json.loads(result["output"])
    hits = (await desk.recall(Owner(agent, user_id=user), ALL, top_k=20)).result.hits
    # in another order: the run reads its query together with its conversation
    assert sorted(memory["content"] for memory in answer["memories"]) == sorted(hit.record.content for hit in hits)
    await world.settled()


async def test_an_owner_who_is_a_user_changes_only_their_own_memories(world: World, desk: MemoryDesk) -> None:
    records = {record.content: record.id for record in (await desk.list(Owner(), conditions={})).records}
    for place, content in ((place, f"The bike of {place}.") for place in PLACES):
        mine = place.startswith("ann")
        record_id = records[content]
        if mine:
            assert (await desk.edit(Owner(user_id=ANN), record_id, {"importance": 0.9})).importance == 0.9
            assert (await desk.get(Owner(user_id=ANN), record_id)).known.record.id == record_id
        else:
            for tried in (
                desk.edit(Owner(user_id=ANN), record_id, {"content": "Mine."}),
                desk.forget(Owner(user_id=ANN), record_id),
            ):
                with raises(NotFound, code="no_such_memory"):
                    await tried
    for place in ("bob", "bob's clerk"):
        with raises(NotFound, code="no_such_memory"):
            await desk.get(Owner(user_id=ANN), records[f"The bike of {place}."])
    await desk.forget(Owner("clerk", user_id=ANN), records["The bike of ann's clerk."])
    with raises(InvalidInput, code="invalid_scope"):
        await desk.list(Owner(house="shop", user_id=ANN), conditions={})


async def test_the_tools_over_mcp_reach_the_memory_of_the_user_whom_the_address_names(desk: MemoryDesk) -> None:
    tools = MemoryTools(desk, Owner("clerk", user_id=ANN), "operator")
    found = json.loads((await tools.call("recall", {"query": ALL, "top_k": 50})).text)["memories"]
    assert names([memory["content"] for memory in found]) == {"ann's clerk", "clerk", "house", "tenant"}
    made = json.loads((await tools.call("remember", {"content": "Rides on Sundays."})).text)
    page = await desk.list(Owner("clerk", user_id=ANN), conditions={})
    assert made["id"] in {record.id for record in page.records}
    with raises(NotFound, code="no_such_memory"):
        await MemoryTools(desk, Owner("clerk", user_id=BOB), "viewer").call("get", {"id": made["id"]})


async def test_a_recall_for_an_unknown_user_makes_no_user(world: World, desk: MemoryDesk) -> None:
    for owner in (Owner(user_id="carl"), Owner("sdr", user_id="carl")):
        await desk.recall(owner, ALL)
    users = Users(world.sql, "acme", world.clock, system_time_zones)
    page = await users.page(limit=50, cursor=None)
    assert [row["id"] for row in page.users] == [ANN, BOB]
    with raises(NotFound, code="no_such_user"):
        await users.show("carl")


async def test_users_are_listed_by_page_shown_with_counts_and_described_in_advance(
    world: World, desk: MemoryDesk
) -> None:
    users = Users(world.sql, "acme", world.clock, system_time_zones)
    assert await users.put("carl", "Carl", "fr-CH", "Europe/Zurich")
    assert not await users.put("carl", "Karl", None, None)
    with raises(InvalidInput, code="unknown_time_zone"):
        await users.put("carl", "Carl", None, "Europe/Atlantis")
    shown = await users.show("carl")
    assert (shown["name"], shown["locale"], shown["last_run_at_ms"]) == ("Karl", None, None)
    assert shown["counts"] == {"memories": 0, "conversations": 0, "runs": 0, "items": 0}
    await world.run("clerk", order(say="hi"), instance="of-carl", user={"id": "carl", "name": "Carl"})
    await world.settled()
    shown = await users.show("carl")
    assert (shown["name"], shown["counts"]) == ("Carl", {"memories": 0, "conversations": 1, "runs": 1, "items": 0})
    assert shown["last_run_at_ms"] == world.clock()
    counts: Any = (await users.show(ANN))["counts"]
    assert counts["memories"] == 3
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await users.page(limit=2, cursor=cursor)
        found += [row["id"] for row in page.users]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [ANN, BOB, "carl"]
    with raises(InvalidInput, code="invalid_cursor"):
        await users.page(limit=2, cursor="*")
    with raises(InvalidInput, code="invalid_user"):
        await users.put("carl", "Carl\n", None, None)
