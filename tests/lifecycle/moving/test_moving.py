"""A tenant that moves takes everything with it, leaves nothing, and is found where it is by whoever looked elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from retain.contracts.backends.document_rows import DocumentRows
from retain.contracts.stored.document_index import DocumentIndex
from retain.contracts.vectors import VectorDocument
from retain.errors import Conflict, ConstraintViolated, NotFound, TenantElsewhere, Unavailable
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.lifecycle.moving import mover
from retain.lifecycle.moving.copying import PAGE_BYTES
from retain.lifecycle.moving.mover import FREEZE_MS
from retain.lifecycle.moving.relations import FOLLOWING, relations_of
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from retain.namespace import Namespace
from retain.ports import SqlResult, SqlValue, Statement, VectorEntry
from retain.retention import TEXT_KEPT_MS
from retain.shards.fence import working, writing
from retain.shards.place import HOME, everywhere, in_tenant
from retain.tenant_tables import TENANT_TABLES
from tests.lifecycle.erasable import filled
from tests.lifecycle.moving.deployment import MOVED, Rows, living
from tests.ports import raises
from tests.support.databases import connection_of
from tests.support.instances import shipped_embedder


def same(moved: Rows, before: Rows) -> None:
    """Compare tables, without what the index of the target is owed."""
    for table in {*moved, *before} - {"memory_outbox", "vector_removals"}:
        assert moved.get(table) == before.get(table), table


def test_every_table_of_tenants_moves() -> None:
    assert sorted(relation.name for relation in relations_of(TENANT_TABLES)) == sorted({*MOVED} - FOLLOWING)


async def test_a_tenant_with_data_everywhere_moves_there_and_back() -> None:
    with living(begun=filled()) as deployment:
        deployment.plant_missing("acme")
        before, vectors = deployment.rows(HOME, "acme"), deployment.vectors(HOME, "acme")
        neighbour = deployment.rows(HOME, "neighbour")
        assert {*MOVED} - {*before} <= {"eval_scratches"}, "a tenant with an open evaluation does not move"
        source = HOME
        for target in ("DB_1", "DB_2", HOME):
            move = await deployment.moved("acme", target)
            assert (move.state, move.error) == ("completed", None)
            same(deployment.rows(target, "acme"), before)
            assert deployment.rows(source, "acme") == {}
            assert deployment.vectors(target, "acme").keys() == vectors.keys()
            assert deployment.vectors(source, "acme") == {}
            assert "refund" in " ".join(await deployment.recalled("acme", "a refund of an order"))
            source = target
        assert deployment.rows(HOME, "neighbour") == neighbour
        for database in deployment.databases.values():
            left = (
                connection_of(database).execute("SELECT name FROM sqlite_master WHERE name LIKE 'moving_%'").fetchall()
            )
            assert left == [], "the triggers of a move end with it"
            assert connection_of(database).execute("SELECT * FROM tenant_changes").fetchall() == []


async def test_who_remembers_the_old_database_writes_and_reads_at_the_new_one() -> None:
    with living() as deployment:
        await deployment.register("acme")
        await deployment.store("acme", "The first one.")
        old = deployment.shards
        with in_tenant("acme"):
            await old.sql.run("SELECT 1 FROM memory_records WHERE tenant_id = 'acme'")
        await deployment.moved("acme", "DB_1")
        with in_tenant("acme"):
            rows = (await old.sql.run("SELECT content FROM memory_records WHERE tenant_id = 'acme'")).rows
            assert [row["content"] for row in rows] == ["The first one."]
        await deployment.moved("acme", "DB_2")
        with in_tenant("acme"):
            await old.sql.run("UPDATE tenants SET max_memories_per_user = 7 WHERE tenant_id = 'acme'")
            assert await old.index.count() == 1
        at_last = connection_of(deployment.databases["DB_2"]).execute("SELECT max_memories_per_user FROM tenants")
        assert at_last.fetchall() == [(7,)]
        with pytest.raises(TenantElsewhere):
            await deployment.databases["DB_1"].batch([writing("acme", "DB_1"), ("DELETE FROM tenants", ())])


async def test_rows_keep_their_numbers_and_no_two_databases_give_the_same() -> None:
    with living() as deployment:
        await deployment.register("acme")
        for turn, target in enumerate(("DB_1", HOME, "DB_1", "DB_2", HOME)):
            await deployment.store("acme", f"Number {turn}.")
            await deployment.store("default", f"Of another one, {turn}.")
            await deployment.moved("acme", target)
        await deployment.store("acme", "The last one.")
        numbers = [row[1] for row in deployment.rows(HOME, "acme")["memory_search"]] and [
            row[0] for row in deployment.rows(HOME, "acme")["memory_records"]
        ]
        others = [row[0] for row in deployment.rows(HOME, "default")["memory_records"]]
        assert len({*numbers, *others}) == 6 + 5
        assert len(await deployment.recalled("acme", "number")) == 6


async def test_tenants_that_move_in_both_directions_at_once_do_not_bring_numbers_that_the_other_database_gives() -> (
    None
):
    with living() as deployment:
        await deployment.register("acme")
        await deployment.store("acme", "Before.")
        await deployment.moved("acme", "DB_1")
        await deployment.store("acme", "The first number of the second range.")
        leaving = await deployment.mover.advance(await deployment.mover.start("default", "DB_1", "person:ada"))
        assert leaving.step == "copy"
        await deployment.moved("acme", HOME)  # the first database gets a range above that of the second
        await deployment.store("default", "Numbered in it, and copied to the second database.")
        assert (await deployment.moved("default", "DB_1")).state == "completed"
        for tenant in ("acme", "default") * 2:
            await deployment.store(tenant, f"After, {len(deployment.numbers())}.")
        for target in ("DB_2", HOME):
            for tenant in ("acme", "default"):
                assert (await deployment.moved(tenant, target)).state == "completed"
        assert sorted(map(len, deployment.numbers().values())) == [1] * 7


async def test_a_move_that_begins_removes_those_that_ended_long_ago() -> None:
    with living() as deployment:
        await deployment.register("acme")
        await deployment.register("other")
        ended = await deployment.moved("default", "DB_1")
        running = await deployment.mover.start("acme", "DB_1", "person:ada")
        deployment.clock.set(ended.started_at_ms + TEXT_KEPT_MS)
        latest = await deployment.mover.start("other", "DB_1", "person:ada")
        moves, _ = await deployment.mover.moves.page(before=None, limit=10)
        assert {move.move_id for move in moves} == {ended.move_id, running.move_id, latest.move_id}
        deployment.clock.advance(1_000_000)
        again = await deployment.mover.start("default", HOME, "person:ada")
        moves, _ = await deployment.mover.moves.page(before=None, limit=10)
        assert {move.move_id for move in moves} == {running.move_id, latest.move_id, again.move_id}, "open ones stay"


async def test_a_database_does_not_give_the_number_of_a_row_that_has_left_it_again() -> None:
    with living() as deployment:
        await deployment.register("acme")
        for tenant in ("default", "acme"):
            await deployment.store(tenant, "Before.")
        await deployment.moved("acme", "DB_1")
        await deployment.store("default", "Has a number that the other one's record does not have.")
        assert sorted(map(len, deployment.numbers().values())) == [1] * 3
        assert (await deployment.moved("acme", HOME)).state == "completed"


async def test_a_cancelled_move_leaves_the_tenant_where_it_was() -> None:
    with living(begun=filled()) as deployment:
        before = deployment.rows(HOME, "acme")
        move = await deployment.mover.start("acme", "DB_1", "person:ada")
        for _ in range(2):
            move = await deployment.mover.advance(move)
        assert deployment.rows("DB_1", "acme") != {}
        move = await deployment.mover.cancel(move)
        while move.state == "running":
            move = await deployment.mover.advance(move)
        assert move.state == "cancelled"
        assert deployment.rows("DB_1", "acme") == {}
        assert deployment.vectors("DB_1", "acme") == {}
        assert deployment.rows(HOME, "acme") == before
        assert await deployment.store("acme", "Still written here.")
        assert (await deployment.moved("acme", "DB_1")).state == "completed"


async def test_a_move_that_switched_is_not_cancelled_and_refused_ones_say_why() -> None:
    with living() as deployment:
        with raises(NotFound, code="unknown_shard"):
            await deployment.mover.start("default", "DB_9", "person:ada")
        with raises(NotFound, code="unknown_tenant"):
            await deployment.mover.start("nobody", "DB_1", "person:ada")
        with raises(Conflict, code="same_shard"):
            await deployment.mover.start("default", HOME, "person:ada")
        move = await deployment.mover.start("default", "DB_1", "person:ada")
        with raises(Conflict, code="other_move"):
            await deployment.mover.start("default", "DB_2", "person:ada")
        while move.step != "remove":
            move = await deployment.mover.advance(move)
        with raises(Conflict, code="move_switched"):
            await deployment.mover.cancel(move)


async def test_a_freeze_ends_by_the_database_s_clock_and_a_late_switch_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with living() as deployment:
        move = await deployment.mover.start("default", "DB_1", "person:ada")
        while move.step != "switch":
            move = await deployment.mover.advance(move)
        monkeypatch.setattr("retain.lifecycle.moving.mover.FREEZE_MS", -1)
        move = await deployment.mover.advance(move)
        assert move.step == "catch_up", "the freeze was over before the switch"
        assert await deployment.store("default", "Written after it.")
        monkeypatch.setattr("retain.lifecycle.moving.mover.FREEZE_MS", FREEZE_MS)
        assert (await deployment.moved("default", "DB_1")).state == "completed"
        assert await deployment.recalled("default", "written") == ["Written after it."]


_SHIFTED = "UPDATE scopes SET words = words + (scope_id = 'agent.agent_1') - (scope_id = 'agent.agent_2')"


@pytest.mark.parametrize("wrong", [False, True], ids=["the copy counted right", "it counted two scopes wrong"])
async def test_while_a_tenant_is_frozen_its_scopes_are_read_one_by_one_only_if_the_sums_of_what_they_count_differ(
    monkeypatch: pytest.MonkeyPatch, *, wrong: bool
) -> None:
    with living() as deployment:
        await deployment.register("acme")
        agents = [f"agent_{number}" for number in range(4)]

        async def store(agent: str, content: str) -> None:
            with in_tenant("acme"):
                memory = SemanticMemory(
                    Scope("acme", agent), deployment.databases[HOME], deployment.indexes[HOME],
                    shipped_embedder(), deployment.clock,
                )  # fmt: skip
                await memory.store(NewRecord(content), RecordSource("agent"))

        for agent in agents:
            await store(agent, "A crane lifts seven tons.")
        read: list[bool] = []
        run = SqliteSql.run

        async def watched(sql: SqliteSql, text: str, *values: SqlValue) -> SqlResult:
            if "state = 'frozen', frozen_until_ms" in text:
                await store(agents[0], "The winch is new.")  # the last write before the freeze
                if wrong:
                    await run(deployment.databases["DB_1"], _SHIFTED)
                read.append(False)
            elif read and "FROM scopes t WHERE tenant_id" in text:
                read.append(True)
            return await run(sql, text, *values)

        monkeypatch.setattr(SqliteSql, "run", watched)
        move = await deployment.moved("acme", "DB_1")
        assert (move.counts["freezes"], any(read)) == (1, wrong)
        query = "SELECT scope_id, records, words FROM scopes WHERE kind = 'agent' ORDER BY scope_id"
        found = connection_of(deployment.databases["DB_1"]).execute(query).fetchall()
        assert found == [("agent.agent_0", 2, 9), *((f"agent.agent_{number}", 1, 5) for number in (1, 2, 3))]


async def test_a_vector_whose_removal_is_owed_is_in_no_index_after_the_move() -> None:
    with living() as deployment:
        await deployment.register("acme")
        kept = await deployment.store("acme", "Kept.")
        gone = await deployment.store("acme", "Deleted, and the index was away.")
        lost = deployment.indexes[HOME]
        entries = await lost.get_by_ids([f"{gone}#0"])
        with in_tenant("acme"):
            await deployment.memory("acme").delete(gone, RecordSource("agent"))
        await lost.upsert(entries)  # as if it had not been removed
        source = deployment.databases[HOME]
        await source.run(
            "INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, at_ms, due_at_ms)"
            " VALUES (?, 'acme', 'tenant', 1, 'owed', 0, 0)",
            gone,
        )
        await lost.upsert([replace(entries[0], id="document.7.1")])
        await source.run("INSERT INTO vector_removals VALUES ('document.7.1', 'acme', 0)")
        assert (await deployment.moved("acme", "DB_1")).state == "completed"
        assert deployment.vectors(HOME, "acme") == {}
        assert deployment.vectors("DB_1", "acme").keys() == {f"{kept}#0"}


async def test_a_document_that_the_index_is_sent_during_the_move_stays_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mover, "CHANGES", 1)
    with living() as deployment:
        await deployment.register("acme")
        source = deployment.databases[HOME]
        rows = DocumentRows(source, Namespace.parse("desk:acme:mails"), 256, "static")
        await rows.store([VectorDocument("letter", "A letter.", [1.0] * 256)], indexed=True)
        move = await deployment.mover.start("acme", "DB_1", "person:ada")
        while move.step != "catch_up":
            move = await deployment.mover.advance(move)
        await DocumentIndex(source, deployment.indexes[HOME], deployment.clock).settle("acme")
        for _ in range(2):
            await source.run("UPDATE vector_documents SET sent_at_ms = sent_at_ms - 1 WHERE tenant_id = 'acme'")
        await deployment.moved("acme", "DB_1")
        target = deployment.databases["DB_1"], deployment.indexes["DB_1"]
        await DocumentIndex(*target, deployment.clock).settle("acme")
        assert deployment.vectors("DB_1", "acme").keys() == {"document.1.1"}


async def test_a_record_that_gets_shorter_during_the_move_has_no_further_vectors() -> None:
    with living() as deployment:
        await deployment.register("acme")
        long = " ".join(f"Crane {number} lifts {number * 7} tons." for number in range(80))
        record = await deployment.store("acme", long)
        move = await deployment.mover.start("acme", "DB_1", "person:ada")
        while move.step != "catch_up":
            move = await deployment.mover.advance(move)
        assert len(deployment.vectors("DB_1", "acme")) > 1
        with in_tenant("acme"):
            await deployment.memory("acme").edit(record, {"content": "Crane 1."}, RecordSource("agent"))
        await deployment.moved("acme", "DB_1")
        assert deployment.vectors("DB_1", "acme").keys() == {f"{record}#0"}


async def test_no_word_of_a_tenant_that_has_left_is_in_the_blocks_of_the_full_text_index() -> None:
    with living() as deployment:
        await deployment.register("acme")
        await deployment.store("acme", "Upuscanari is the word.")
        query = "SELECT COUNT(*) FROM memory_text_data WHERE instr(block, 'puscanari')"

        def blocks(shard: str) -> int:
            return int(connection_of(deployment.databases[shard]).execute(query).fetchone()[0])

        assert blocks(HOME) > 0
        await deployment.moved("acme", "DB_1")
        assert (blocks(HOME), blocks("DB_1") > 0) == (0, True)


async def test_a_list_over_all_databases_has_a_tenant_that_switches_while_they_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with living(2) as deployment:
        await deployment.register("acme")
        await deployment.moved("acme", "DB_1")
        move = await deployment.mover.start("acme", HOME, "person:ada")
        while move.step != "switch":
            move = await deployment.mover.advance(move)
        database = deployment.databases["DB_1"]
        batch, asked = database.batch, 0

        async def after_the_switch(statements: Sequence[Statement]) -> list[SqlResult]:
            nonlocal asked
            if "FROM tenants" in statements[-1][0]:
                asked += 1
                if asked == 1:
                    monkeypatch.setattr(database, "batch", batch)
                    assert (await deployment.mover.advance(move)).step == "remove"
            return await batch(statements)

        monkeypatch.setattr(database, "batch", after_the_switch)
        with everywhere():
            rows = (await deployment.shards.sql.run("SELECT tenant_id FROM tenants WHERE tenant_id = 'acme'")).rows
        assert asked == 1, "the tenant switched between the two"
        assert [row["tenant_id"] for row in rows] == ["acme"]


async def test_a_move_to_a_database_that_is_no_longer_bound_is_cancelled_and_holds_nothing_up() -> None:
    with living() as deployment:
        await deployment.register("acme")
        await deployment.store("acme", "Kept.")
        move = await deployment.mover.start("acme", "DB_2", "person:ada")
        while move.step != "catch_up":
            move = await deployment.mover.advance(move)
        other = await deployment.mover.start("default", "DB_1", "person:ada")
        removed, vectors = deployment.databases.pop("DB_2"), deployment.indexes.pop("DB_2")
        deployment.isolate()
        with raises(NotFound, code="unknown_shard"):
            await deployment.mover.advance(move)
        deployment.clock.advance(1000)
        await deployment.mover.continue_open(2)
        moves = deployment.mover.moves
        assert ((await moves.get("default", other.move_id)).step, (await moves.get("acme", move.move_id)).error) == (
            "copy",
            "unknown_shard",
        )
        assert (await deployment.mover.cancel(move)).state == "cancelled"
        assert (await deployment.moved("default", "DB_1")).state == "completed"
        await deployment.databases[HOME].batch([working()])
        deployment.databases["DB_2"], deployment.indexes["DB_2"] = removed, vectors
        deployment.isolate()
        assert (await deployment.moved("acme", "DB_2")).state == "completed"
        assert await deployment.recalled("acme", "kept") == ["Kept."]
        await removed.batch([working()])


async def test_a_tenant_whose_database_is_no_longer_bound_is_not_said_to_move() -> None:
    with living() as deployment:
        await deployment.register("acme")
        await deployment.moved("acme", "DB_2")
        removed, vectors = deployment.databases.pop("DB_2"), deployment.indexes.pop("DB_2")
        with raises(Unavailable, code="shard_not_bound"):
            await deployment.store("acme", "Lost?")
        with raises(Unavailable, code="shard_not_bound"):
            await deployment.recalled("acme", "lost")
        deployment.databases["DB_2"], deployment.indexes["DB_2"] = removed, vectors
        assert await deployment.store("acme", "Found.")


async def test_no_table_s_row_is_written_over_that_of_another_tenant() -> None:
    with living(begun=filled()) as deployment:
        deployment.plant_missing("acme")
        before, home = deployment.rows(HOME, "acme"), deployment.databases[HOME]
        tried = 0
        for relation in relations_of(TENANT_TABLES):
            text, values = relation.page("acme", None, 5)
            rows = (await home.run(text, *values)).rows
            if rows and "tenant_id" not in relation.keys:
                text, values = relation.writing([{**row, "tenant_id": "thief"} for row in rows])
                with raises(ConstraintViolated):
                    await home.run(text, *values)
                tried += 1
        assert tried > 25
        assert deployment.rows(HOME, "acme") == before


async def test_a_tenant_with_the_id_of_another_one_s_record_stays_and_takes_nothing_from_it() -> None:
    with living() as deployment:
        for tenant in ("acme", "thief"):
            await deployment.register(tenant)
        stolen = await deployment.store("acme", "The order of Ann.")
        await deployment.moved("thief", "DB_1")
        own = await deployment.store("thief", "An import may give this one any id.")
        database = connection_of(deployment.databases["DB_1"])
        for column, table in (("id", "memory_records"), ("record_id", "memory_events"), ("record_id", "memory_outbox")):
            database.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (stolen, own))
        database.commit()
        before, vectors = deployment.rows(HOME, "acme"), deployment.vectors(HOME, "acme")
        with raises(Conflict, code="row_refused"):
            await deployment.moved("thief", HOME)
        with in_tenant("thief"):  # what is deleted during the copy is deleted at the target as well
            await deployment.memory("thief").delete(stolen, RecordSource("person"))
        assert (await deployment.moved("thief", HOME)).state == "completed"
        assert (deployment.rows(HOME, "acme"), deployment.vectors(HOME, "acme")) == (before, vectors)
        assert await deployment.recalled("acme", "the order of Ann") == ["The order of Ann."]


@pytest.mark.parametrize("when", ["copied", "changed meanwhile", "compared at the end"])
async def test_a_move_never_has_more_than_a_few_large_rows_in_memory(
    monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    with living() as deployment:
        await deployment.register("acme")
        database = connection_of(deployment.databases[HOME])
        columns = "key, tenant_id, namespace_key, kind, tier, value, version, size_bytes, created_at_ms, updated_at_ms"
        values = [(f"shop:acme:s:cart:{number}", "v" * 1_000_000) for number in range(12)]
        insert = (
            f"INSERT INTO memory_items ({columns}) VALUES (?, 'acme', 'shop:acme:s', 'cart', 'warm', ?, 1, 1, 1, 1)"
        )
        move = await deployment.mover.start("acme", "DB_1", "person:ada")
        if when == "changed meanwhile":
            while move.step != "catch_up":
                move = await deployment.mover.advance(move)
        database.executemany(insert, values)
        database.commit()
        if when == "compared at the end":
            while move.step != "switch":
                move = await deployment.mover.advance(move)
            target = connection_of(deployment.databases["DB_1"])
            target.execute("DELETE FROM memory_items WHERE key <> 'shop:acme:s:cart:7'")
            target.commit()
        before, largest, run = deployment.rows(HOME, "acme"), 0, SqliteSql.run

        async def measured(self: SqliteSql, sql: str, *values: SqlValue) -> SqlResult:
            nonlocal largest
            result = await run(self, sql, *values)
            largest = max(largest, sum(len(str(row.get("value"))) for row in result.rows))
            return result

        monkeypatch.setattr(SqliteSql, "run", measured)
        assert (await deployment.moved("acme", "DB_1")).state == "completed"
        assert PAGE_BYTES <= largest <= PAGE_BYTES + 1_000_100
        same(deployment.rows("DB_1", "acme"), before)


async def test_a_move_never_has_more_than_a_few_vectors_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with living() as deployment:
        await deployment.register("acme")
        for hall in range(3):
            text = " ".join(f"Crane {number} is in hall {hall}." for number in range(1500))
            await deployment.store("acme", text)
        vectors, read, write = deployment.vectors(HOME, "acme"), SqliteVectorIndex.get_by_ids, SqliteVectorIndex.upsert
        held = most = 0

        async def reading(self: SqliteVectorIndex, ids: Sequence[str]) -> list[VectorEntry]:
            nonlocal held, most
            found = await read(self, ids)
            held += len(found)
            most = max(most, held)
            return found

        async def writing(self: SqliteVectorIndex, entries: Sequence[VectorEntry]) -> str:
            nonlocal held
            held -= len(entries)
            return await write(self, entries)

        monkeypatch.setattr("retain.lifecycle.moving.copying.UPSERTED", 40)
        monkeypatch.setattr(SqliteVectorIndex, "get_by_ids", reading)
        monkeypatch.setattr(SqliteVectorIndex, "upsert", writing)
        assert (await deployment.moved("acme", "DB_1")).state == "completed"
        assert deployment.vectors("DB_1", "acme").keys() == vectors.keys()
        assert most <= 40 < len(vectors)
