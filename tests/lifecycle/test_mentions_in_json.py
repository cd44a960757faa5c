"""An erasure by mention finds a term in JSON that is stored inside a text."""

from __future__ import annotations

import json

import pytest

from retain.memory.records.record import NewRecord
from tests.agents.conftest import agent
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.lifecycle.erasable import erased
from tests.lifecycle.world import World, living
from tests.support.instances import catalogue

NAME = "Zelda Quux"


@pytest.mark.parametrize("name", [NAME, "Hôtel Zoë"])
async def test_the_answer_of_a_function_tool_is_searched_wherever_it_is_kept(name: str) -> None:
    made = catalogue(
        agent("reader", functions=["read_mail"]), functions={"read_mail": "tests.agents.declared_functions"}
    )
    chat = SteppedChat(calls(("read_mail", {})), says("It asks for a call back."))
    world = World(made, chat=lambda _: chat)
    try:
        await world.sql.run("INSERT OR IGNORE INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        await world.run("reader", "What does the newest mail say?", tenant="acme")
        await world.settled()
        await world.rest()
        assert {place.partition("/")[2] for place in world.mentions(NAME)} >= {"memory_episodes", "run_events"}
        await erased(world, subject=name)
        assert world.mentions(NAME) == []
    finally:
        world.close()


async def test_json_within_the_json_of_an_item_is_searched() -> None:
    with living() as world:
        value = json.dumps({"raw": json.dumps({"text": f"Regards,\n{NAME}"})})
        place = {"tenant_id": "acme", "key": "crm:acme:s1:note:n1", "namespace_key": "crm:acme:s1"}
        world.plant("memory_items", **place, kind="note", tier="warm", value=value)
        assert world.mentions(NAME)
        await erased(world, subject=NAME)
        assert world.mentions(NAME) == []


async def test_a_memory_that_is_json_is_searched_with_its_escapes_undone() -> None:
    with living() as world:
        content = json.dumps({"note": f"Signed,\n{NAME}"})
        await world.store_all([NewRecord(content), NewRecord("A lamp.")])
        assert world.mentions(NAME)
        await erased(world, subject=NAME)
        assert world.mentions(NAME) == []
        assert [row["content"] for row in world.sql_now("SELECT content FROM memory_records")] == ["A lamp."]
