"""World history has every mutation: what is not a record is in the mutation log, which the chain seals."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import pytest

from retain.admin.maintenance import keep_up
from retain.contracts.backends.chat_sql import SqlChatMemory
from retain.errors import InvalidInput
from retain.items.entry import Draft
from retain.items.tiers.sql_warm import SqlWarm
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.heads import keep_heads, verified
from retain.memory.records.record import NewRecord
from retain.models.chat import ChatMessage
from retain.namespace import Namespace
from retain.retention import DAY_MS
from retain.tenant_tables import TENANT_TABLES
from retain.tenants import mutation_log
from retain.tenants.mutation_log import KEPT_MS, MutationFilter, MutationLog, Sealed
from retain.tenants.register import Tenants
from tests.lifecycle.of_users import ANN, BOB, canary, erased, fill, shop
from tests.lifecycle.world import PERSON, World

PLACE = Namespace("shop", "acme", "s1")
KEY = "shop:acme:s1:cart:1"

CHAINED = {
    "memory_records": "through memory_events",
    "memory_events": "`record_…` entries have their digests",
}
ASKED = {
    "index_jobs": "`reindex_started`; its end is `index_rebuilt` in the chain",
    "erasure_receipts": "`erasure_started`; its end is `subject_erased`, `user_erased` or `tenant_erased` in the chain",
    "ingest_jobs": "`ingest_started`; what it stores is records",
    "backup_jobs": "`backup_started`, `restore_started`; what a restore writes has entries of its own",
}
"""Work over many transactions: history says who asked for it. What it does is in the chain."""
EXEMPT = {
    "world_history": "history itself",
    "mutation_log": "history itself",
    "mutation_subjects": "history itself",
    "tenant_places": "where the tenant lives, as its moves say",
    "tenant_changes": "notes of what a move has to copy again",
    "tenant_moves": "says itself who began it, and what it did",
    "agent_runs": "the timeline of runs is run_events",
    "run_events": "the timeline itself: append-only",
    "parked_runs": "a copy of a run",
    "memory_episodes": "the turns of runs, as run_events has them",
    "conversation_messages": "what runs were asked and answered, as run_events has them",
    "attachment_uses": "what runs were asked; the attachment's row decides",
    "attachment_objects": "what is owed to the object store; the attachment's row decides",
    "outbox_failures": "writes that did not happen",
    "refused_episodes": "writes that did not happen",
    "episode_counts": "counts",
    "tenant_use": "counts",
    "days_kept": "an index",
    "timelines": "an index",
    "model_use": "counts",
    "model_calls": "counts",
    "procedure_priors": "where a workflow begins, derived from the outcomes",
    "memory_search": "an index",
    "memory_postings": "an index",
    "memory_earlier": "an index",
    "memory_likeness": "an index",
    "memory_outbox": "what is owed to an index",
    "vector_removals": "what is owed to an index",
    "memory_item_earlier_users": "notes of copies in KV; the item's row decides",
    "memory_item_objects": "notes for the sweep of objects; the item's row decides",
    "ingest_messages": "requests; what they store is records",
    "ingest_uploads": "requests; what they store is records",
    "eval_cases": "part of a dataset, whose version is their digest",
    "eval_results": "part of an evaluation",
    "eval_scratches": "part of an evaluation; its tenant has a history of its own",
    "error_ledger": "what went wrong, and what became of it",
    "kv_audit": "what changed in KV: append-only",
    "decision_log": "what runs decided: append-only",
    "decision_memories": "what runs decided: append-only",
    "webhook_deliveries": "what was sent: the log itself",
    "erased_tenants": "follows the receipts",
    "erased_users": "follows the receipts",
}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    with closing(World()) as opened:
        await Tenants(opened.sql, opened.clock).register("acme")
        yield opened


async def logged(world: World, **only: str) -> list[dict[str, Any]]:
    page = await MutationLog(world.sql, world.clock).page("acme", after=0, limit=1000, only=MutationFilter(**only))
    return [dict(row) for row in page.entries]


async def kinds(world: World, thing: str) -> list[str]:
    return [row["kind"] for row in await logged(world) if row["kind"].startswith(thing)]


async def test_every_write_of_an_item_is_logged_and_no_read(world: World) -> None:
    warm = SqlWarm(world.sql, "acme", world.clock)
    version = await warm.write(KEY, _draft("a"))
    await warm.upsert(KEY, "b")
    await warm.note_read(KEY, version)
    await warm.read(KEY)
    await world.sql.run("UPDATE memory_items SET tier = 'cold', value = NULL, object_key = 'o'")
    entries = await logged(world, thing="item", key=KEY)
    assert [(row["kind"], row["detail"]) for row in entries] == [
        ("item_written", "warm"),
        ("item_written", "warm"),
        ("item_moved", "cold"),
    ]
    assert entries[0]["version"] == version
    await warm.bury(KEY)
    await warm.bury(KEY)
    assert [row["kind"] for row in await logged(world, thing="item", key=KEY)][3:] == ["item_deleted"]
    await warm.upsert(KEY, "c")
    await world.sql.run("DELETE FROM memory_items")
    assert await kinds(world, "item") == [
        *["item_written"] * 2,
        "item_moved",
        "item_deleted",
        "item_written",
        "item_removed",
    ]


async def test_an_entry_about_a_thing_that_is_gone_names_it_no_more(world: World) -> None:
    warm = SqlWarm(world.sql, "acme", world.clock)
    await warm.upsert(KEY, "a")
    assert {row["key"] for row in await logged(world) if row["kind"] == "item_written"} == {KEY}
    await world.sql.run("DELETE FROM memory_items")
    entries = [row for row in await logged(world) if row["kind"].startswith("item")]
    assert {row["key"] for row in entries} == {None}
    [number] = {row["subject"] for row in entries}
    await warm.upsert(KEY, "b")  # the next thing under the same key is another one
    assert (await logged(world))[-1]["subject"] > number
    assert await logged(world, thing="item", key="shop:acme:s1:cart:2") == []


async def test_conversations_and_documents_of_the_contracts_are_logged(world: World) -> None:
    chat = SqlChatMemory(world.sql, PLACE)
    await chat.save([ChatMessage("user", "hello")])
    await chat.save([ChatMessage("user", "hello"), ChatMessage("assistant", "hi")])
    await chat.save([ChatMessage("user", "hello!"), ChatMessage("assistant", "hi")])
    await chat.clear()
    assert await kinds(world, "chat") == ["chat_message_written"] * 3 + ["chat_message_removed"] * 2
    assert [row["version"] for row in await logged(world) if row["kind"] == "chat_message_written"] == [0, 1, 0]
    insert = "INSERT INTO vector_documents (namespace_key, document_id, tenant_id, document, embedding, indexed)"
    await world.sql.run(f"{insert} VALUES ('shop:acme:s1', 'd', 'acme', '[]', '', 1)")
    await world.sql.run("UPDATE vector_documents SET sent_at_ms = 1")
    await world.sql.run("UPDATE vector_documents SET version = 2")
    await world.sql.run("DELETE FROM vector_documents")
    assert await kinds(world, "document") == ["document_written"] * 2 + ["document_removed"]


async def test_tenants_users_and_conversations_are_logged(world: World) -> None:
    tenants = Tenants(world.sql, world.clock)
    await tenants.register("acme")
    for most in (5, 5, None):
        await tenants.limit("acme", max_memories_per_user=most)
    assert [(row["kind"], row["version"]) for row in await logged(world)] == [
        ("tenant_registered", None),
        ("tenant_limited", 5),
        ("tenant_limited", None),
    ]
    await world.run("order_triage", "hello", user={"id": "sue"})
    await world.run("order_triage", "hello", user={"id": "sue", "name": "Sue"})
    await world.settled()
    assert await kinds(world, "user") == ["user_met", "user_changed"]
    await world.sql.run("UPDATE conversations SET title = 'Hers'")
    await world.sql.run("DELETE FROM conversations")
    assert await kinds(world, "conversation") == [
        "conversation_opened",
        "conversation_renamed",
        "conversation_removed",
    ]


def test_every_table_with_a_tenants_rows_is_in_world_history_or_says_why_not(world: World) -> None:
    triggers = world.sql_now("SELECT tbl_name, sql FROM sqlite_master WHERE type = 'trigger'")
    written: dict[str, set[str]] = {}
    for row in triggers:
        if "INSERT INTO mutations " in row["sql"]:
            found = re.search(r"AFTER (INSERT|UPDATE|DELETE)", row["sql"])
            assert found is not None
            written.setdefault(row["tbl_name"], set()).add(found[1])
    tables = {table.name for table in TENANT_TABLES}
    assert tables - set(written) - set(CHAINED) - set(EXEMPT) == set()
    assert [name for name in written if name in {**CHAINED, **EXEMPT}] == []
    assert {name for name, events in written.items() if not {"INSERT", "DELETE"} <= events} == set(ASKED)


async def test_sealed_entries_verify_and_any_change_to_one_is_found(world: World) -> None:
    warm = SqlWarm(world.sql, "acme", world.clock)
    for text in ("a", "b", "c"):
        await warm.upsert(KEY, text)
    log = MutationLog(world.sql, world.clock)
    assert await log.seal_all() == Sealed(4, 0)
    assert await log.seal_all() == Sealed(0, 0)
    await warm.upsert(KEY, "d")
    assert await log.seal("acme") == 1
    chain = await world.stores().history().page("acme", after=0, limit=10)
    assert [(row["kind"], row["subject_id"]) for row in chain] == [
        ("mutations_sealed", "1-4"),
        ("mutations_sealed", "5-5"),
    ]
    assert (await verified(world.stores(), "acme")).problem is None
    for change in (
        "UPDATE mutation_log SET kind = 'item_moved' WHERE number = 2",
        "UPDATE mutation_log SET subject = NULL WHERE number = 2",
        "UPDATE mutation_log SET version = version + 1 WHERE number = 2",
        "UPDATE mutation_log SET detail = 'hot' WHERE number = 2",
        "UPDATE mutation_log SET at_ms = at_ms + 1 WHERE number = 2",
        "UPDATE mutation_log SET number = 9 WHERE number = 4",
        "DELETE FROM mutation_log WHERE number = 1",
    ):
        world.sql_now("CREATE TABLE untouched AS SELECT * FROM mutation_log")
        world.sql_now(change)
        verdict = await verified(world.stores(), "acme")
        assert (verdict.problem, verdict.broken_at) == ("mutations_changed", 1), change
        world.sql_now("DELETE FROM mutation_log")
        world.sql_now("INSERT INTO mutation_log SELECT * FROM untouched")
        world.sql_now("DROP TABLE untouched")
    assert (await verified(world.stores(), "acme")).problem is None


async def test_a_long_log_is_sealed_and_verified_in_slices(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation_log, "SEAL_ROWS", 3)
    monkeypatch.setattr(mutation_log, "SEALS_PER_CALL", 2)
    warm, log = SqlWarm(world.sql, "acme", world.clock), MutationLog(world.sql, world.clock)
    for number in range(19):
        await warm.upsert(f"shop:acme:s1:cart:{number}", "a")
    assert [await log.seal("acme") for _ in range(5)] == [6, 6, 6, 2, 0]
    cursor, calls = None, 0
    while calls == 0 or cursor is not None:
        verdict = await verified(world.stores(), "acme", cursor=cursor)
        cursor, calls = verdict.cursor, calls + 1
        assert verdict.problem is None
    assert calls == 4
    world.sql_now("UPDATE mutation_log SET kind = 'x' WHERE number = 19")
    verdict = await verified(world.stores(), "acme")
    while verdict.cursor is not None:
        verdict = await verified(world.stores(), "acme", cursor=verdict.cursor)
    assert (verdict.problem, verdict.broken_at) == ("mutations_changed", 7)


async def test_a_filter_reads_page_by_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation_log, "SEAL_ROWS", 4)
    warm, log = SqlWarm(world.sql, "acme", world.clock), MutationLog(world.sql, world.clock)
    for number in range(12):
        await warm.upsert(f"shop:acme:s1:cart:{number % 6}", "a")
    found: list[int] = []
    pages, cursor = 0, 0
    while True:
        only = MutationFilter(thing="item", key="shop:acme:s1:cart:5")
        page = await log.page("acme", after=cursor, limit=10, only=only)
        found += [row["number"] for row in page.entries]
        pages += 1
        if page.cursor is None:
            break
        cursor = page.cursor
    assert (found, pages) == ([7, 13], 4)
    with pytest.raises(InvalidInput, match="together"):
        await log.page("acme", after=0, limit=10, only=MutationFilter(thing="item"))


async def test_old_entries_are_removed_while_the_chain_still_verifies(world: World) -> None:
    warm, log = SqlWarm(world.sql, "acme", world.clock), MutationLog(world.sql, world.clock)
    for text in ("a", "b"):
        await warm.upsert(KEY, text)
    [row] = await world.rows("SELECT MAX(at_ms) AS at_ms FROM mutation_log")
    world.clock.set(row["at_ms"] + DAY_MS)
    await log.seal_all()
    world.clock.advance(KEPT_MS)
    assert await log.seal_all() == Sealed(0, 2)
    assert [row["number"] for row in await logged(world)] == [3]  # the next one is numbered after it
    assert (await verified(world.stores(), "acme")).problem is None
    await warm.upsert(KEY, "c")
    assert [row["number"] for row in await logged(world)] == [3, 4]


async def test_the_daily_work_seals_the_tenants_that_have_waited_longest_first(world: World) -> None:
    for number in range(5):
        await Tenants(world.sql, world.clock).register(f"t{number}")
    world.sql_now("UPDATE mutation_log SET at_ms = at_ms - 1000 WHERE tenant_id IN ('t3', 't4')")
    log = MutationLog(world.sql, world.clock)
    assert await log.seal_all(tenants=2) == Sealed(2, 0, complete=False)
    sealed = await world.rows("SELECT tenant_id FROM world_history WHERE kind = 'mutations_sealed' ORDER BY tenant_id")
    assert [row["tenant_id"] for row in sealed] == ["t3", "t4"]
    report = await keep_up(world.stores())
    assert report["mutations"] == {"sealed": 4, "removed": 0}
    assert await keep_heads(world.stores()) == []


async def test_many_tenants_are_sealed_by_few_calls_and_each_chain_verifies(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutation_log, "GROUP_ROWS", 2)
    names = [f"t{number}" for number in range(45)]
    for name in names:
        await Tenants(world.sql, world.clock).register(name)
    await world.memory("t7").store(NewRecord("A fact."), PERSON)  # a chain that has begun, and a longer log
    before = len(world.faults.trace)
    counts = await MutationLog(world.stores().sql, world.clock).seal_all()
    calls = [point for _, point in world.faults.trace[before:] if point in ("sql.run", "sql.batch")]
    [row] = await world.rows("SELECT COUNT(*) AS n FROM mutation_log")
    assert counts == Sealed(row["n"], 0)
    assert len(calls) < 15
    for name in ("acme", *names):
        assert (await verified(world.stores(), name)).problem is None
    assert await MutationLog(world.sql, world.clock).seal_all() == Sealed(0, 0)


async def test_a_chain_that_grows_while_a_group_is_sealed_is_sealed_on_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Tenants(world.sql, world.clock).register("t1")
    log, batch = MutationLog(world.sql, world.clock), world.sql.batch
    meddled: list[bool] = []

    async def meddling(statements: Any) -> Any:
        found = await batch(statements)
        if not meddled:
            meddled.append(True)
            await world.memory("t1").store(NewRecord("A fact."), PERSON)
        return found

    monkeypatch.setattr(world.sql, "batch", meddling)
    counts = await log.seal_all()
    [row] = await world.rows("SELECT COUNT(*) AS n FROM mutation_log")
    assert counts.sealed == row["n"]
    for name in ("acme", "t1"):
        assert (await verified(world.stores(), name)).problem is None


async def test_the_log_of_an_erased_user_has_nothing_of_them(world: World) -> None:
    with closing(shop()) as others:
        for user in (ANN, BOB):
            await fill(others, user)
        await others.settled()
        await erased(others, ANN)
        subjects = [row["key"] for row in await others.rows("SELECT key FROM mutation_subjects")]
        texts = json.dumps([[dict(row) for row in await logged(others)], subjects])
        assert ANN not in texts
        assert "ann" not in texts.replace("channel", "")
        assert BOB in texts
        assert canary(BOB, "item") not in texts
        entries = await others.rows("SELECT COUNT(*) AS n FROM mutation_log WHERE kind = 'user_removed'")
        assert entries[0]["n"] == 1


async def test_an_erased_tenant_leaves_its_log_and_nothing_that_the_numbers_meant(world: World) -> None:
    await SqlWarm(world.sql, "acme", world.clock).upsert(KEY, "a")
    await world.memory().store(NewRecord("A fact."), PERSON)
    await world.rest()
    erasure = Erasure(world.stores())
    while (await erasure.erase_tenant("acme")).retry_after_ms is not None:
        world.clock.advance(60_000)
    assert await world.rows("SELECT * FROM mutation_subjects") == []
    assert await kinds(world, "tenant") == ["tenant_registered", "tenant_unregistered"]
    await MutationLog(world.sql, world.clock).seal("acme")
    assert (await verified(world.stores(), "acme")).problem is None


def _draft(value: str) -> Draft:
    return Draft("warm", value, len(value))
