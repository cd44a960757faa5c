"""The migration of items' keys where tenants live on several databases, and move between them meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from retain.items.rekeying import phases
from retain.items.rekeying.reads import SETTLE_MS
from retain.shards.place import HOME
from tests.lifecycle.moving.features import KEPT_MS, LEGACY_PATTERNS
from tests.shell.worker import Answer, Worker, serving

TENANTS = ("other", "acme", "third")
SHARDS = (HOME, "DB_1", "DB_2")
HOT_MS = 2 * 3_600_000
"""After so long no hot copy answers a read."""
KINDS = ("preferences", "conversation", "order_history")


@asynccontextmanager
async def placed(shards: int) -> AsyncIterator[Worker]:
    """Serve three tenants, each on a database of its own if there are three, with items under their legacy keys."""
    patterns = {"MEMORY_NAMESPACE_LEGACY_PATTERNS": LEGACY_PATTERNS}
    async with serving(shards=str(shards), **patterns) as worker:
        for tenant in TENANTS:
            await worker.tenant(tenant)
            for kind in KINDS[:2]:
                assert (await put(worker, tenant, kind)).status in (200, 201)
            # an object of which D1 knows nothing: the backfill adopts it
            await worker.cold.store.put(f"{tenant}:s-1:{KINDS[2]}:one", f"{tenant} {KINDS[2]}".encode())
        yield worker


async def put(worker: Worker, tenant: str, kind: str, value: str | None = None) -> Answer:
    body = {"value": f"{tenant} {kind}" if value is None else value}
    return await worker.request("PUT", f"/admin/tenants/{tenant}/items/shop/s-1/{kind}/one", body)


async def values(worker: Worker) -> dict[tuple[str, str], Any]:
    """Return what each tenant reads."""
    found: dict[tuple[str, str], Any] = {}
    for tenant in TENANTS:
        for kind in KINDS:
            answer = await worker.request("GET", f"/admin/tenants/{tenant}/items/shop/s-1/{kind}/one")
            assert answer.status in (200, 404), answer.body
            found[tenant, kind] = answer.content.get("value")
    return found


def deploy(worker: Worker, write_canonical: bool, compat_read: bool) -> None:
    """Deploy other flags."""
    worker.env.MEMORY_NAMESPACE_WRITE_CANONICAL = str(write_canonical).lower()
    worker.env.MEMORY_NAMESPACE_COMPAT_READ = str(compat_read).lower()
    worker.restart()


async def commanded(worker: Worker, command: str, **body: object) -> Any:
    """Give a command of the migration, and return its state."""
    answer = await worker.request("POST", f"/admin/namespaces/{command}", body)
    assert answer.status in (200, 202), answer.body
    return answer.content


async def to_phase_2(worker: Worker) -> None:
    deploy(worker, False, True)
    await commanded(worker, "phase", to=1, baseline=0.9)
    deploy(worker, True, True)
    await commanded(worker, "phase", to=2)
    worker.clock.advance(SETTLE_MS)


async def backfilled(worker: Worker) -> Any:
    for _ in range(50):
        answer = await worker.request("POST", "/admin/namespaces/backfill", {})
        if answer.status == 200:
            return answer.content
        assert answer.status in (202, 503), answer.body
    raise AssertionError("the backfill does not end")


async def cycle(worker: Worker, name: str) -> None:
    """Let every tenant read its items for a release cycle, and record the release."""
    for _ in range(3):
        await values(worker)
        worker.clock.advance(HOT_MS)
    await values(worker)
    await worker.settled()
    await commanded(worker, "releases", release=name)


async def to_phase_3(worker: Worker) -> None:
    for name in ("one", "two"):
        await cycle(worker, name)
    assert (await commanded(worker, "phase", to=3))["phase"] == 3
    deploy(worker, True, False)


async def step(worker: Worker, tenant: str, target: str) -> Answer:
    answer = await worker.request("POST", f"/admin/tenants/{tenant}/shard", {"shard": target})
    worker.clock.advance(KEPT_MS)
    return answer


async def moved(worker: Worker, tenant: str, target: str) -> None:
    for _ in range(12):
        answer = await step(worker, tenant, target)
        if answer.status in (200, 409):
            return
    raise AssertionError("the move does not end")


async def homes(worker: Worker) -> dict[str, dict[str, list[str]]]:
    """Return the keys of each tenant's items, by the database that has them."""
    found: dict[str, dict[str, list[str]]] = {tenant: {} for tenant in TENANTS}
    for shard, database in worker.shards.items():
        for row in (await database.store.run("SELECT tenant_id, key FROM memory_items ORDER BY key")).rows:
            found[row["tenant_id"]].setdefault(shard, []).append(row["key"])
    return found


@pytest.fixture(autouse=True)
def _few_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a release cycle be judged by few reads."""
    monkeypatch.setattr(phases, "MIN_READS", 5)


EXPECTED = {(tenant, kind): f"{tenant} {kind}" for tenant in TENANTS for kind in KINDS}
CANONICAL = {
    tenant: sorted(
        [f"shop:{tenant}:s-1:{kind}:one" for kind in KINDS] + [f"{tenant}:s-1:{kind}:one" for kind in KINDS[:2]]
    )
    for tenant in TENANTS
}


async def test_values_of_tenants_on_every_database_are_copied_where_their_tenant_is() -> None:
    async with placed(3) as worker:
        assert {tenant: [*found] for tenant, found in (await homes(worker)).items()} == {
            tenant: [shard] for tenant, shard in zip(TENANTS, SHARDS, strict=True)
        }
        await to_phase_2(worker)
        state = await backfilled(worker)
        assert {row["tier"]: (row["copied"], row["present"]) for row in state["backfill"]} == {
            "warm": (6, 0),
            "cold": (3, 0),
        }
        assert await homes(worker) == {
            tenant: {shard: CANONICAL[tenant]} for tenant, shard in zip(TENANTS, SHARDS, strict=True)
        }
        await to_phase_3(worker)
        assert await values(worker) == EXPECTED


async def test_reads_of_tenants_on_every_database_are_counted_and_copy_what_they_find() -> None:
    async with placed(3) as worker:
        await to_phase_2(worker)
        for _ in range(2):
            worker.clock.advance(HOT_MS)
            await values(worker)
        await worker.settled()
        tiers = (await worker.request("GET", "/admin/namespaces")).content["cycles"][-1]["tiers"]
        assert (tiers["warm"]["legacy"], tiers["warm"]["repaired"]) == (6, 6), "a read of each item copied it"
        for tenant, found in (await homes(worker)).items():
            assert len(found) == 1, tenant


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("back", [False, True], ids=["there", "and back"])
async def test_a_backfill_in_the_middle_of_a_move_copies_every_value_and_leaves_none_elsewhere(
    steps: int, back: bool
) -> None:
    async with placed(3) as worker:
        await to_phase_2(worker)
        if back:
            await moved(worker, "acme", "DB_2")
        target = "DB_1" if back else HOME
        for _ in range(steps):
            await step(worker, "acme", target)
        await backfilled(worker)
        await moved(worker, "acme", target)
        await to_phase_3(worker)
        assert await values(worker) == EXPECTED
        assert (await homes(worker))["acme"] == {target: CANONICAL["acme"]}


async def test_a_removed_item_stays_removed_whatever_the_phase_and_wherever_its_tenant_moves() -> None:
    async with placed(3) as worker:
        await to_phase_2(worker)
        gone = f"/admin/tenants/acme/items/shop/s-1/{KINDS[0]}/one"
        assert (await step(worker, "acme", HOME)).status == 202
        assert (await worker.request("DELETE", gone)).status == 200
        await moved(worker, "acme", HOME)
        await backfilled(worker)
        await to_phase_3(worker)
        assert await values(worker) == {**EXPECTED, ("acme", KINDS[0]): None}
        await commanded(worker, "rollback", to=2)
        deploy(worker, True, True)
        await moved(worker, "acme", "DB_1")
        assert await values(worker) == {**EXPECTED, ("acme", KINDS[0]): None}


async def test_the_backfill_waits_for_a_tenant_that_is_frozen_and_loses_no_page() -> None:
    async with placed(2) as worker:
        await to_phase_2(worker)
        [shard] = (await homes(worker))["acme"]
        assert (await step(worker, "acme", HOME if shard == "DB_1" else "DB_1")).status == 202
        frozen = "UPDATE tenant_places SET state = ?, frozen_until_ms = 9e15 WHERE tenant_id = 'acme'"
        await worker.shards[shard].store.run(frozen, "frozen")
        refused = await worker.request("POST", "/admin/namespaces/backfill", {})
        assert (refused.status, refused.content["code"]) == (503, "tenant_moving")
        await worker.shards[shard].store.run(frozen, "leaving")
        state = await backfilled(worker)
        assert sum(row["copied"] + row["present"] for row in state["backfill"]) == 9
