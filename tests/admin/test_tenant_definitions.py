"""How tenants define agents: what is checked, what is bounded, and changes at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retain.admin.definitions import defining
from retain.admin.definitions.checking import MAX_PROBLEMS, TenantModels
from retain.admin.definitions.defining import MAX_AGENTS, MAX_VERSIONS, VERSIONS_KEPT_MS, DefinedAgents
from retain.agents.versions.tenant_agents import TenantAgents
from retain.agents.versions.version import MAX_DEFINITION_BYTES
from retain.errors import InvalidInput, RetainError
from retain.host.clock import ManualClock
from tests.support.databases import migrated_d1
from tests.support.instances import catalogue

WHOLE: dict[str, Any] = {"description": "Helps.", "instructions": "Help.", "model": {"script": "support"}}


class Desk:
    """Agents that are defined in a database of their own."""

    def __init__(self, models: TenantModels) -> None:
        self.sql = migrated_d1()
        self.clock = ManualClock()
        self.agents = TenantAgents(catalogue(), self.sql, self.clock)
        self.defined = DefinedAgents(self.agents, self.sql, self.clock, lambda: models)

    async def define(self, name: str = "helper", based_on: int | None = None, **more: Any) -> tuple[int, bool]:
        """Return the version that an agent has then, and whether it is new."""
        done = await self.defined.define("acme", name, {**WHOLE, **more}, by="person:ann", based_on=based_on)
        return done.version.version, done.added

    async def fill(self, count: int, *, agents: int = 1) -> None:
        """Write so many versions, of so many agents, in turn."""
        rows = [[f"filled{number % agents}", number // agents + 1] for number in range(count)]
        await self.sql.run(
            "INSERT INTO agent_versions (tenant_id, agent_type, version, definition, digest, created_by, created_at_ms)"
            " SELECT 'acme', value ->> 0, value ->> 1, '{}', '', 'person:ann', ? FROM json_each(?)",
            self.clock(),
            json.dumps(rows),
        )


@pytest.fixture
def desk() -> Desk:
    return Desk(TenantModels("scripted", "", (), ("*",)))


async def refused(work: Any) -> str:
    with pytest.raises(RetainError) as error:
        await work
    return error.value.code


async def test_equal_content_adds_no_version_and_a_change_is_based_on_one(desk: Desk) -> None:
    assert [await desk.define(), await desk.define(), await desk.define(type="helper")] == [
        (1, True),
        (1, False),
        (1, False),
    ]
    assert await desk.define(based_on=1, instructions="Help more.") == (2, True)
    assert await refused(desk.define(based_on=1, instructions="Help less.")) == "agent_changed"
    assert await refused(desk.define(based_on=0, instructions="Help less.")) == "agent_changed"
    assert await desk.define(based_on=1, instructions="Help more.") == (2, False), "the same request again"
    assert await refused(desk.define(based_on=3, instructions="Help more.")) == "agent_changed", (
        "it never had that version"
    )
    assert await desk.define("other", based_on=0) == (1, True)


async def test_an_agent_has_nothing_of_another_tenant_s_of_the_same_name(desk: Desk) -> None:
    async def of_rival() -> list[Any]:
        rows = await desk.sql.run("SELECT * FROM agent_versions WHERE tenant_id = 'rival' ORDER BY version")
        return [rows.rows, await desk.defined.versions("rival", "helper", before=99, limit=99)]

    for number in range(3):
        await desk.defined.define("rival", "helper", {**WHOLE, "instructions": f"Rival {number}."}, by="person:eve")
    before = await of_rival()
    assert await desk.define(based_on=0) == (1, True)
    assert await desk.define(instructions="Help more.") == (2, True)
    assert [one.version for one in await desk.defined.versions("acme", "helper", before=99, limit=99)] == [2, 1]
    assert await refused(desk.defined.version("acme", "helper", 3)) == "no_such_agent_version"
    assert (await desk.defined.roll_back("acme", "helper", 1, by="person:ann")).version.version == 3
    assert (await desk.defined.current("acme", "helper")).version == 3
    await desk.defined.delete("acme", "helper", by="person:ann")
    assert await of_rival() == before
    assert (await desk.defined.current("rival", "helper")).version == 3


async def test_a_delegate_is_not_deleted_while_another_agent_names_it(desk: Desk) -> None:
    await desk.define()
    await desk.define("boss", delegates=["helper", "refund_decision"])
    assert await refused(desk.defined.delete("acme", "helper", by="person:ann")) == "agent_in_use"
    await desk.define("boss", delegates=[])
    for _ in range(2):
        await desk.defined.delete("acme", "helper", by="person:ann")
    assert await refused(desk.define("boss", delegates=["helper"])) == "invalid_agent"
    assert (await desk.defined.roll_back("acme", "helper", 1, by="person:ann")).version.version == 3
    assert await refused(desk.defined.delete("acme", "sdr", by="person:ann")) == "agent_of_repository"
    assert await refused(desk.defined.delete("acme", "nobody", by="person:ann")) == "unknown_agent"


async def test_a_definition_has_a_largest_size(desk: Desk) -> None:
    whole: dict[str, Any] = {"procedures": {"mail": {f"w{number}": "x" * 4_000 for number in range(14)}}}
    made = await desk.defined.define("acme", "helper", {**WHOLE, **whole}, by="person:ann")
    room = MAX_DEFINITION_BYTES - len(made.version.definition_text or "") + len(WHOLE["instructions"])
    assert await refused(desk.define(**whole, instructions="x" * (room + 1))) == "agent_too_large"
    await desk.define(**whole, instructions="x" * room)
    assert len((await desk.defined.current("acme", "helper")).definition_text or "") == MAX_DEFINITION_BYTES


async def test_a_recall_needs_a_memory(desk: Desk) -> None:
    checked = await desk.defined.check("acme", "helper", {**WHOLE, "memory_config": {"recall": "both"}})
    assert [problem.pointer for problem in checked.problems] == ["/memory_config/recall"]
    enabled = {"memory_config": {"recall": "both", "long_term_enabled": True}}
    assert (await desk.defined.check("acme", "helper", {**WHOLE, **enabled})).problems == []


async def test_an_answer_names_a_bounded_number_of_problems(desk: Desk) -> None:
    checked = await desk.defined.check(
        "acme", "helper", {**WHOLE, **{f"x{number}": 1 for number in range(MAX_PROBLEMS + 1)}}
    )
    assert len(checked.problems) == MAX_PROBLEMS
    with pytest.raises(InvalidInput) as error:
        await desk.define(limits={"a/b~": 1})
    assert error.value.details["problems"] == ["/limits/a~1b~0: Extra inputs are not permitted"]


async def test_a_tenant_has_a_bounded_number_of_agents(desk: Desk) -> None:
    await desk.fill(MAX_AGENTS - 1, agents=MAX_AGENTS - 1)
    await desk.define()
    assert await refused(desk.define("other")) == "too_many_agents"
    assert await desk.define(instructions="Help more.") == (2, True)
    await desk.defined.delete("acme", "helper", by="person:ann")
    assert await desk.define("other") == (1, True)


async def test_versions_are_bounded_and_the_oldest_go_after_ninety_days(desk: Desk) -> None:
    await desk.define()
    await desk.fill(MAX_VERSIONS - 1)
    assert await refused(desk.define(instructions="Help more.")) == "too_many_agent_versions"
    desk.clock.advance(VERSIONS_KEPT_MS + 1)
    assert await desk.define(instructions="Help more.") == (2, True)
    rows = (
        await desk.sql.run(
            "SELECT COUNT(*) AS n, MAX(version) AS newest FROM agent_versions WHERE agent_type = 'filled0'"
        )
    ).rows
    assert rows[0]["newest"] == MAX_VERSIONS - 1
    assert rows[0]["n"] == MAX_VERSIONS - 1 - defining._REMOVED_AT_ONCE


async def test_models_are_those_of_the_deployment_of_the_repository_and_of_the_list() -> None:
    desk = Desk(TenantModels("openai", "small", [("openai", "large"), (None, None)], ["anthropic/wise"]))
    for model in ({}, {"name": "small"}, {"name": "large"}, {"provider": "anthropic", "name": "wise"}):
        await desk.define(model=model)
    for model in ({"name": "huge"}, {"provider": "anthropic", "name": "other"}, {"provider": "anthropic"}):
        assert await refused(desk.define(model=model)) == "invalid_agent"
