"""Backups and restores: nothing is missing, nothing erased returns, a point in time is exact where there is history."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from retain.admin.maintenance import backed_up as backed_up_daily
from retain.errors import Conflict, InvalidInput, NotFound, Unavailable
from retain.jobs import LEASE_MS
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.backups.jobs import BackupJob, BackupJobs
from retain.lifecycle.backups.objects import BackupObjects, Manifest
from retain.lifecycle.backups.restoring import RestoreRequest, Restoring
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.export import Page, export_page
from retain.lifecycle.stores import Stores
from retain.lifecycle.transfer.kinds import ROW_KINDS
from retain.namespace import Namespace
from retain.retention import DAY_MS
from retain.tenants.register import Tenants
from tests.e2e.puppet import order
from tests.lifecycle.of_users import ANN, BOB, canary, erased, fill, forgotten, shop, two_users
from tests.lifecycle.tiered import items_of
from tests.lifecycle.world import PERSON, World
from tests.ports import raises
from tests.support.faults import Crash, Fault

RUN, EVALUATION = "01K0000000000000000000000A", "01K0000000000000000000000B"
MINUTE_MS = 60_000


def plant_the_rest(world: World) -> None:
    """Add a row of every kind that no run leaves."""
    who = {"tenant_id": "acme", "agent_type": "clerk", "instance_id": "desk-ann"}
    world.plant("procedure_outcomes", run_id=RUN, **who, task_type="refund", workflow_id="w1", score=0.5, at_ms=7)
    world.plant("procedure_priors", **who, task_type="refund", workflow_id="w1", alpha=2.0, beta=1.5, at_ms=7)
    world.plant(
        "decision_log",
        decision_id=f"{RUN}.1",
        run_id=RUN,
        kind="approval",
        decision="granted",
        decided_by="eve",
        **who,
        at_ms=7,
    )
    world.plant(
        "decision_memories",
        decision_id=f"{RUN}.1",
        tenant_id="acme",
        kind="procedure",
        memory_id="w1",
        source="context",
    )
    space = {"tenant_id": "acme", "namespace_key": "shop:acme:session-1"}
    world.plant("chat_messages", **space, position=1, message='{"role": "user", "content": "Hello “you”"}')
    world.plant("vector_documents", **space, document_id="d-1", document='["text", {}]', embedding="", indexed=0)
    made = {"digest": "d" * 64, "created_by": "person:ada", "created_at_ms": 7}
    world.plant(
        "agent_versions", tenant_id="acme", agent_type="clerk", version=1, definition='{"type": "clerk"}', **made
    )
    world.plant("model_calls", tenant_id="acme", day=0, agent_type="", purpose="ingest", model="small", calls=3)
    dataset = {"tenant_id": "acme", "name": "refunds", "version": "a" * 64}
    world.plant("eval_datasets", **dataset, definition="{}", cases=1, current=1, updated_at_ms=7)
    world.plant("eval_cases", **dataset, position=0, content='{"id": "one"}')
    ended = {"state": "completed", "updated_at_ms": 7, "completed_at_ms": 7}
    world.plant(
        "eval_runs", run_id=EVALUATION, tenant_id="acme", dataset="refunds", version="a" * 64, definition="{}", **ended
    )
    scored = {"state": "scored", "outcome": "passed", "scored_at_ms": 7, "scores": "[]"}
    world.plant("eval_results", run_id=EVALUATION, tenant_id="acme", position=0, case_id="one", **scored)


@asynccontextmanager
async def planted_shop() -> AsyncIterator[World]:
    """Yield a shop with one user and a row of every kind, and close it."""
    world = shop()
    try:
        await fill(world, ANN)
        plant_the_rest(world)
        yield world
    finally:
        world.close()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with two_users() as world:
        plant_the_rest(world)
        world.clock.advance(MINUTE_MS)
        yield world


def backups(world: World, stores: Stores | None = None) -> Backups:
    return Backups(stores or world.stores(), 14)


async def backed_up(world: World) -> Manifest:
    for _ in range(20):
        job = await backups(world).advance("acme")
        if job.state == "completed":
            world.clock.advance(MINUTE_MS)
            return (await backups(world).manifests("acme"))[-1]
    raise AssertionError("the backup never completes")


async def restored(world: World, into: str, backup: str | None = None, at_ms: int | None = None) -> BackupJob:
    await Tenants(world.sql, world.clock).register(into)
    stores = world.stores()
    for _ in range(50):
        restoring = Restoring(stores, backups(world, stores), items_of(stores))
        job = await restoring.advance(into, RestoreRequest("acme", backup, at_ms))
        if job.state == "completed":
            return job
    raise AssertionError("the restore never completes")


async def lines_of(world: World, tenant: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = await export_page(world.stores(), tenant, cursor)
        found += [json.loads(line) for line in page.lines[:-1]]
        cursor = page.cursor
        if cursor is None:
            return found


def contents(lines: list[dict[str, Any]], tenant: str) -> Counter[str]:
    """Return what lines say, without what differs between two tenants: ids, places, the time of a restore."""
    different = {"tenant", "tenant_id", "id", "event_id", "source", "superseded_by", "last_run_id", "summary_through"}
    different |= {"run_id", "message_id", "episode_id", "decision_id", "parent_run_id", "at_ms", "memory_id"}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(one) for name, one in value.items() if name not in different}
        if isinstance(value, list):
            return [plain(one) for one in value]
        return value.replace(f":{tenant}:", ":TENANT:") if isinstance(value, str) else value

    return Counter(json.dumps(plain(line), sort_keys=True) for line in lines)


def lasting(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines without those of items that expire meanwhile, which a restore leaves out."""
    return [line for line in lines if not line.get("item", {}).get("expires_at_ms")]


async def test_a_restore_into_an_empty_tenant_gives_everything_that_the_tenant_has(world: World) -> None:
    before = await lines_of(world, "acme")
    assert {line["kind"] for line in before} == {"scope", "record", "user", "item", *ROW_KINDS}
    manifest = await backed_up(world)
    assert manifest.lines == len(before)
    job = await restored(world, "copy")
    assert contents(await lines_of(world, "copy"), "copy") == contents(before, "acme")
    rows = sum(line["kind"] in ROW_KINDS for line in before)
    assert (job.counts["rows"], job.counts["items"]) == (rows, sum(line["kind"] == "item" for line in before))
    again = await restored(world, "copy")
    assert (again.counts["rows"], again.counts["items"], again.counts["events"]) == (0, 0, 0)
    [entry] = world.sql_now(
        "SELECT COUNT(*) AS n FROM world_history WHERE tenant_id = 'copy' AND kind = 'tenant_restored'"
    )
    assert entry["n"] == 2


async def test_a_restore_into_the_same_tenant_brings_back_what_was_lost_and_keeps_what_is_newer(world: World) -> None:
    before = await lines_of(world, "acme")
    await backed_up(world)
    stores = world.stores()
    for table in (
        "conversation_messages",
        "memory_episodes",
        "run_events",
        "agent_runs",
        "conversations",
        "chat_messages",
    ):
        world.sql_now(f"DELETE FROM {table} WHERE tenant_id = 'acme'")
    client = items_of(stores)(Namespace("shop", "acme", "session-ann"))
    await client.put("conversation", "1", "newer", user_id=ANN)
    await client.delete("order_history", "1")
    await restored(world, "acme")
    assert await client.get("conversation", "1") == "newer"
    assert await client.get("order_history", "1") == canary(ANN, "item")
    rows = [line for line in before if line["kind"] in ROW_KINDS]
    after = [line for line in await lines_of(world, "acme") if line["kind"] in ROW_KINDS]
    assert contents(after, "acme") == contents(rows, "acme")
    assert {line["row"].get("run_id") for line in after} == {line["row"].get("run_id") for line in rows}


async def test_an_erased_user_is_in_no_backup_and_is_restored_from_none(world: World) -> None:
    await backed_up(world)
    assert any("annsecret" in content for content in _pages(world))
    await erased(world, ANN)
    assert not any("annsecret" in content or ANN in content for content in _pages(world))
    assert any("bobsecret" in content for content in _pages(world))
    for into in ("acme", "copy"):
        await restored(world, into)
        found = json.dumps(await lines_of(world, into))
        assert "annsecret" not in found
        assert ANN not in found
        assert "bobsecret" in found


async def test_what_an_instance_held_before_it_served_an_erased_user_is_in_no_backup(world: World) -> None:
    asked = order(say="Before anybody signed in: early-secret")
    await world.run("clerk", asked, instance="desk-early")
    await world.run("clerk", order(say="Of somebody else: other-secret"), instance="desk-other")
    await world.settled()
    run = world.sql_now("SELECT run_id FROM agent_runs WHERE instance_id = 'desk-early'")[0]["run_id"]
    who = {"tenant_id": "acme", "agent_type": "clerk", "instance_id": "desk-early"}
    decided = {"run_id": run, "decision_id": f"{run}.1", "kind": "outcome", "decided_by": "early-secret"}
    world.plant("decision_log", **decided, decision="granted", **who, at_ms=world.clock())
    memory = {"kind": "record", "memory_id": "early-secret", "source": "context"}
    world.plant("decision_memories", decision_id=f"{run}.1", tenant_id="acme", **memory)
    await backed_up(world)
    assert sum(page.count("early-secret") for page in _pages(world)) > 5
    await world.run("clerk", order(say="Signed in."), instance="desk-early", user={"id": ANN, "name": "Ann"})
    await world.settled()
    await erased(world, ANN)
    assert not any("early-secret" in page or run in page for page in _pages(world))
    await restored(world, "acme")
    assert not world.mentions("early-secret")
    assert "other-secret" in json.dumps(await lines_of(world, "acme"))


async def test_an_erasure_by_mention_reaches_backups(world: World) -> None:
    await backed_up(world)
    await forgotten(world, canary(ANN, "item"))
    assert not any(canary(ANN, "item") in content for content in _pages(world))
    await restored(world, "copy")
    assert canary(ANN, "item") not in json.dumps(await lines_of(world, "copy"))
    assert canary(BOB, "item") in json.dumps(await lines_of(world, "copy"))


async def test_an_erased_tenant_has_no_backup(world: World) -> None:
    manifest = await backed_up(world)
    await world.completed(lambda: Erasure(world.stores()).erase_tenant("acme"))
    assert not (await world.objects_store.list("backups/")).keys
    with raises(NotFound, code="no_such_backup"):
        await restored(world, "copy", manifest.backup_id)


async def test_history_is_restored_to_the_point_in_time_and_state_from_the_backup_before_it(world: World) -> None:
    base = await backed_up(world)
    world.clock.advance(MINUTE_MS)
    early = await world.store("Known in time.")
    then = world.clock()
    world.clock.advance(MINUTE_MS)
    await world.memory().delete(early, PERSON)
    await world.store("Known too late.")
    client = items_of(world.stores())(Namespace("shop", "acme", "session-ann"))
    await client.put("conversation", "1", "changed too late", user_id=ANN)
    await backed_up(world)
    job = await restored(world, "copy", at_ms=then)
    assert job.request["parts"][0]["backup_id"] == base.backup_id
    found = json.dumps(await lines_of(world, "copy"))
    assert "Known in time." in found
    assert "Known too late." not in found
    assert "changed too late" not in found
    copied = items_of(world.stores())(Namespace("shop", "copy", "session-ann"))
    assert await copied.get("conversation", "1") == canary(ANN, "item")
    assert "Known in time." in [hit.record.content for hit in await world.recall("known", tenant="copy")]


async def test_a_backup_waits_while_something_is_erased(world: World) -> None:
    await backed_up(world)
    await Erasure(world.stores()).erase_user("acme", ANN)
    with raises(Conflict, code="erasure_running"):
        await backups(world).advance("acme")
    with raises(Conflict, code="erasure_running"):
        await restored(world, "copy")


async def test_a_backup_that_crashes_anywhere_continues_and_is_whole(world: World) -> None:
    before = await lines_of(world, "acme")
    for nth in range(1, 60, 2):
        world.faults.plan(Fault(Crash() if nth % 4 == 1 else Unavailable("gone", code="d1_unavailable"), nth))
        with suppress(Crash, Unavailable):
            await backups(world).advance("acme")
        world.faults.cancel()
        world.clock.advance(3 * MINUTE_MS)  # the lease of a worker that died
    manifest = await backed_up(world)
    assert manifest.lines == len(before)
    await restored(world, "copy", manifest.backup_id)
    assert contents(lasting(await lines_of(world, "copy")), "copy") == contents(lasting(before), "acme")


async def test_a_restore_that_crashes_anywhere_continues_and_is_whole(world: World) -> None:
    before = await lines_of(world, "acme")
    await backed_up(world)
    await Tenants(world.sql, world.clock).register("copy")
    for nth in range(1, 120, 3):
        world.faults.plan(Fault(Crash() if nth % 2 else Unavailable("gone", code="d1_unavailable"), nth))
        stores = world.stores()
        with suppress(Crash, Unavailable):
            await Restoring(stores, backups(world, stores), items_of(stores)).advance("copy", RestoreRequest("acme"))
        world.faults.cancel()
        world.clock.advance(3 * MINUTE_MS)
    await restored(world, "copy")
    assert contents(lasting(await lines_of(world, "copy")), "copy") == contents(lasting(before), "acme")


async def test_the_daily_work_backs_up_who_is_due_once_a_day_and_only_where_it_is_wanted(world: World) -> None:
    await Tenants(world.sql, world.clock).register("acme")

    async def worked(*, daily: bool) -> Any:
        stores = world.stores()
        restoring = Restoring(stores, backups(world, stores), items_of(stores))
        return await backed_up_daily(backups(world, stores), restoring, stores, daily=daily)

    assert (await worked(daily=False))["daily"] == {}
    assert (await worked(daily=True))["daily"] == {"completed": 2}
    world.clock.advance(MINUTE_MS)
    assert (await worked(daily=True))["daily"] == {}
    for day in range(1, 20):
        world.clock.advance(DAY_MS)
        assert (await worked(daily=True))["daily"] == {"completed": 2}, day
    kept = await backups(world).manifests("acme")
    assert len(kept) in (14, 15)
    assert len(await backups(world).of("acme").all()) == len(kept), "older ones are gone"


async def test_a_backup_and_a_restore_that_were_interrupted_are_continued_by_the_daily_work(world: World) -> None:
    await backed_up(world)
    await Tenants(world.sql, world.clock).register("copy")
    stores = world.stores()
    restoring = Restoring(stores, backups(world, stores), items_of(stores))
    world.faults.plan(Fault(Unavailable("gone", code="d1_unavailable"), 30))
    with suppress(Unavailable):
        await restoring.advance("copy", RestoreRequest("acme"))
    for _ in range(5):
        world.clock.advance(3 * MINUTE_MS)
        await backed_up_daily(backups(world, stores), restoring, stores, daily=False)
    assert await BackupJobs(stores).all_open(10) == []
    assert contents(lasting(await lines_of(world, "copy")), "copy") == contents(
        lasting(await lines_of(world, "acme")), "acme"
    )


async def test_backups_that_wait_for_an_erasure_do_not_delay_those_of_other_tenants(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.admin.maintenance.JOBS_A_TIME", 1)
    monkeypatch.setattr("retain.admin.maintenance.TENANTS_PER_CALL", 1)
    stores = world.stores()
    restoring = Restoring(stores, backups(world, stores), items_of(stores))
    for tenant in ("acme", "beta", "gamma"):
        await Tenants(world.sql, world.clock).register(tenant)
    for tenant in ("acme", "beta"):
        world.faults.plan(Fault(Unavailable("gone", code="d1_unavailable"), 12))
        with suppress(Unavailable):
            await backups(world).advance(tenant)
        world.faults.cancel()
        world.clock.advance(3 * MINUTE_MS)
    assert [job.tenant_id for job in await BackupJobs(stores).all_open(10)] == ["acme", "beta"]
    await Erasure(world.stores(), slices=1).erase_user("acme", ANN)
    world.clock.advance(DAY_MS)
    for _ in range(4):
        await backed_up_daily(backups(world, stores), restoring, stores, daily=True)
        world.clock.advance(5 * MINUTE_MS)
    assert [len(await backups(world).manifests(tenant)) for tenant in ("acme", "beta", "gamma")] == [0, 2, 1]


async def test_a_restore_whose_backup_is_removed_meanwhile_is_abandoned_and_another_one_can_begin(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await backed_up(world)
    await Tenants(world.sql, world.clock).register("copy")
    stores = world.stores()
    restoring = Restoring(stores, backups(world, stores), items_of(stores))
    monkeypatch.setattr("retain.lifecycle.backups.restoring.PAGES_PER_CALL", 1)
    assert (await restoring.advance("copy", RestoreRequest("acme"))).state == "running"
    await backups(world).remove("acme", first.backup_id)
    world.clock.advance(3 * MINUTE_MS)
    with raises(NotFound, code="no_such_backup"):
        await restoring.advance("copy", RestoreRequest("acme"))
    assert await BackupJobs(stores).all_open(10) == []
    second = await backed_up(world)
    monkeypatch.undo()
    await restored(world, "copy", second.backup_id)
    assert contents(lasting(await lines_of(world, "copy")), "copy") == contents(
        lasting(await lines_of(world, "acme")), "acme"
    )


async def test_a_large_backup_is_removed_at_once_and_its_last_pages_by_the_daily_work(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = await backed_up(world)
    assert manifest.pages > 2
    monkeypatch.setattr("retain.lifecycle.backups.backing_up.REMOVED_PAGES", 2)
    await backups(world).remove("acme", manifest.backup_id)
    assert await backups(world).of("acme").all() == []
    assert len((await world.objects_store.list("backups/")).keys) == manifest.pages - 2
    with raises(NotFound, code="no_such_backup"):
        await backups(world).remove("acme", manifest.backup_id)
    for _ in range(manifest.pages):
        await backups(world).prune(10)
    assert not (await world.objects_store.list("backups/")).keys


async def test_backups_are_listed_page_by_page_in_the_order_of_time(world: World) -> None:
    made = [(await backed_up(world)).backup_id for _ in range(3)]
    objects = backups(world).of("acme")
    first = await objects.listed(limit=2)
    assert [one.backup_id for one in first.manifests] == made[:2]
    rest = await objects.listed(after=first.cursor, limit=2)
    assert ([one.backup_id for one in rest.manifests], rest.cursor) == (made[2:], None)
    with raises(InvalidInput, code="invalid_cursor"):
        await objects.listed(after="../../other")


async def test_old_backups_are_removed_and_do_not_count(world: World) -> None:
    await Tenants(world.sql, world.clock).register("acme")
    await backed_up(world)
    assert "acme" not in await backups(world).due(10)
    world.clock.advance(15 * DAY_MS)
    assert await backups(world).manifests("acme") == []
    assert "acme" in await backups(world).due(10)
    assert await backups(world).prune(10) == 1
    assert not (await world.objects_store.list("backups/")).keys
    assert await BackupJobs(world.stores()).all_open(10) == []


def _pages(world: World) -> list[str]:
    return [
        row[1].decode()
        for name, rows in world.everything().items()
        if name.startswith("r2/")
        for row in rows
        if row[0].startswith(b"backups/")
    ]


async def test_a_worker_that_another_one_overtook_takes_no_page_from_the_backup(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    backups, exporting = Backups(world.stores(), 14), "retain.lifecycle.backups.backing_up.export_page"

    async def slow(*args: Any) -> Page:
        monkeypatch.setattr(exporting, export_page)
        page = await export_page(*args)
        world.clock.advance(LEASE_MS)
        while (await backups.advance("acme")).state == "running":
            pass
        return page

    monkeypatch.setattr(exporting, slow)
    assert (await backups.advance("acme")).state == "completed"
    [one] = await backups.manifests("acme")
    for number in range(one.pages):
        assert await backups.of("acme").page(one.backup_id, number)


async def test_a_backup_whose_tenant_s_erasure_begins_at_its_last_moment_does_not_exist(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = BackupObjects.complete

    async def late(self: BackupObjects, manifest: Manifest) -> None:
        await complete(self, manifest)
        world.plant("erasure_receipts", receipt_id=EVALUATION, tenant_id="acme", kind="user", state="running")

    monkeypatch.setattr(BackupObjects, "complete", late)
    backups = Backups(world.stores(), 14)
    assert (await backups.advance("acme")).state == "running"
    assert await backups.manifests("acme") == []
