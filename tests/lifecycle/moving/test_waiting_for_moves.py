"""What waits for the end of a move, what a move waits for, and a move that fails without end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from retain.errors import Unavailable
from retain.lifecycle.moving.mover import FAILURES, GIVEN_UP
from retain.shards.place import HOME
from tests.lifecycle.moving.deployment import living
from tests.lifecycle.moving.features import ADMIN, AGENTS, CATCH_UP, KEPT_MS, agents
from tests.shell.worker import Worker, serving
from tests.support.databases import connection_of
from tests.support.faults import Fault

EVALS = f"{ADMIN}/evals"
_CASE = {"id": "one", "input": "hello", "expected": {"excludes": ["nothing of this"]}}
_DATASET = {"target": {"agent": "guide"}, "cases": [_CASE]}


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    """Serve two databases; the tenant is on the first."""
    async with serving(agents=agents(), shards="2") as served:
        await served.tenant("acme")
        yield served


async def step(worker: Worker, target: str = "DB_1") -> Any:
    """Take a step of the tenant's move."""
    answer = await worker.request("POST", f"{ADMIN}/shard", {"shard": target})
    worker.clock.advance(KEPT_MS)
    return answer


async def moved(worker: Worker, target: str = "DB_1") -> None:
    for _ in range(12):
        if (await step(worker, target)).status == 200:
            return
    raise AssertionError("the move does not end")


async def left(worker: Worker, tenant: str) -> dict[str, set[str]]:
    """Return the tables that have a row of a tenant, by database, except those that keep what happened."""
    kept = {"world_history", "mutation_log", "mutation_subjects", "erasure_receipts", "erased_tenants", "tenant_places"}
    found: dict[str, set[str]] = {}
    for shard, database in worker.shards.items():
        tables = [
            row[0]
            for row in connection_of(database.store).execute(
                "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'tenant_id'"
                " WHERE m.type = 'table'"
            )
        ]
        rows = {
            table
            for table in tables
            if connection_of(database.store).execute(f"SELECT 1 FROM {table} WHERE tenant_id = ?", (tenant,)).fetchone()
        }
        found[shard] = rows - kept - {"tenant_moves"}
    return found


async def test_an_evaluation_waits_for_the_move_and_leaves_nothing_where_its_tenant_was(worker: Worker) -> None:
    assert (await worker.request("PUT", f"{EVALS}/datasets/set", _DATASET)).status == 201
    assert (await step(worker)).content["step"] == "copy"
    begun = await worker.request("POST", f"{EVALS}/runs", {"dataset": "set"})
    await worker.settled()
    assert (begun.status, begun.content["code"]) == (503, "tenant_moving")
    [run] = (await worker.request("GET", f"{EVALS}/runs")).content["runs"]
    assert run["state"] == "running"
    await moved(worker)
    for _ in range(4):
        await worker.request("POST", f"{EVALS}/runs/{run['run_id']}")
        await worker.settled()
        worker.clock.advance(KEPT_MS)
    [run] = (await worker.request("GET", f"{EVALS}/runs")).content["runs"]
    assert (run["state"], run["passed"]) == ("completed", 1)
    scratch = f"eval-{run['run_id'].lower()}-0"
    assert await left(worker, scratch) == {HOME: set(), "DB_1": set()}


async def test_a_case_that_began_before_the_move_holds_the_switch_up_until_its_scratch_tenant_is_gone(
    worker: Worker,
) -> None:
    while (await step(worker)).content["step"] != "switch":
        pass
    await worker.shards[HOME].store.run(
        "INSERT INTO eval_scratches (scratch_id, tenant_id, run_id, position, at_ms, stubs)"
        " VALUES ('s', 'acme', 'r', 0, 0, '{}')"
    )
    for _ in range(2):
        refused = await step(worker)
        assert (refused.status, refused.content["code"]) == (409, "tenant_busy")
        stored = await worker.request("POST", f"{ADMIN}/memories", {"content": "The tenant is not frozen."})
        assert stored.status in (200, 201), stored.body
    await worker.shards[HOME].store.run("DELETE FROM eval_scratches")
    await moved(worker)


@pytest.mark.parametrize("steps", range(5))
async def test_a_tenant_that_is_erased_while_it_moves_leaves_nothing_and_may_come_again(
    worker: Worker, steps: int
) -> None:
    stored = await worker.request("POST", f"{ADMIN}/memories", {"content": "The vault code is 7."})
    assert stored.status == 201
    ran = await worker.request("POST", f"{AGENTS}/guide/run", {"input": "hello", "instance_id": "desk"})
    assert ran.status == 200
    await worker.settled()
    for _ in range(steps):
        await step(worker)
    for _ in range(40):
        erased = await worker.request("DELETE", f"{ADMIN}?confirm=acme")
        if erased.status == 200:
            break
        worker.clock.advance(KEPT_MS)
        await worker.cron(CATCH_UP)
    assert erased.content["receipt"]["state"] == "completed"
    assert await left(worker, "acme") == {HOME: set(), "DB_1": set()}
    assert [await index.store.count() for index in worker.indexes.values()] == [0, 0]
    for database in worker.shards.values():
        assert [line for line in connection_of(database.store).iterdump() if "vault code" in line] == []
    assert (await worker.request("PUT", ADMIN)).status == 201
    again = await worker.request("POST", f"{ADMIN}/memories", {"content": "It begins again."})
    assert again.status == 201
    listed = (await worker.request("GET", f"{ADMIN}/memories")).content["memories"]
    assert [one["content"] for one in listed] == ["It begins again."]


@pytest.mark.parametrize("replayed", [False, True], ids=["asked for again", "replayed"])
async def test_an_erasure_that_stopped_during_a_move_is_settled_in_the_ledger_after_it(
    worker: Worker, replayed: bool
) -> None:
    await worker.request("POST", f"{ADMIN}/memories", {"content": "The vault code is 7."})
    await step(worker)
    for index in worker.indexes.values():
        index.down = True
    for _ in range(3):
        await worker.request("DELETE", f"{ADMIN}?confirm=acme")
    parked = "/admin/errors?stage=erasure&state=parked"
    [error] = (await worker.request("GET", parked)).content["errors"]
    for index in worker.indexes.values():
        index.down = False
    again = ("POST", f"/admin/errors/{error['error_id']}/replay") if replayed else ("DELETE", f"{ADMIN}?confirm=acme")
    for _ in range(40):
        assert (await worker.request(*again)).status in (200, 202)
        if not (await worker.request("GET", parked)).content["errors"]:
            break
        worker.clock.advance(KEPT_MS)
        await worker.cron(CATCH_UP)
    assert (await worker.request("GET", parked)).content["errors"] == []
    assert await left(worker, "acme") == {HOME: set(), "DB_1": set()}


async def test_a_run_that_waits_is_answered_after_the_move_even_if_its_object_lost_its_storage(worker: Worker) -> None:
    begun = await worker.request("POST", f"{AGENTS}/clerk/run", {"input": "pay", "instance_id": "till"})
    assert begun.status == 202
    await worker.settled()
    await moved(worker)
    worker.restart()
    worker.agents.storages.pop("clerk:acme:till").connection.close()
    path = f"{AGENTS}/clerk/instances/till/runs/{begun.content['run_id']}"
    waits = (await worker.request("GET", path)).content["waiting_for"]
    answered = await worker.request("POST", f"{path}/resume", {"call": waits["call"], "decision": "approve"})
    assert answered.status in (200, 202), answered.body
    await worker.settled()
    log = await worker.rows("SELECT kind FROM run_events WHERE run_id = ?", begun.content["run_id"])
    assert "tool_answered" in {row["kind"] for row in log}, "the tool was called"


async def test_a_move_that_fails_does_not_hold_up_others_and_is_undone_after_a_day() -> None:
    with living() as deployment:
        for tenant in ("first", "second", "third"):
            await deployment.register(tenant)
            await deployment.mover.start(tenant, "DB_2" if tenant == "third" else "DB_1", "person:ada")
            deployment.clock.advance(1)
        before = deployment.rows(HOME, "first")
        for call in range(GIVEN_UP + 20):
            deployment.faults._planned.clear()
            for number in range(1, 40):
                deployment.faults.plan(Fault(Unavailable("down"), number, "sql DB_1.batch"))
                deployment.faults.plan(Fault(Unavailable("down"), number, "sql DB_1.run"))
            await deployment.mover.continue_open(2)
            deployment.clock.advance(KEPT_MS)
            if call == 20:
                assert "tenants" in deployment.rows("DB_2", "third"), "it was moved meanwhile"
        stuck = await deployment.mover.moves.find("first")
        assert stuck is not None
        assert stuck.counts[FAILURES] > 100
        deployment.faults._planned.clear()
        move = stuck
        while move.counts.get(FAILURES, 0) < GIVEN_UP:
            deployment.faults.plan(Fault(Unavailable("down"), 1, "sql DB_1.run"))
            deployment.faults.plan(Fault(Unavailable("down"), 1, "sql DB_1.batch"))
            with pytest.raises(Unavailable):
                await deployment.mover.advance(move)
            deployment.faults._planned.clear()
            move = await deployment.mover.moves.get("first", move.move_id)
        for _ in range(6):
            await deployment.mover.continue_open(2)
            deployment.clock.advance(KEPT_MS)
        assert (await deployment.mover.moves.get("first", move.move_id)).state == "cancelled"
        assert deployment.rows(HOME, "first") == before


async def test_a_move_whose_freezes_always_end_too_soon_is_undone_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retain.lifecycle.moving.mover.FREEZE_MS", -1)
    monkeypatch.setattr("retain.lifecycle.moving.mover.GIVEN_UP", 3)
    with living(2) as deployment:
        await deployment.register("acme")
        before = deployment.rows(HOME, "acme")
        move = await deployment.mover.start("acme", "DB_1", "person:ada")
        for _ in range(30):
            await deployment.mover.continue_open(2)
            deployment.clock.advance(KEPT_MS)
        move = await deployment.mover.moves.get("acme", move.move_id)
        assert (move.state, move.counts["freezes"]) == ("cancelled", 3)
        assert deployment.rows(HOME, "acme") == before


async def test_an_item_that_is_put_for_a_user_while_the_erasure_waits_is_erased_as_well(worker: Worker) -> None:
    path = f"{ADMIN}/items/shop/s-1/cart/one"
    states = []
    for text in ("before", "meanwhile"):
        assert (await worker.request("PUT", path, {"value": text, "user_id": "ann"})).status in (200, 201)
        states.append((await worker.request("POST", f"{ADMIN}/erase", {"user": "ann"})).status)
        worker.clock.advance(KEPT_MS)
    while states[-1] == 202 and len(states) < 9:
        states.append((await worker.request("POST", f"{ADMIN}/erase", {"user": "ann"})).status)
        worker.clock.advance(KEPT_MS)
    assert (states[0], states[-1]) == (202, 200)
    assert await worker.rows("SELECT * FROM memory_items") == []


async def test_a_restore_waits_for_an_erasure_of_the_tenant_whose_backup_it_reads_wherever_that_lives(
    worker: Worker,
) -> None:
    await worker.tenant("other")
    for _ in range(12):
        await worker.request("POST", "/admin/tenants/other/shard", {"shard": "DB_1"})
        worker.clock.advance(KEPT_MS)
    for _ in range(3):
        await worker.request("POST", "/admin/tenants/other/backups")
    receipt = (
        "INSERT INTO erasure_receipts (receipt_id, tenant_id, kind, state, request_digest, request, salt, step, counts,"
        " started_at_ms, updated_at_ms) VALUES ('r', 'other', 'user', 'running', '', '{}', '', 'rows', '{}', 0, 0)"
    )
    connection_of(worker.shards["DB_1"].store).execute(receipt)
    refused = await worker.request("POST", f"{ADMIN}/restore", {"from": "other"})
    assert (refused.status, refused.content["code"]) == (409, "erasure_running")
    connection_of(worker.shards["DB_1"].store).execute("DELETE FROM erasure_receipts")
    assert (await worker.request("POST", f"{ADMIN}/restore", {"from": "other"})).status in (200, 202)
