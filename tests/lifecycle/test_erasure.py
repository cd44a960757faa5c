"""Erasure: nothing erased is left in any store, and a receipt proves it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from typing import Any, Literal

import pytest

from retain.contracts.backends.chat_kv import KvChatMemory
from retain.contracts.backends.chat_sql import SqlChatMemory
from retain.contracts.backends.vector_indexed import IndexedVectorMemory
from retain.contracts.backends.vector_sql import SqlVectorMemory
from retain.contracts.vectors import VectorDocument
from retain.errors import Conflict, InvalidInput, Misconfigured, NotFound
from retain.gateway.credentials import credential_name
from retain.gateway.keys import STORED_PREFIX
from retain.gateway.tool_config import tool_name_in_kv
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.verification import verify_page
from retain.memory.records.listing import Listing, list_records
from retain.memory.scope import Scope
from retain.models.chat import ChatMessage
from retain.namespace import Namespace
from retain.tenant_tables import TENANT_TABLES
from retain.tenants.register import Tenants
from retain.tenants.tables import TenantTable
from tests.e2e.puppet import order
from tests.lifecycle import legacy
from tests.lifecycle.erasable import ANN, erased, filled, rows_of
from tests.lifecycle.world import PERSON, World, living
from tests.ports import raises
from tests.support.instances import HOUR_MS, catalogue
from tests.support.obedient_chat import ObedientChat
from tools.paths import ROOT


@pytest.fixture
def world() -> Iterator[World]:
    with living(filled()) as world:
        yield world


async def test_erasing_a_tenant_leaves_nothing_of_it_in_any_store_and_its_neighbour_intact(world: World) -> None:
    neighbour = rows_of(world, "neighbour")
    assert {table.partition("/")[0] for table in rows_of(world, "acme")} >= {"d1", "kv", "r2", "vectors"}
    outcome = await erased(world, "acme")
    assert rows_of(world, "acme") == {}
    assert rows_of(world, "neighbour") == neighbour
    left = {name for name, rows in world.everything().items() if rows and name.startswith("object order_triage:acme")}
    assert {name.rpartition("/")[2] for name in left} == {"schema_version"}, "the version of its tables stays"
    counts = outcome.receipt.counts
    assert {name: counts[name] > 0 for name in counts} == dict.fromkeys(counts, True)
    assert {name.partition(".")[0] for name in counts} == {"d1", "kv", "r2", "vectorize", "durable_objects"}


async def test_an_erased_tenants_full_text_is_gone_even_though_it_names_no_tenant(world: World) -> None:
    texts = world.sql_now("SELECT COUNT(*) AS n FROM memory_text")[0]["n"]
    await erased(world, "acme")
    assert world.sql_now("SELECT COUNT(*) AS n FROM memory_text")[0]["n"] == texts // 2
    assert world.sql_now("SELECT COUNT(*) AS n FROM memory_text")[0]["n"] == len(
        world.sql_now("SELECT 1 FROM memory_records")
    )


async def test_history_verifies_after_an_erasure_and_records_it(world: World) -> None:
    for tenant, kind in ((None, "subject_erased"), ("acme", "tenant_erased")):
        outcome = await erased(world, tenant)
        verdict = await world.stores().history().verify("acme")
        [entry] = world.sql_now("SELECT * FROM world_history WHERE tenant_id = 'acme' AND kind = ?", kind)
        assert (verdict.problem, entry["subject_id"]) == (None, outcome.receipt.receipt_id)
        assert entry["digest"] == outcome.receipt.digest


def words_on_disk(world: World, word: str) -> int:
    """Return how many blocks of the full-text index hold the end of a word, also those of deleted texts.

    The index stores what a word does not share with the beginning of the one before.
    """
    return sum(word.encode() in row["block"] for row in world.sql_now("SELECT block FROM memory_text_data"))


@pytest.mark.parametrize("match", ["subject", "mention", "tenant"])
async def test_an_erasure_leaves_no_word_in_the_blocks_of_the_full_text_index(
    world: World, match: Literal["subject", "mention", "tenant"]
) -> None:
    edited = await world.store("Lupuscanary is the diagnosis.", subject="lupuscanary")
    await world.memory().edit(edited, {"content": "Nothing is the diagnosis.", "subject": "nobody"}, PERSON)
    deleted = await world.store("Lupuscanary was the first diagnosis.", subject="lupuscanary")
    await world.memory().delete(deleted, PERSON)
    await world.store("Lupuscanary is what patient zero has.", subject="lupuscanary")
    await world.store("The neighbour likes lupuscanary.", tenant="rival")
    assert words_on_disk(world, "puscanari") > 1
    erasure = Erasure(world.stores())
    work = partial(erasure.erase_tenant, "acme")
    if match != "tenant":
        work = partial(erasure.erase_subject, "acme", "lupuscanary", match)
    while (await work()).retry_after_ms is not None:
        await world.rest()
    assert words_on_disk(world, "puscanari") == 1
    assert [hit.record.content for hit in await world.recall("lupuscanary", tenant="rival")] == [
        "The neighbour likes lupuscanary."
    ]


async def test_only_an_erasure_of_a_tenant_that_remembered_something_rewrites_the_full_text_index(world: World) -> None:
    for tenant, remembers in (("scratch", False), ("forgetful", True)):
        if remembers:
            gone = await world.store("Lupuscanary was the first diagnosis.", tenant=tenant)
            await world.memory(tenant).delete(gone, PERSON)
        before = world.sql_now("SELECT id, hex(block) AS block FROM memory_text_data")
        while (await Erasure(world.stores()).erase_tenant(tenant)).retry_after_ms is not None:
            await world.rest()
        assert (world.sql_now("SELECT id, hex(block) AS block FROM memory_text_data") != before) == remembers


async def test_erasing_by_mention_leaves_the_term_in_no_store(world: World) -> None:
    assert {name.partition("/")[0].partition(" ")[0] for name in world.mentions(ANN, tenant="acme")} >= {
        "d1",
        "vectors",
    }
    await erased(world)
    left = [row for rows in rows_of(world, "acme").values() for row in rows if ANN in str(row).lower()]
    # What remains is another address that contains the subject's.
    assert [row for row in left if f"jo{ANN}.com" not in str(row)] == []
    for name, rows in world.everything().items():
        if name.startswith("object") and ":acme:" in name:
            assert ANN not in str(rows), name
    assert world.mentions(ANN, tenant="neighbour")


async def test_erasing_by_mention_keeps_what_does_not_mention_the_subject(world: World) -> None:
    await erased(world)
    hits = {hit.record.content for hit in await world.recall("Bob Rome lamp fact", top_k=50)}
    assert {content for content in hits if "Fact" not in content} == {"Lives in Rome.", f"Bob likes jo{ANN}.com."}
    messages = world.sql_now("SELECT position, content, state FROM ingest_messages WHERE tenant_id = 'acme'")
    assert [tuple(message.values()) for message in messages] == [(1, None, "learned"), (2, "Bye.", "received")]
    assert await world.kv.get("agent_working:acme:main:count") == "17"
    assert await world.objects_store.get("tenants/acme/mails/2") == b"nothing"
    inputs = [json.loads(row["input"]) for row in world.sql_now("SELECT * FROM agent_runs WHERE tenant_id = 'acme'")]
    assert sorted(bool(logged.get("erased")) for logged in inputs) == [False, True, True]
    kept = world.sql_now("SELECT DISTINCT run_id FROM run_events WHERE tenant_id = 'acme'")
    assert len(kept) == 1


async def test_erasing_by_mention_erases_only_messages_and_documents_that_name_the_subject(
    world: World,
) -> None:
    mails, others = Namespace("desk", "acme", "mails"), Namespace("desk", "acme", "others")
    await erased(world)
    hi = [ChatMessage("user", "Hi.")]
    assert await SqlChatMemory(world.sql, mails).load() == hi
    assert await SqlChatMemory(world.sql, others).load() == await KvChatMemory(world.kv, others).load() == hi
    assert await KvChatMemory(world.kv, mails).load() == [], "KV stores a conversation as one value"
    documents = [
        await IndexedVectorMemory(
            world.sql, world.index, world.clock, mails, dimensions=256, model="static"
        ).documents(),
        await SqlVectorMemory(world.sql, others, dimensions=256, model="static").documents(),
    ]
    assert [[one.content for one in some] for some in documents] == [["A lamp."], ["A lamp."]]
    left = [name for name, vector in world.vectors().items() if vector["namespace"] == "vector_memory:acme"]
    assert len(left) == 1
    assert world.sql_now("SELECT * FROM vector_removals") == []


async def test_a_sealed_conversation_is_searched_for_a_mention(world: World) -> None:
    hers, his = (
        KvChatMemory(world.kv, Namespace("desk", "acme", session), sealer=legacy.SEALER)
        for session in ("sealed-1", "sealed-2")
    )
    await hers.save([ChatMessage("user", f"Write to {ANN}.")])
    await his.save([ChatMessage("user", "Hi.")])
    with pytest.raises(Misconfigured) as refused:
        await erased(world)
    assert refused.value.code == "item_unreadable"
    assert (await legacy.erased(world, "mention")).receipt.state == "completed"
    assert await hers.load() == []
    assert await his.load() == [ChatMessage("user", "Hi.")]


@pytest.mark.parametrize("term", ["user", "content", "role", "assistant", "arguments"])
async def test_field_names_of_messages_do_not_count_as_mentions(world: World, term: str) -> None:
    place = Namespace("desk", "acme", "mails")
    before = await SqlChatMemory(world.sql, place).load(), await KvChatMemory(world.kv, place).load()
    await erased(world, subject=term)
    assert (await SqlChatMemory(world.sql, place).load(), await KvChatMemory(world.kv, place).load()) == before


async def test_an_erased_tenant_accepts_no_conversations_and_no_documents(world: World) -> None:
    await erased(world, "acme")
    place = Namespace("desk", "acme", "mails")
    with pytest.raises(Conflict):
        await SqlChatMemory(world.sql, place).save([ChatMessage("user", "Hi.")])
    with pytest.raises(Conflict):
        await SqlVectorMemory(world.sql, place, dimensions=2, model="m").store([VectorDocument("a", "a", [1.0, 0.0])])


async def test_an_erased_tenant_begins_no_runs_and_keeps_no_schedule_where_the_erasure_is_not_known_yet() -> None:
    plain = {"type": "clerk", "description": "Helps.", "instructions": "Help.", "working_memory": True}
    with closing(World(catalogue(plain), lambda _: ObedientChat())) as world:
        tenants = Tenants(world.sql, world.clock)
        await tenants.register("acme")
        await erased(world, "acme")
        world.clock.advance(HOUR_MS)
        with raises(NotFound, code="unknown_tenant"):
            await world.run("clerk", order(say="after it"))
        request = {"input": order(say="hourly"), "metadata": {}}
        hourly: dict[str, Any] = {"cron": "0 * * * *", "timezone": "UTC", "at_ms": None}
        await world.ask("clerk", "schedule", request=request, **hourly)
        world.clock.advance(HOUR_MS)
        await world.fire_alarms()
        await world.settled()
        left = {name for name, rows in rows_of(world, "acme").items() if rows}
        assert left == {"object clerk:acme:main/identity"}
        assert world.local("clerk:acme:main", "SELECT 1 FROM schedules") == []
        await tenants.register("acme")
        assert (await world.run("clerk", order(say="again")))["output"] == "again"


async def test_erasing_by_subject_erases_only_its_records_and_their_past(world: World) -> None:
    records = {row["id"]: row for row in world.sql_now("SELECT * FROM memory_records WHERE tenant_id = 'acme'")}
    outcome = await erased(world, match="subject")
    left = {row["id"]: row for row in world.sql_now("SELECT * FROM memory_records WHERE tenant_id = 'acme'")}
    assert {records[gone]["content"] for gone in set(records) - set(left)} == {
        f"{ANN} likes tea.",
        f"{ANN} likes coffee.",
    }
    assert outcome.receipt.counts["d1.memory_records"] == 2
    assert {
        row["data"] for row in world.sql_now("SELECT data FROM memory_events") if f'"subject": "{ANN}"' in row["data"]
    } == {
        row["data"]
        for row in world.sql_now("SELECT data FROM memory_events WHERE tenant_id = 'neighbour'")
        if f'"subject": "{ANN}"' in row["data"]
    }
    assert {v["fact_id"] for v in world.vectors().values() if v["namespace"] == "agent_memory_semantic:acme"} == set(
        left
    )


@pytest.mark.parametrize(("stored", "asked"), [("Zoe\u0308", "Zo\u00eb"), ("Zo\u00eb", "Zoe\u0308")])
@pytest.mark.parametrize("as_it_came", [False, True], ids=["composed", "as an earlier version stored it"])
async def test_a_subject_is_erased_in_whichever_normal_form_it_was_stored(
    monkeypatch: pytest.MonkeyPatch, stored: str, asked: str, as_it_came: bool
) -> None:
    with living() as world:
        with monkeypatch.context() as earlier:
            if as_it_came:
                earlier.setattr("retain.memory.records.record.composed", lambda text: text)
            await world.store("Likes tea.", subject=stored)
        await world.store("Likes coffee.", subject="Zo\u00e9")
        backups = Backups(world.stores(), 14)
        assert (await backups.advance("acme")).state == "completed"
        found = await list_records(world.sql, Scope("acme"), Listing(filter={"subject": asked}))
        assert [record.content for record in found[0]] == ["Likes tea."]
        await erased(world, subject=asked, match="subject")
        assert world.mentions("Likes tea.") == []
        assert world.mentions("Likes coffee.")


async def test_a_record_whose_subject_has_changed_keeps_its_present_state(world: World) -> None:
    [before] = world.sql_now("SELECT * FROM memory_records WHERE tenant_id = 'acme' AND content = 'Lives in Rome.'")
    await erased(world, match="subject")
    record, events = await world.memory().get(before["id"])
    assert (record.subject, record.edited, [event.kind for event in events]) == ("bob", True, ["stored"])
    assert ANN not in str(events)
    assert world.sql_now("SELECT * FROM memory_records WHERE id = ?", before["id"]) == [before]


async def test_the_receipt_identifies_the_subject_only_with_the_salt(world: World) -> None:
    outcome = await erased(world, match="subject")
    [row] = world.sql_now("SELECT * FROM erasure_receipts")
    assert ANN not in str(row)
    assert (row["salt"], row["request"], row["cursor"], row["pending"], row["step"]) == (None,) * 5
    asked = json.dumps({"match": "subject", "subject": ANN}, separators=(",", ":"))
    assert row["request_digest"] == sha256(f"{outcome.salt}\n{asked}".encode()).hexdigest()
    assert str(outcome.salt) not in str(world.everything())


async def test_erasing_again_finds_nothing(world: World) -> None:
    await erased(world)
    before = rows_of(world, "acme")
    again = await erased(world)
    assert {name: n for name, n in again.receipt.counts.items() if name != "durable_objects"} == {}
    assert rows_of(world, "acme") == before


async def test_a_mention_without_words_is_refused(world: World) -> None:
    for subject, match in (("…", "mention"), (" ", "subject"), ("x" * 513, "subject")):
        with pytest.raises(InvalidInput):
            await erased(world, subject=subject, match=match)


def test_every_table_with_a_tenants_rows_is_declared_by_one_area(world: World) -> None:
    columns = world.sql_now(
        "SELECT m.name AS name, c.name AS col FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
    )
    migrated = {row["name"] for row in columns if row["col"] == "tenant_id"}
    declared = [table.name for table in TENANT_TABLES]
    assert sorted(declared) == sorted(migrated)


@pytest.mark.parametrize("table", TENANT_TABLES, ids=[table.name for table in TENANT_TABLES])
def test_a_declared_table_has_its_declared_columns(world: World, table: TenantTable) -> None:
    columns = {row["name"] for row in world.sql_now(f"SELECT name FROM pragma_table_info('{table.name}')")}
    texts = table.texts
    assert table.keys
    named = {*table.keys, *texts.columns, *texts.whole, *texts.searched, table.tenants, texts.marked} - {None}
    assert named <= columns
    assert not table.instances or {"agent_type", "instance_id"} <= columns
    assert not table.parts or len(table.keys) == 1
    for name, part in table.parts.items():
        of_part = {row["name"] for row in world.sql_now(f"SELECT name FROM pragma_table_info('{name}')")}
        assert {*part.columns, *table.keys} <= of_part
    if texts.emptied is not None:
        world.sql_now(f"UPDATE {table.name} SET {texts.emptied} WHERE tenant_id = 'nobody'")


@pytest.mark.parametrize("word", ["eval_", "agent_runs", "run_events", "chat_messages", "ingest_", "procedure_"])
def test_the_eraser_knows_the_areas_tables_only_from_their_declarations(word: str) -> None:
    sources = list((ROOT / "workers" / "retain" / "lifecycle" / "erasure").glob("*.py"))
    assert len(sources) > 5
    assert [path.name for path in sources if word in path.read_text()] == []


def test_the_gateways_keys_are_found_by_the_prefixes_that_the_gateway_uses(world: World) -> None:
    assert tool_name_in_kv("acme", "ship").startswith("gateway_tool:acme:")
    assert credential_name("acme", "ship").startswith("gateway_credential:acme:")
    assert STORED_PREFIX == "gateway_key:"


async def test_a_fact_that_is_erased_replaces_no_other(world: World) -> None:
    begun = world.clock()
    older = await world.store("Bob lives in Oslo.", tenant="rival", subject="bob", predicate="lives_in")
    world.clock.advance(1000)
    await world.store("Bob lives with Lupus.", tenant="rival", subject="bob", predicate="lives_in")
    while (await Erasure(world.stores()).erase_subject("rival", "lupus", "mention")).retry_after_ms is not None:
        await world.rest()
    record, _ = await world.memory("rival").get(older)
    assert (record.valid_from_ms, record.valid_to_ms, record.superseded_by) == (begun, None, None)
    assert [hit.record.id for hit in await world.recall("Where does Bob live?", tenant="rival")] == [older]
    assert (await verify_page(world.stores(), "rival", None, repair=False)).drift == {}
    assert (await world.stores().history().verify("rival")).problem is None


async def test_a_fact_whose_past_is_erased_is_valid_again_when_the_one_that_replaced_it_is_erased(world: World) -> None:
    older = await world.store("Bob lives with Lupus.", tenant="rival", subject="bob", predicate="lives_in")
    await world.memory("rival").edit(older, {"content": "Bob lives in Oslo."}, PERSON)
    world.clock.advance(1000)
    await world.store("Bob lives where Lupus lives.", tenant="rival", subject="bob", predicate="lives_in")
    while (await Erasure(world.stores()).erase_subject("rival", "lupus", "mention")).retry_after_ms is not None:
        await world.rest()
    record, events = await world.memory("rival").get(older)
    assert (record.content, record.valid_to_ms, record.superseded_by) == ("Bob lives in Oslo.", None, None)
    assert [event.kind for event in events] == ["stored", "restored"]
    assert (await verify_page(world.stores(), "rival", None, repair=False)).drift == {}
