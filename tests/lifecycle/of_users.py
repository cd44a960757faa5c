"""A tenant with two users, and canaries of each that came in through every door."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from retain.agents.catalogue import AgentCatalogue
from retain.items.builder import MemoryBuilder
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.lifecycle.erasure.eraser import Erasure, Outcome
from retain.memory.records.record import NewRecord, RecordSource
from retain.namespace import Namespace
from tests.e2e.puppet import order
from tests.lifecycle.world import World
from tests.support.instances import catalogue
from tests.support.obedient_chat import ObedientChat

ANN, BOB = "ann@shop.example", "bob|7"
DOORS = ("said", "stored", "noted", "delegated", "seeded", "deleted", "shared-user", "arrived", "ingested", "item")


def canary(user: str, door: str) -> str:
    """Return the text that came in through a door of a user. Words, so that every store could find it."""
    return f"canary {'ann' if user == ANN else 'bob'}secret{door.replace('-', '')}"


def agents() -> AgentCatalogue:
    """Return a clerk that may do everything, and a helper that it may call."""
    about = {"description": "Helps.", "instructions": "Help.", "working_memory": True}
    memory = {"long_term_enabled": True, "recall": "both"}
    return catalogue(
        {"type": "clerk", **about, "memory_config": memory, "delegates": ["helper"], "house": "shop"},
        {"type": "helper", **about, "memory_config": {**memory, "user": "shared", "episodes_from": "user"}},
    )


def shop(chat: ObedientChat | None = None) -> World:
    """Return an empty deployment with these agents."""
    model = chat or ObedientChat()
    return World(agents(), lambda _: model)


async def fill(world: World, user: str, tenant: str = "acme") -> None:
    """Let the canaries of a user of a tenant in."""

    def of(door: str) -> str:
        return canary(user, door)

    name = "ann" if user == ANN else "bob"
    store = ("store_memory", {"content": f"Likes {of('stored')}."})
    note = ("set_working_memory", {"key": "note", "value": of("noted")})
    hand_on = (
        "delegate",
        {"agent": "helper", "input": order(("store_memory", {"content": of("delegated")}), say="ok")},
    )
    first = order(say=f"Before anybody signed in: {of('said')}")
    await world.run("clerk", first, tenant=tenant, instance=f"desk-{name}")
    whole = order(store, note, hand_on, say=of("said"))
    await world.run("clerk", whole, tenant=tenant, instance=f"desk-{name}", user={"id": user, "name": of("said")})
    await world.settled()
    person = RecordSource("person")
    await world.memory(tenant, "clerk", house="shop", user_id=user).store(NewRecord(of("seeded")), person)
    everywhere = world.memory(tenant, user_id=user)
    gone = await everywhere.store(NewRecord(of("deleted")), person)
    await everywhere.delete(gone.id, person)
    await everywhere.store(NewRecord(of("shared-user")), person)
    scope = everywhere.scope.scope_id
    ingest: dict[str, Any] = {
        "tenant_id": tenant,
        "scope_id": scope,
        "job_id": f"job-{tenant}-{name}",
        "conversation": of("ingested"),
    }
    world.plant("ingest_jobs", **ingest, state="running", user_id=user)
    message = {**ingest, "position": 0, "message_index": 0}
    world.plant("ingest_messages", **message, speaker="Ann", content=of("ingested"), state="received")
    place = Namespace("shop", tenant, f"session-{name}")
    hot = MemoryBuilder(place, world.clock).with_hot(KvHot(world.kv)).with_warm(SqlWarm(world.sql, tenant, world.clock))
    await hot.with_rules(write_through=False).build().put("cart", "2", of("item"), user_id=user)
    builder = MemoryBuilder(place, world.clock).with_hot(KvHot(world.kv))
    builder = builder.with_warm(SqlWarm(world.sql, tenant, world.clock)).with_cold(ObjectsCold(world.objects_store))
    items = builder.build()
    for kind in ("cart", "conversation", "order_history", "session_state"):
        await items.put(kind, "1", of("item"), user_id=user)
    failed = json.dumps(["run", tenant, "clerk", "lost", None, of("said"), "model", 1, user])
    key = f"clerk:{tenant}:lost-{name}"
    world.plant("outbox_failures", instance_key=key, entry_id=1, tenant_id=tenant, parameters=failed)
    more = {"instance_key": key, "entry_id": 2, "tenant_id": tenant, "parameters": json.dumps([of("said")])}
    world.plant("outbox_failures", **more)


@asynccontextmanager
async def two_users() -> AsyncIterator[World]:
    """Yield a shop with the canaries of both users, without what waits for something else, and close it."""
    world = shop()
    try:
        for user in (ANN, BOB):
            await fill(world, user)
        for table in ("ingest_jobs", "ingest_messages", "outbox_failures"):
            world.sql_now(f"DELETE FROM {table}")
        yield world
    finally:
        world.close()


async def erased(world: World, user: str, tenant: str = "acme") -> Outcome:
    """Erase a user, until it is complete; return the outcome."""
    return await world.completed(lambda: Erasure(world.stores()).erase_user(tenant, user))


async def forgotten(world: World, text: str) -> Outcome:
    """Erase what mentions a text, until it is complete; return the outcome."""
    return await world.completed(lambda: Erasure(world.stores()).erase_subject("acme", text, "mention"))
