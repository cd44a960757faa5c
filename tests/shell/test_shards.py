"""The Worker with two databases: what its parts need is where they look for it, also while tenants move."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from retain.errors import Unavailable
from retain.ledgers.errors import Trouble, error_id_of, park, settle
from retain.shards.place import HOME, shard_here
from tests.shell.worker import Worker, serving

BRIEF = "0 4 * * *"
CATCH_UP = "*/5 * * * *"
_PLACE = "SELECT shard FROM tenant_places WHERE tenant_id = ?"


@pytest.fixture
async def sharded() -> AsyncIterator[Worker]:
    """A Worker with two databases: `other` lives on the first, `acme` on the second."""
    async with serving(shards="2") as worker:
        for tenant in ("other", "acme"):
            await worker.tenant(tenant)
        assert [await shard(worker, tenant) for tenant in ("other", "acme")] == [HOME, "DB_1"]
        yield worker


async def shard(worker: Worker, tenant: str) -> str:
    return str((await worker.request("GET", f"/admin/tenants/{tenant}/shard")).content["shard"])


async def test_an_evaluation_s_scratch_tenants_live_where_its_tenant_does(sharded: Worker) -> None:
    case = {"id": "one", "input": "Good morning!", "expected": {"excludes": ["nothing of this"]}}
    dataset = {"target": {"agent": "order_triage"}, "cases": [case]}
    assert (await sharded.request("PUT", "/admin/tenants/acme/evals/datasets/set", dataset)).status == 201
    begun = await sharded.request("POST", "/admin/tenants/acme/evals/runs", {"dataset": "set"})
    await sharded.settled()
    scratch = f"eval-{begun.content['run']['run_id'].lower()}-0"
    for database, elsewhere in (
        (HOME, "DB_1"),
        ("DB_1", None),
    ):  # it is erased when its case has ended, where it lived is known
        rows = (await sharded.shards[database].store.run(_PLACE, scratch)).rows
        assert [row["shard"] for row in rows] == [elsewhere], database


async def test_a_brief_is_written_for_each_database_and_waits_while_a_tenant_moves(sharded: Worker) -> None:
    await sharded.cron(BRIEF)
    briefs = (await sharded.cold.store.list("briefs/")).keys
    assert len([key for key in briefs if ".DB_1." in key]) == 1
    assert len(briefs) == 2
    [of_second] = [await sharded.cold.store.get(key) for key in briefs if ".DB_1." in key]
    of_tenants = "SELECT COUNT(*) AS n FROM memory_records WHERE tenant_id IN (SELECT tenant_id FROM tenants)"
    counted = (await sharded.shards["DB_1"].store.run(of_tenants)).rows[0]["n"]
    assert json.loads(of_second or b"")["rows"]["memory_records"] == counted
    moving = await sharded.request("POST", "/admin/tenants/acme/shard", {"shard": HOME})
    assert (moving.status, moving.content["step"]) == (202, "copy")
    sharded.clock.advance(24 * 3600 * 1000)
    await sharded.cron(BRIEF)
    assert len((await sharded.cold.store.list("briefs/")).keys) == 2
    for _ in range(10):
        sharded.clock.advance(10 * 60_000)
        await sharded.cron(CATCH_UP)
    assert await shard(sharded, "acme") == HOME
    assert (await sharded.request("GET", "/admin/moves")).content["moves"][0]["state"] == "completed"
    sharded.clock.advance(6 * 3600 * 1000)
    await sharded.cron(CATCH_UP)
    assert len((await sharded.cold.store.list("briefs/")).keys) == 4, "what had to wait was repeated"


@pytest.mark.parametrize("failure", [Unavailable("full", code="database_full"), ValueError("a fault of Retain")])
@pytest.mark.parametrize("schedule", [BRIEF, CATCH_UP])
async def test_a_database_on_which_work_fails_keeps_neither_another_nor_a_move_from_its_turn(
    sharded: Worker, monkeypatch: pytest.MonkeyPatch, failure: Exception, schedule: str
) -> None:
    worked: list[str] = []

    async def failing_at_home(*_: object) -> None:
        worked.append(shard_here())
        if shard_here() == HOME:
            raise failure

    async def moving(*_: object) -> None:
        worked.append("moves")

    monkeypatch.setattr("retain.admin.catching_up.catch_up", failing_at_home)
    monkeypatch.setattr("assembly.scheduled._brief", failing_at_home)
    monkeypatch.setattr("retain.lifecycle.moving.mover.Mover.continue_open", moving)
    with pytest.raises(type(failure)):
        await sharded.cron(schedule)
    assert worked == [HOME, "DB_1"] + (["moves"] if schedule == CATCH_UP else [])


async def test_numbers_for_every_tenant_are_on_each_database_and_its_own_history_is_on_the_first(
    sharded: Worker,
) -> None:
    assert (await sharded.request("PUT", "/admin/quotas", {"memories": 1})).status == 200
    for tenant in ("other", "acme"):
        stored = [
            (await sharded.request("POST", f"/admin/tenants/{tenant}/memories", {"content": text})).status
            for text in ("One.", "Two.")
        ]
        assert stored == [201, 507], tenant
    entries = (await sharded.request("GET", "/admin/history/mutations")).content["entries"]
    assert [entry["kind"] for entry in entries] == ["quota_set", "quota_set"]


@pytest.mark.parametrize(("verb", "state"), [("replay", "replayed"), ("dismiss", "dismissed")])
async def test_work_that_failed_on_several_databases_is_one_error_that_is_dealt_with_on_each(
    sharded: Worker, verb: str, state: str
) -> None:
    trouble = Trouble("cron", "pruned", "unavailable", sharded.clock())
    error_id = error_id_of("", "cron", "pruned")
    for database in sharded.shards.values():
        await park(database.store, trouble)
    sharded.clock.advance(1)
    await settle(sharded.db.store, sharded.clock(), ("", "cron", "pruned"))  # it has succeeded on the first one since
    shown = (await sharded.request("GET", f"/admin/errors/{error_id}")).content
    assert shown["state"] == "parked", "on the second it has not"
    for settled in (HOME, None):  # what is parked on one, then what is parked on both
        if settled is None:
            sharded.clock.advance(1)
            for database in sharded.shards.values():
                await park(database.store, Trouble("cron", "pruned", "unavailable", sharded.clock()))
            sharded.clock.advance(1)
        dealt = await sharded.request("POST", f"/admin/errors/{error_id}/{verb}")
        assert dealt.status == 200, dealt.body
        rows = await sharded.rows("SELECT state, settled_by FROM error_ledger WHERE error_id = ?", error_id)
        assert [row["state"] for row in rows] == ["replayed" if settled else state, state]
        assert rows[-1]["settled_by"] == "developer"


async def test_an_erased_tenant_leaves_its_database_and_may_be_registered_again(sharded: Worker) -> None:
    await sharded.request("POST", "/admin/tenants/acme/memories", {"content": "One."})
    while (answer := await sharded.request("DELETE", "/admin/tenants/acme?confirm=acme")).status == 202:
        pass
    assert answer.status == 200, answer.body
    for table in ("memory_records", "tenants", "memory_episodes"):
        assert await sharded.rows(f"SELECT 1 FROM {table} WHERE tenant_id = 'acme'") == []
    await sharded.tenant("acme")
    assert await shard(sharded, "acme") == "DB_1"


async def test_a_deployment_with_one_database_has_no_moves() -> None:
    async with serving() as worker:
        await worker.tenant()
        assert await shard(worker, "acme") == HOME
        assert (await worker.request("GET", "/admin/shards")).content == {"shards": []}
        refused = await worker.request("POST", "/admin/tenants/acme/shard", {"shard": "DB_1"})
        assert (refused.status, refused.content["code"]) == (409, "one_database")
