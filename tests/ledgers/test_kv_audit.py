"""The KV audit: each change of a key has a row, never before the answer, and nothing of an erased user stays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from retain.admin.maintenance import retention_rules
from retain.errors import Unavailable
from retain.host.clock import ManualClock
from retain.host.kv import SqliteKv
from retain.host.sql import SqliteSql
from retain.items.builder import MemoryBuilder
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot
from retain.ledgers.kv_audit import AuditedKv, KvChange, KvOwner, changes_of, list_changes, noting, write_changes
from retain.lifecycle.erasure.eraser import Erasure
from retain.log import bind
from retain.namespace import Namespace
from retain.retention import DAY_MS, prune
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.lifecycle.world import MINUTE_MS, World
from tests.support.databases import migrated_d1
from tests.support.faults import Fault
from tests.support.instances import catalogue

CANARY = "my card ends in 4242"
ABOUT = {"description": "Helps.", "instructions": "Help."}


@pytest.fixture
def sql() -> Iterator[SqliteSql]:
    with closing(migrated_d1()) as database:
        yield database


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def kv(clock: ManualClock) -> Iterator[SqliteKv]:
    with closing(SqliteKv.open(clock)) as made:
        yield made


def clerk(*replies: Any) -> World:
    agents = catalogue({"type": "clerk", **ABOUT, "working_memory": True})
    chat = SteppedChat(*replies)
    return World(agents, lambda _: chat)


async def erased(world: World, **what: str) -> None:
    for _ in range(30):
        erasure = Erasure(world.stores())
        outcome = await (
            erasure.erase_user("acme", what["user"])
            if "user" in what
            else erasure.erase_subject("acme", what["mention"], "mention")
        )
        if outcome.retry_after_ms is None:
            return
        world.clock.advance(outcome.retry_after_ms + MINUTE_MS)
    raise AssertionError("the erasure never completes")


async def test_an_agent_s_note_in_kv_has_a_row_with_its_run_and_never_the_value() -> None:
    with closing(clerk(calls(("set_working_memory", {"key": "card", "value": CANARY})), says("noted"))) as world:
        report = await world.run("clerk", "note it", user={"id": "ann"})
        await world.settled()
        [change] = (await list_changes(world.sql, "acme")).entries
        value = json.dumps(CANARY).encode()
        assert change.to_json() == {
            "audit_id": change.audit_id,
            "tenant_id": "acme",
            "key": "agent_working:acme:main:clerk.card",
            "operation": "put",
            "changed_by": "agent:clerk",
            "agent_type": "clerk",
            "instance_id": "main",
            "user_id": "ann",
            "run_id": report["run_id"],
            "value_bytes": len(value),
            "digest": hashlib.sha256(value).hexdigest(),
            "ttl_s": 3600,
            "at_ms": world.clock(),
        }
        assert CANARY not in str(world.sql_now("SELECT * FROM kv_audit"))


async def test_a_change_that_failed_has_no_row_and_one_that_d1_does_not_take_fails_nothing() -> None:
    note = calls(("set_working_memory", {"key": "card", "value": "1"}))
    with closing(clerk(note, says("no"), note, says("yes"))) as world:
        world.faults.plan(Fault(Unavailable("down"), point="kv.put"))
        await world.run("clerk", "note it")
        await world.settled()
        assert world.sql_now("SELECT * FROM kv_audit") == []
        world.sql_now("ALTER TABLE kv_audit RENAME TO hidden")
        assert (await world.run("clerk", "note it"))["output"] == "yes"
        world.sql_now("ALTER TABLE hidden RENAME TO kv_audit")
        await world.recover()
        assert len(world.sql_now("SELECT * FROM kv_audit")) == 1


async def test_the_rows_of_an_erased_user_go_and_the_erasure_leaves_none_of_its_own() -> None:
    notes = [
        calls(
            ("set_working_memory", {"key": f"card-{n}", "value": n}),
            ("set_working_memory", {"key": "other", "value": 1}),
        )
        for n in range(2)
    ]
    with closing(clerk(notes[0], says("1"), notes[1], says("2"))) as world:
        world.sql_now("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        await world.run("clerk", "note it", instance="a", user={"id": "ann"})
        await world.run("clerk", "note it", instance="b", user={"id": "bob"})
        await world.settled()
        assert len(world.sql_now("SELECT * FROM kv_audit")) == 4
        await erased(world, user="ann")
        await world.settled()
        assert {row["user_id"] for row in world.sql_now("SELECT * FROM kv_audit")} == {"bob"}
        assert (await world.kv.list("agent_working:acme:a:")).keys == []
        late = KvChange("x", "acme", "k", "put", "agent:clerk", "clerk", "a", "ann", "0" * 26, 1, "d", None, 1)
        await write_changes(world.sql, [late])
        await erased(world, mention="card-1")
        await world.settled()
        assert [row["key"].rpartition(".")[2] for row in world.sql_now("SELECT * FROM kv_audit")] == ["other"]


async def test_an_item_s_hot_copy_is_a_person_s_change_and_belongs_to_the_item_s_user(
    sql: SqliteSql, kv: SqliteKv, clock: ManualClock
) -> None:
    written: list[Sequence[KvChange]] = []
    audited = AuditedKv(kv, lambda: KvOwner("acme"), clock, noting(written.append))
    client = (
        MemoryBuilder(Namespace("shop", "acme", "s1"), clock)
        .with_hot(KvHot(audited))
        .with_warm(SqlWarm(sql, "acme", clock))
        .build()
    )
    with changes_of("person:ops@example.com", written.append):
        await client.put("cart", "1", CANARY, user_id="ann")
        await client.put("cart", "2", "two")
        await client.get("cart", "1")
        await client.delete("cart", "2")
        assert written == [], "nothing is written before the request has its answer"
    [changes] = written
    await write_changes(sql, changes)
    await write_changes(sql, changes)
    rows = (await list_changes(sql, "acme", prefix="shop:acme:s1:")).entries
    assert [(row.key, row.operation, row.user_id) for row in rows] == [
        ("shop:acme:s1:cart:1", "put", "ann"),
        ("shop:acme:s1:cart:2", "put", None),
        ("shop:acme:s1:cart:2", "delete", None),
    ]
    assert {row.changed_by for row in rows} == {"person:ops@example.com"}
    assert CANARY not in str(rows)


async def test_what_changes_after_the_answer_or_outside_of_a_request_is_written_at_once(
    kv: SqliteKv, clock: ManualClock
) -> None:
    written: list[Sequence[KvChange]] = []
    audited = AuditedKv(kv, lambda: KvOwner("acme"), clock, noting(written.append))
    await audited.put("a", "1", ttl_s=60)
    with changes_of("person:ops@example.com", written.append), bind(run_id="r"):
        batch_is_open = noting(written.append)
        await audited.delete("b")
    assert [(change.key, change.changed_by, change.run_id) for [change] in written] == [
        ("a", "retain", None),
        ("b", "person:ops@example.com", "r"),
    ]
    batch_is_open(written[0][0])
    assert len(written) == 3


async def test_changes_of_a_request_that_failed_are_written_too(kv: SqliteKv, clock: ManualClock) -> None:
    written: list[Sequence[KvChange]] = []
    audited = AuditedKv(kv, lambda: KvOwner("acme"), clock, noting(written.append))

    async def request() -> None:
        with changes_of("person:ops@example.com", written.append):
            await audited.put("a", "1")
            raise Unavailable("later")

    with pytest.raises(Unavailable):
        await request()
    assert [change.key for change in written[0]] == ["a"]


async def test_an_audit_that_d1_does_not_take_raises_nothing() -> None:
    class Down:
        async def run(self, sql: str, *values: Any) -> Any:
            raise Unavailable("down")

        async def batch(self, statements: Any) -> Any:
            raise Unavailable("down")

    change = KvChange("x", "acme", "k", "put", "retain", None, None, None, None, 1, "d", None, 1)
    await write_changes(Down(), [change])


async def test_changes_are_listed_by_prefix_and_time_page_by_page(sql: SqliteSql) -> None:
    changes = [
        KvChange(f"{n:026}", "acme", f"k{n % 3}:{n}", "put", "retain", None, None, None, None, 1, "d", None, 1000 + n)
        for n in range(20)
    ]
    await write_changes(
        sql, [*changes, KvChange("z", "rival", "k0:x", "delete", "retain", None, None, None, None, None, None, None, 1)]
    )
    looks: list[dict[str, Any]] = [{}, {"prefix": "k1:"}, {"since_ms": 1004, "until_ms": 1010}]
    for wanted in looks:
        seen: list[str] = []
        cursor = None
        while True:
            page = await list_changes(sql, "acme", **wanted, limit=3, cursor=cursor)
            seen += [entry.key for entry in page.entries]
            cursor = page.cursor
            if cursor is None:
                break
        since, until = wanted.get("since_ms", 0), wanted.get("until_ms", 9999)
        meets = [c.key for c in changes if c.key.startswith(wanted.get("prefix", "")) and since <= c.at_ms < until]
        assert seen == (sorted(meets) if "prefix" in wanted else meets[::-1])


@pytest.mark.parametrize("wanted", [{}, {"prefix": "k"}], ids=str)
async def test_every_list_of_changes_follows_an_index(sql: SqliteSql, wanted: dict[str, Any]) -> None:
    asked: list[str] = []

    class Explained(SqliteSql):
        async def run(self, statement: str, *values: Any) -> Any:
            plan = await sql.run(f"EXPLAIN QUERY PLAN {statement}", *values)
            asked.extend(str(row["detail"]) for row in plan.rows)
            return plan.__class__([], 0)

    await list_changes(Explained.__new__(Explained), "acme", **wanted)
    assert asked
    assert all("SEARCH kv_audit USING INDEX" in detail for detail in asked), asked


async def test_changes_go_after_90_days(sql: SqliteSql) -> None:
    now = 200 * DAY_MS
    for name, age in (("old", 91), ("young", 89)):
        change = KvChange(name, "acme", name, "put", "retain", None, None, None, None, 1, "d", None, now - age * DAY_MS)
        await write_changes(sql, [change])
    assert (await prune(sql, now, retention_rules(400))).by_rule["kv_audit"] == {"acme": 1}
    assert [entry.key for entry in (await list_changes(sql, "acme")).entries] == ["young"]
