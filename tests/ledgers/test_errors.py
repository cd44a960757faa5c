"""The error ledger: what is parked, when it is settled, and what a replay does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from retain.admin.maintenance import keep_up, keep_up_step, retention_rules
from retain.admin.replaying import Replaying, ReplayPorts
from retain.errors import Conflict, InvalidInput, NotFound, RetainError, Unavailable
from retain.evaluation.runner import Runner
from retain.host.sql import SqliteSql
from retain.ingest.extractors.selection import extractor
from retain.ingest.ingestion import Ingestion, continue_interrupted
from retain.items.demotion import Demotion
from retain.json_text import JsonObject
from retain.ledgers.errors import (
    STAGES,
    ParkedError,
    Stage,
    Trouble,
    dismiss,
    error_id_of,
    find_error,
    list_errors,
    park,
    settle,
)
from retain.ledgers.put_aside import dropping, park_unlisted, put_aside_for
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.backups.jobs import BackupJob, BackupJobs
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.reindexing import Reindexing
from retain.memory.indexer import PARKED_AFTER
from retain.memory.records.record import NewRecord
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from retain.outbox import MAX_REFUSALS
from retain.retention import prune
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.lifecycle.other_models import OtherModel
from tests.lifecycle.world import MINUTE_MS, PERSON, World
from tests.support.databases import migrated_d1
from tests.support.faults import Fault
from tests.support.instances import Upstream, catalogue

NOW = 1_700_000_000_000
ABOUT = {"description": "Helps.", "instructions": "Help."}
CANARY = "my card ends in 4242"


@pytest.fixture
def sql() -> Iterator[SqliteSql]:
    with closing(migrated_d1()) as database:
        yield database


class Desk(World):
    """A deployment with a clerk that calls the gateway's tool `ship`, and what replays its errors."""

    def __init__(self, *replies: Any) -> None:
        self.chat = SteppedChat(*replies)
        clerk = {"type": "clerk", **ABOUT, "tools": ["ship"], "limits": {"model_wait_minutes": 0}}
        super().__init__(catalogue(clerk), lambda _: self.chat)
        self.ship = Upstream("ship", idempotent=True)
        self.upstreams = {"ship": self.ship}
        self.steps: dict[str, Callable[[], Awaitable[object]]] = {
            "consolidation": lambda: keep_up_step("consolidation", self.stores())
        }

    def replaying(self) -> Replaying:
        async def call_tool(tenant_id: str, name: str, arguments: JsonObject, key: str) -> tuple[int, bytes]:
            return await self.upstreams[name].call(arguments, key)

        async def step(name: str) -> object:
            return await self.steps[name]()

        def runner() -> Runner:
            raise AssertionError("no evaluation")

        def demotion() -> Demotion:
            raise AssertionError("no item")

        async def backup(tenant_id: str, job_id: str) -> BackupJob:
            stores = self.stores()
            return await Backups(stores, 14).resume(await BackupJobs(stores).get(tenant_id, job_id))

        return Replaying(ReplayPorts(self.stores(), self.ingestion, runner, demotion, backup, step, call_tool))

    def ingestion(self, scope: Scope) -> Ingestion:
        stores = self.stores()
        embedder = self.faults.wrap("embedder", self.embedder, self.faults.life("desk"))
        memory = SemanticMemory(scope, stores.sql, stores.index, embedder, self.clock)
        return Ingestion(memory, stores.sql, lambda: extractor("rules", lambda: self.chat), self.clock)

    async def parked(self, stage: Stage, state: str = "parked") -> ParkedError:
        """Return the one error of a stage. It names nothing that the test typed."""
        await self.settled()
        [entry] = (await list_errors(self.sql, stage=stage)).entries
        assert CANARY not in json.dumps(entry.to_json())
        assert entry.state == state
        return entry

    async def replay(self, entry: ParkedError) -> tuple[str, Any]:
        self.clock.advance(1)
        replay = await self.replaying().replay(entry.error_id, "ops@example.com")
        if replay.error.state == "replayed":
            assert replay.error.settled_by == "ops@example.com"
        return replay.error.state, replay.outcome


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    with closing(Desk()) as desk:
        yield desk


async def test_a_failing_upstream_is_parked_and_its_call_is_made_again_with_the_same_key() -> None:
    with closing(Desk(calls(("ship", {"order": CANARY})), says("it failed"))) as desk:
        desk.ship.status = 503
        report = await desk.run("clerk", "ship it", user={"id": "ann"})
        entry = await desk.parked("tool")
        assert (entry.concerns, entry.code, entry.attempts) == (f"{report['run_id']}.1.0", "upstream_status", 1)
        assert (entry.tenant_id, entry.agent_type, entry.instance_id) == ("acme", "clerk", "main")
        assert (entry.user_id, entry.run_id) == ("ann", report["run_id"])
        assert await desk.replay(entry) == ("parked", {"tool": "ship", "upstream_status": 503})
        assert (await desk.parked("tool")).attempts == 2
        desk.ship.status = 200
        assert await desk.replay(entry) == ("replayed", {"tool": "ship", "upstream_status": 200})
        assert desk.ship.asked == [({"order": CANARY}, entry.concerns)] * 3
        assert await desk.replay(entry) == ("replayed", None)
        assert len(desk.ship.asked) == 3, "what has succeeded is not done again"


async def test_a_run_that_its_model_failed_is_run_again_on_the_same_input() -> None:
    refused = Unavailable("busy", code="model_unavailable")
    with closing(Desk(refused, refused, says("hello, Ann"))) as desk:
        failed = await desk.run("clerk", CANARY, user={"id": "ann", "name": "Ann"})
        assert failed["status"] == "failed"
        entry = await desk.parked("run")
        assert (entry.concerns, entry.code, entry.user_id) == (failed["run_id"], "model_unavailable", "ann")
        state, outcome = await desk.replay(entry)
        assert (state, outcome["status"], outcome["error"]["code"]) == ("parked", "failed", "model_unavailable")
        state, outcome = await desk.replay(entry)
        assert (state, outcome["status"], outcome["output"]) == ("replayed", "completed", "hello, Ann")
        assert (await find_error(desk.sql, entry.error_id)).attempts == 2
        await desk.settled()
        runs = await desk.rows("SELECT json_extract(input, '$.input') AS asked, user_id FROM agent_runs")
        assert [(run["asked"], run["user_id"]) for run in runs] == [(CANARY, "ann")] * 3
        assert await desk.replay(entry) == ("replayed", None)


async def test_a_run_that_met_its_own_limit_is_not_an_error() -> None:
    agents = catalogue({"type": "clerk", **ABOUT, "working_memory": True, "limits": {"max_turns": 1}})
    chat = SteppedChat(calls(("get_working_memory", {})))
    with closing(World(agents, lambda _: chat)) as world:
        report = await world.run("clerk", "hello")
        await world.settled()
        assert report["error"]["code"] == "turn_limit"
        assert world.sql_now("SELECT * FROM error_ledger") == []


async def test_a_tool_s_refusal_that_the_model_can_correct_is_not_an_error() -> None:
    with closing(Desk(calls(("no_such", {})), says("never mind"))) as desk:
        await desk.run("clerk", "ship it")
        await desk.settled()
        assert desk.sql_now("SELECT * FROM error_ledger") == []


async def test_a_run_whose_texts_are_gone_cannot_be_replayed() -> None:
    with closing(Desk(Unavailable("busy", code="model_unavailable"))) as desk:
        await desk.run("clerk", CANARY)
        entry = await desk.parked("run")
        desk.sql_now("UPDATE agent_runs SET texts = 'removed', input = '{}'")
        with pytest.raises(Conflict) as refused:
            await desk.replay(entry)
        assert refused.value.code == "not_replayable"


async def test_a_run_whose_caller_brought_the_conversation_cannot_be_replayed() -> None:
    with closing(Desk(Unavailable("busy", code="model_unavailable"))) as desk:
        await desk.run("clerk", CANARY, prior=[{"role": "user", "content": "hello"}])
        with pytest.raises(Conflict) as refused:
            await desk.replay(await desk.parked("run"))
        assert refused.value.code == "not_replayable"


async def test_what_the_outbox_gave_up_is_written_by_a_replay(desk: Desk) -> None:
    desk.sql_now("CREATE TRIGGER full BEFORE INSERT ON memory_episodes BEGIN SELECT RAISE(ABORT, 'full'); END")
    await desk.run("clerk", "hello")
    for _ in range(3 * MAX_REFUSALS):
        desk.clock.advance(6 * MINUTE_MS)
        await desk.fire_alarms()
    entry = await desk.parked("outbox")
    assert (entry.attempts, entry.instance_id) == (MAX_REFUSALS, "main")
    assert (await desk.replay(entry))[0] == "parked"
    desk.sql_now("DROP TRIGGER full")
    state, outcome = await desk.replay(entry)
    assert (state, outcome) == ("replayed", {"written": "append_episode_of_user"})
    assert len(desk.sql_now("SELECT * FROM memory_episodes")) == 1
    assert desk.sql_now("SELECT * FROM outbox_failures") == []


async def test_a_write_that_is_dismissed_is_dropped_and_one_that_no_entry_lists_is_parked_by_the_brief(
    desk: Desk,
) -> None:
    desk.sql_now("CREATE TRIGGER full BEFORE INSERT ON memory_episodes BEGIN SELECT RAISE(ABORT, 'full'); END")
    await desk.run("clerk", CANARY)
    for _ in range(3 * MAX_REFUSALS):
        desk.clock.advance(6 * MINUTE_MS)
        await desk.fire_alarms()
    desk.sql_now("DELETE FROM error_ledger")  # as before there was a ledger
    assert await park_unlisted(desk.sql, 10) == 1
    entry = await desk.parked("outbox")
    owed = await put_aside_for(desk.sql, entry)
    assert owed is not None
    assert (owed.statement, owed.code) == ("append_episode_of_user", entry.code)
    assert CANARY not in json.dumps(owed.to_json())
    assert await park_unlisted(desk.sql, 10) == 0
    await dismiss(desk.sql, desk.clock(), entry.error_id, "ops@example.com", dropping(entry))
    assert desk.sql_now("SELECT * FROM outbox_failures") == []
    assert await put_aside_for(desk.sql, entry) is None
    assert (await find_error(desk.sql, entry.error_id)).state == "dismissed"


async def test_vectors_are_parked_when_they_failed_repeatedly_and_settled_when_the_reconciler_succeeds(
    desk: Desk,
) -> None:
    desk.sql_now("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
    record_id = (await desk.memory("acme", user_id="ann").store(NewRecord(CANARY), PERSON)).id
    await desk.rest()
    desk.sql_now(
        "INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, at_ms, due_at_ms)"
        " SELECT id, tenant_id, scope_id, 1, 'owed', 0, 0 FROM memory_records"
    )
    desk.faults.plan(Fault(Unavailable("down"), point="index.upsert", outage=True))
    for count in range(1, PARKED_AFTER + 2):
        desk.clock.advance(70 * MINUTE_MS)
        await desk.stores().indexer().reconcile()
        entries = (await list_errors(desk.sql, stage="vectors")).entries
        assert [entry.attempts for entry in entries] == ([count] if count >= PARKED_AFTER else [])
    entry = await desk.parked("vectors")
    assert (entry.concerns, entry.tenant_id, entry.user_id) == (record_id, "acme", "ann")
    assert (await desk.replay(entry))[0] == "parked"
    desk.faults.down.clear()
    desk.clock.advance(70 * MINUTE_MS)
    await desk.stores().indexer().reconcile()
    assert (await desk.parked("vectors", "replayed")).settled_by is None


async def test_documents_that_were_not_sent_are_settled_when_the_daily_work_sends_them(desk: Desk) -> None:
    desk.sql_now("INSERT INTO vector_removals (vector_id, tenant_id, at_ms) VALUES ('document.1.1', 'acme', 1)")
    desk.faults.plan(Fault(Unavailable("down"), point="index.delete_by_ids"))
    assert await keep_up_step("documents", desk.stores()) == {"tenants_failed": 1}
    await desk.parked("documents")
    desk.clock.advance(1)
    assert await keep_up_step("documents", desk.stores()) == {"tenants_failed": 0}
    assert (await desk.parked("documents", "replayed")).settled_by is None


async def test_vectors_are_settled_by_a_replay(desk: Desk) -> None:
    record_id = await desk.store("A lamp.")
    await park(desk.sql, Trouble("vectors", record_id, "vector_index_unavailable", NOW, "acme"))
    assert await desk.replay(await desk.parked("vectors")) == ("replayed", {"settled": record_id})


async def test_an_ingest_that_failed_is_parked_and_completed_by_a_replay(desk: Desk) -> None:
    ingestion = desk.ingestion(Scope("acme", user_id="ann"))
    message = {"id": "m1", "speaker": "ann", "content": f"I live in Rome, {CANARY}."}
    receipt = await ingestion.receive("chat-1", [message])
    desk.faults.plan(Fault(Unavailable("down"), point="embedder.embed"))
    assert (await ingestion.work(receipt.job.job_id)).state == "failed"
    entry = await desk.parked("ingest")
    assert (entry.concerns, entry.code, entry.user_id) == (receipt.job.job_id, "unavailable", "ann")
    state, outcome = await desk.replay(entry)
    assert (state, outcome["state"]) == ("replayed", "completed")


async def test_an_ingest_that_the_daily_brief_completes_is_settled(desk: Desk) -> None:
    ingestion = desk.ingestion(Scope("acme"))
    receipt = await ingestion.receive("chat-1", [{"id": "m1", "speaker": "ann", "content": "I live in Rome."}])
    desk.faults.plan(Fault(Unavailable("down"), point="embedder.embed"))
    await ingestion.work(receipt.job.job_id)
    await desk.parked("ingest")
    await continue_interrupted(desk.sql, desk.clock, desk.ingestion)
    assert (await desk.parked("ingest", "replayed")).settled_by is None


async def test_an_ingest_that_was_interrupted_too_often_is_parked(desk: Desk) -> None:
    receipt = await desk.ingestion(Scope("acme")).receive(
        "chat-1", [{"id": "m1", "speaker": "ann", "content": "I live in Rome."}]
    )
    desk.sql_now("UPDATE ingest_jobs SET attempts = 5, lease_until_ms = 0")
    await continue_interrupted(desk.sql, desk.clock, desk.ingestion)
    entry = await desk.parked("ingest")
    assert (entry.concerns, entry.code) == (receipt.job.job_id, "interrupted")
    assert (await desk.replay(entry))[0] == "replayed"


@pytest.mark.parametrize("kind", ["user", "tenant"])
async def test_an_erasure_that_stopped_is_completed_by_a_replay(desk: Desk, kind: str) -> None:
    desk.sql_now("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
    await desk.run("clerk", "hello", user={"id": "ann"})
    await desk.settled()
    erasure = Erasure(desk.stores())
    desk.faults.plan(Fault(Unavailable("down"), point="instances.call"))
    with pytest.raises(Unavailable):
        await (erasure.erase_user("acme", "ann") if kind == "user" else erasure.erase_tenant("acme"))
    entry = await desk.parked("erasure")
    assert entry.tenant_id == ("acme" if kind == "user" else "")
    for _ in range(10):
        state, outcome = await desk.replay(entry)
        desk.clock.advance(2 * MINUTE_MS)
        if state == "replayed":
            break
    assert (state, outcome) == ("replayed", {"state": "completed"})
    assert desk.sql_now("SELECT * FROM agent_runs") == []


async def test_a_reindexing_that_failed_is_completed_by_a_replay_and_not_begun_again(desk: Desk) -> None:
    desk.sql_now("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
    await desk.store("A lamp.")
    await desk.rest()
    desk.embedder = OtherModel()
    desk.faults.plan(Fault(Unavailable("down"), point="index.upsert"))
    with pytest.raises(Unavailable):
        await Reindexing(desk.stores()).advance("acme")
    entry = await desk.parked("reindexing")
    desk.clock.advance(2 * MINUTE_MS)
    state, outcome = await desk.replay(entry)
    assert (state, outcome["state"]) == ("replayed", "completed")
    assert len(desk.sql_now("SELECT * FROM index_jobs")) == 1


async def test_a_step_of_the_daily_brief_that_failed_is_parked_until_it_succeeds(desk: Desk) -> None:
    desk.faults.plan(Fault(Unavailable("down"), point="sql.run"))
    assert (await keep_up(desk.stores()))["consolidation"] == {"error": "unavailable"}
    entry = await desk.parked("cron")
    assert (entry.tenant_id, entry.concerns, entry.attempts) == ("", "consolidation", 1)
    desk.faults.plan(Fault(Unavailable("down"), point="sql.run", nth=2))
    state, outcome = await desk.replay(entry)
    assert (state, outcome) == ("parked", {"step": {"error": "unavailable"}})
    assert (await desk.parked("cron")).attempts == 2
    assert (await desk.replay(entry))[0] == "replayed"
    desk.faults.plan(Fault(Unavailable("down"), point="sql.run"))
    desk.clock.advance(MINUTE_MS)
    await keep_up(desk.stores())
    assert (await desk.parked("cron")).settled_by is None, "what fails again is parked again"
    await keep_up(desk.stores())
    await desk.parked("cron", "replayed")


@pytest.mark.parametrize("stage", ["learning", "case", "request"])
async def test_what_nothing_can_do_again_is_refused_and_can_be_dismissed(desk: Desk, stage: Stage) -> None:
    await park(desk.sql, Trouble(stage, "x", "resumed_too_often", NOW, "acme"))
    entry = await desk.parked(stage)
    with pytest.raises(Conflict):
        await desk.replay(entry)
    await dismiss(desk.sql, NOW + 1, entry.error_id, "ops@example.com")
    gone = await desk.parked(stage, "dismissed")
    assert (gone.settled_by, gone.settled_at_ms) == ("ops@example.com", NOW + 1)
    assert await desk.replay(gone) == ("dismissed", None)


async def test_an_unknown_error_is_not_found(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await desk.replaying().replay("0" * 32, "ops@example.com")


async def test_a_ledger_that_cannot_be_written_fails_nothing() -> None:
    with closing(Desk(calls(("ship", {"order": "1"})), says("it failed"))) as desk:
        desk.ship.status = 503
        desk.sql_now("DROP TABLE error_ledger")
        assert (await desk.run("clerk", "ship it"))["status"] == "completed"
        ingestion = desk.ingestion(Scope("acme"))
        receipt = await ingestion.receive("chat-1", [{"id": "m1", "speaker": "ann", "content": "I live in Rome."}])
        desk.faults.plan(Fault(Unavailable("down"), point="embedder.embed"))
        assert (await ingestion.work(receipt.job.job_id)).state == "failed"
        assert (await ingestion.work(receipt.job.job_id)).state == "completed"
        desk.faults.plan(Fault(Unavailable("down"), point="sql.run"))
        assert (await keep_up(desk.stores()))["consolidation"] == {"error": "unavailable"}


async def test_what_arrives_twice_counts_once_and_what_happens_again_counts_again(sql: SqliteSql) -> None:
    first = Trouble("run", "r", "model_unavailable", NOW, "acme")
    await park(sql, first)
    await park(sql, first)
    error_id = error_id_of("acme", "run", "r")
    assert (await find_error(sql, error_id)).attempts == 1
    await park(sql, Trouble("run", "r", "internal", NOW + 5, "acme"))
    found = await find_error(sql, error_id)
    assert (found.attempts, found.code, found.first_at_ms, found.last_at_ms) == (2, "internal", NOW, NOW + 5)
    await settle(sql, NOW + 6, ("acme", "run", "r"))
    await park(sql, first)
    assert (await find_error(sql, error_id)).state == "replayed", "a late copy of what was dealt with changes nothing"


async def test_the_pages_together_are_the_errors_that_were_asked_for(sql: SqliteSql) -> None:
    troubles = [
        Trouble(STAGES[n % 3], str(n), ("internal", "unavailable")[n % 2], NOW + n // 2, ("acme", "rival")[n % 2])
        for n in range(30)
    ]
    await park(sql, *troubles)
    for wanted in ({}, {"tenant_id": "acme"}, {"stage": STAGES[1]}, {"code": "internal", "state": "parked"}):
        seen: list[str] = []
        cursor = None
        while True:
            page = await list_errors(sql, **wanted, limit=4, cursor=cursor)
            seen += [entry.concerns for entry in page.entries]
            cursor = page.cursor
            if cursor is None:
                break
        meets = [one for one in troubles if all(getattr(one, k) == v for k, v in wanted.items() if k != "state")]
        order = sorted(meets, key=lambda one: (one.at_ms, error_id_of(one.tenant_id, one.stage, one.concerns)))
        assert seen == [one.concerns for one in reversed(order)]


@pytest.mark.parametrize(
    "cursor", ["", "x", "[]", "[1]", '[1, "a", 2]', "[true, 1]", "[1e400, 1]", "9" * 5000, "[" * 5000]
)
async def test_a_cursor_that_no_page_had_is_refused(sql: SqliteSql, cursor: str) -> None:
    with pytest.raises(InvalidInput):
        await list_errors(sql, cursor=cursor)


@pytest.mark.parametrize("wanted", [{}, {"tenant_id": "acme"}, {"stage": "run"}, {"state": "parked"}], ids=str)
async def test_every_list_of_errors_follows_an_index(sql: SqliteSql, wanted: dict[str, Any]) -> None:
    asked: list[str] = []

    class Explained(SqliteSql):
        async def run(self, statement: str, *values: Any) -> Any:
            plan = await sql.run(f"EXPLAIN QUERY PLAN {statement}", *values)
            asked.extend(str(row["detail"]) for row in plan.rows)
            return plan.__class__([], 0)

    await list_errors(Explained.__new__(Explained), **wanted, cursor=json.dumps([NOW, "0"]))
    assert asked
    assert all("SEARCH error_ledger USING INDEX" in detail for detail in asked), asked


async def test_errors_go_90_days_after_they_last_happened(sql: SqliteSql) -> None:
    day = 86_400_000
    await park(sql, Trouble("run", "old", "internal", NOW - 91 * day, "acme"), Trouble("run", "young", "internal", NOW))
    pruned = await prune(sql, NOW, retention_rules(400))
    assert pruned.by_rule["error_ledger"] == {"acme": 1}
    assert [entry.concerns for entry in (await list_errors(sql)).entries] == ["young"]


async def test_a_late_error_of_an_erased_user_is_not_written() -> None:
    with closing(Desk(Unavailable("busy", code="model_unavailable"))) as desk:
        desk.sql_now("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        failed = await desk.run("clerk", CANARY, user={"id": "ann"})
        await desk.parked("run")
        late = Trouble(
            "tool", f"{failed['run_id']}.1.0", "internal", NOW, "acme", user_id="ann", run_id=failed["run_id"]
        )
        for _ in range(10):
            if (await Erasure(desk.stores()).erase_user("acme", "ann")).retry_after_ms is None:
                break
            desk.clock.advance(MINUTE_MS)
        await park(desk.sql, late)
        assert desk.sql_now("SELECT * FROM error_ledger") == []


async def test_an_outage_of_the_ledger_s_database_raises_nothing() -> None:
    class Down:
        async def run(self, sql: str, *values: Any) -> Any:
            raise Unavailable("down")

        async def batch(self, statements: Any) -> Any:
            raise RetainError("down")

    await park(Down(), Trouble("run", "r", "internal", NOW))
    await settle(Down(), NOW, ("acme", "run", "r"))
