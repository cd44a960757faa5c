"""The decision log: what was decided, by which version of what, and on which memories."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from retain.admin.maintenance import retention_rules
from retain.agents.calls.client import InstanceClient
from retain.agents.conversations.deletion import delete_conversation
from retain.agents.definitions import AgentDefinition
from retain.agents.identity import instance_of
from retain.agents.ledgers.declared import Declared, declared_decision
from retain.host.sql import SqliteSql
from retain.ledgers.decisions import LoggedDecision, list_decisions
from retain.ledgers.errors import Trouble, park
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.user_export import export_user_page
from retain.memory.records.record import NewRecord
from retain.retention import DAY_MS, prune
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.lifecycle.world import MINUTE_MS, PERSON, World
from tests.support.databases import migrated_d1
from tests.support.instances import LocalInstances, Upstream, catalogue

ANN = "ann@shop.example"
REFUND = f"{ANN} asks for a refund of order AB-1003."
ABOUT: dict[str, Any] = {"description": "Helps.", "instructions": "Help."}
LABELS = ("APPROVE", "DECLINE", "ESCALATE")


@pytest.mark.parametrize(
    ("answer", "declared"),
    [
        ("APPROVE: fewer than 3.", Declared("APPROVE")),
        ("  **approve** because …", Declared("APPROVE")),
        ("Escalate, with confidence of 85 %.", Declared("ESCALATE", 0.85)),
        ("ESCALATE (confidence: 0.7)", Declared("ESCALATE", 0.7)),
        ("ESCALATE, confidence 70", Declared("ESCALATE")),
        ('{"decision": "Decline", "confidence": 0.25, "why": "x"}', Declared("DECLINE", 0.25)),
        ('{"decision": "DECLINE", "confidence": true}', Declared("DECLINE")),
        ('{"decision": "DECLINE", "confidence": 2}', Declared("DECLINE")),
        ('{"decision": "MAYBE"}', None),
        ('{"outcome": "APPROVE"}', None),
        ('["APPROVE"]', None),
        ('"APPROVE"', Declared("APPROVE")),
        ("I would APPROVE it.", None),
        ("APPROVED", None),
        ("", None),
        ("[" * 100_000, None),
    ],
    ids=str,
)
def test_a_decision_is_what_the_answer_declares(answer: str, declared: Declared | None) -> None:
    assert declared_decision(answer, LABELS) == declared


@pytest.mark.parametrize(
    "decisions",
    [{"labels": []}, {"labels": ["two words"]}, {"labels": ["YES", "yes"]}, {}, {"labels": ["A"], "policy": ""}],
)
def test_a_definition_with_labels_that_cannot_be_told_apart_is_refused(decisions: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="decisions"):
        AgentDefinition.model_validate({"type": "clerk", **ABOUT, "decisions": decisions})


async def logged(world: World, **wanted: Any) -> list[LoggedDecision]:
    await world.settled()
    return (await list_decisions(world.sql, "acme", **wanted)).entries


async def test_the_refund_scenario_logs_its_decision_with_the_records_it_recalled() -> None:
    with closing(World()) as world:
        history = [
            await world.store(f"Refund approved for {ANN}: order AB-100{n}.", agent_type="refund_decision")
            for n in (1, 2)
        ]
        other = await world.store("The office plants are watered on Fridays.", agent_type="refund_decision")
        report = await world.run("refund_decision", REFUND, user={"id": "ann"})
        [decision] = await logged(world)
        assert (decision.decision_id, decision.run_id) == (report["run_id"], report["run_id"])
        assert (decision.kind, decision.decision, decision.decided_by) == (
            "outcome",
            "APPROVE",
            "agent:refund_decision",
        )
        assert (decision.user_id, decision.policy, decision.model) == ("ann", "refunds-1", "scripted/refund_decision")
        assert decision.agent_version is not None
        recalled = {one.id: one for one in decision.memories if one.kind == "record"}
        assert recalled.keys() >= set(history)
        events = world.sql_now("SELECT record_id, MAX(event_id) AS event_id FROM memory_events GROUP BY record_id")
        newest = {row["record_id"]: row["event_id"] for row in events}
        assert {one.id: (one.version, one.source) for one in recalled.values()} == {
            record_id: (newest[record_id], "tool") for record_id in recalled
        }
        assert [one.run_id for one in await logged(world, memory_id=history[0])] == [report["run_id"]]
        assert await logged(world, memory_id=other if other not in recalled else "nothing") == []
        assert ANN not in str(world.sql_now("SELECT * FROM decision_log"))


async def test_a_record_that_changes_after_the_decision_keeps_the_version_that_it_had() -> None:
    with closing(World()) as world:
        record_id = await world.store(f"Refund approved for {ANN}: order AB-1001.", agent_type="refund_decision")
        await world.run("refund_decision", REFUND)
        [before] = await logged(world, memory_id=record_id)
        world.clock.advance(MINUTE_MS)
        await world.memory("acme", "refund_decision").edit(record_id, {"importance": 0.9}, PERSON)
        await world.run("refund_decision", REFUND, instance="second")
        second, first = await logged(world, memory_id=record_id)
        assert first == before
        versions = [next(one.version for one in each.memories if one.id == record_id) for each in (first, second)]
        assert versions[0] is not None
        assert versions[1] is not None
        assert versions[0] < versions[1]


def desk(*replies: Any, **more: Any) -> World:
    clerk = {
        "type": "clerk",
        **ABOUT,
        "decisions": {"labels": ["YES", "NO"], "policy": "p-7"},
        "procedures": {"triage": {"short": "Be brief."}},
        "memory_config": {
            "long_term_enabled": True,
            "recall": "context",
            "profile": {"records": 5},
            "episodes_from": "agent",
        },
        **more,
    }
    chat = SteppedChat(*replies)
    return World(catalogue(clerk), lambda _: chat)


async def test_a_decision_names_what_was_in_its_context_and_the_workflow_it_followed() -> None:
    with closing(desk(says("first"), says("YES, confidence 90%"))) as world:
        world.sql_now("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        await world.run("clerk", "hello", instance="other", user={"id": "ann"})
        known = await world.memory("acme", "clerk", user_id="ann").store(
            NewRecord("Ann lives in Rome.", subject="user", predicate="lives_in", object="Rome"), PERSON
        )
        await world.settled()
        world.clock.advance(MINUTE_MS)
        lamp = await world.store("The lamp costs 40 francs.", agent_type="clerk")
        report = await world.run("clerk", "what does the lamp cost?", user={"id": "ann"})
        [decision] = await logged(world)
        assert (decision.run_id, decision.confidence, decision.policy) == (report["run_id"], 0.9, "p-7")
        found = {(one.kind, one.source): one.id for one in decision.memories}
        assert found["record", "context"] == lamp or known.id
        assert found["procedure", "context"] == "triage/short"
        [procedure] = [one for one in decision.memories if one.kind == "procedure"]
        assert procedure.version is not None
        assert [one.run_id for one in await logged(world, memory_id="triage/short")] == [report["run_id"]]
        kinds = {one.kind for one in decision.memories}
        assert kinds == {"record", "episode", "procedure"}
        assert lamp in {one.id for one in decision.memories}


async def test_another_definition_is_another_version_of_the_agent() -> None:
    versions = []
    for instructions in ("Help.", "Help.", "Help well."):
        with closing(desk(says("YES"), instructions=instructions)) as world:
            await world.run("clerk", "hello")
            [decision] = await logged(world)
            versions.append(decision.agent_version)
    assert versions[0] == versions[1] != versions[2]


async def test_an_answer_without_a_label_is_not_logged() -> None:
    with closing(desk(says("Perhaps YES."))) as world:
        await world.run("clerk", "hello")
        assert await logged(world) == []
        assert world.sql_now("SELECT * FROM decision_memories") == []


@pytest.mark.parametrize(("answer", "label"), [("approve", "approved"), ("reject", "declined")])
async def test_an_approval_is_the_decision_of_the_person_who_gave_or_declined_it(answer: str, label: str) -> None:
    order = calls(("ship", {"order": "1"}))
    with closing(desk(order, says("NO"), tools=["ship"], approval=["ship"])) as world:
        world.upstreams = {"ship": Upstream("ship", idempotent=True)}
        report = await world.run("clerk", "ship it", user={"id": "ann"})
        await world.ask(
            "clerk", "answer", run_id=report["run_id"], call="1.0", approved=answer == "approve", by="eve@shop.example"
        )
        outcome, approval = sorted(await logged(world), key=lambda one: one.kind, reverse=True)
        assert (approval.decision_id, approval.kind) == (f"{report['run_id']}.1.0", "approval")
        assert (approval.decision, approval.decided_by, approval.tool) == (label, "eve@shop.example", "ship")
        assert (outcome.decision, outcome.decided_by) == ("NO", "agent:clerk")
        assert approval.memories == outcome.memories != ()


async def test_a_run_that_crashed_and_was_resumed_decides_once_on_what_it_began_with() -> None:
    with closing(desk(says("YES"))) as world:
        await world.store("The lamp costs 40 francs.", agent_type="clerk")
        await world.run("clerk", "what does the lamp cost?", key="k")
        [decision] = await logged(world)
        await world.evict()
        await world.run("clerk", "what does the lamp cost?", key="k")
        assert await logged(world) == [decision]


async def test_decisions_of_an_erased_user_go_and_late_ones_do_not_arrive() -> None:
    with closing(desk(says("YES"), says("NO"))) as world:
        world.sql_now("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        await world.run("clerk", "hello", instance="a", user={"id": "ann"})
        await world.run("clerk", "hello", instance="b", user={"id": "bob"})
        assert {one.user_id for one in await logged(world)} == {"ann", "bob"}
        rows = world.sql_now("SELECT * FROM decision_log WHERE user_id = 'ann'")
        for _ in range(20):
            if (await Erasure(world.stores()).erase_user("acme", "ann")).retry_after_ms is None:
                break
            world.clock.advance(2 * MINUTE_MS)
        [left] = await logged(world)
        assert left.user_id == "bob"
        assert {row["decision_id"] for row in world.sql_now("SELECT * FROM decision_memories")} == {left.decision_id}
        world.plant("decision_log", **rows[0])
        assert [one.user_id for one in await logged(world)] == ["bob"]


async def test_a_user_s_decisions_are_in_the_user_s_export_alone() -> None:
    with closing(desk(says("YES"), says("NO"))) as world:
        await world.run("clerk", "hello", instance="a", user={"id": "ann"})
        await world.run("clerk", "hello", instance="b", user={"id": "bob"})
        await world.settled()
        lines: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = await export_user_page(world.stores(), "acme", "ann", cursor)
            lines += [json.loads(line) for line in page.lines]
            cursor = page.cursor
            if cursor is None:
                break
        [decision] = [line["decision"] for line in lines if line["kind"] == "decision"]
        assert (decision["decision"], decision["instance_id"], decision["policy"]) == ("YES", "a", "p-7")


async def test_a_deleted_conversation_leaves_no_row_in_a_ledger() -> None:
    note = calls(("set_working_memory", {"key": "draft", "value": 1}), ("broken", {}))
    with closing(desk(note, says("YES"), says("NO"), working_memory=True)) as world:
        for instance in ("a", "b"):
            await world.run("clerk", "hello", instance=instance)
            await world.settled()
            run_id = world.sql_now("SELECT MAX(run_id) AS run_id FROM agent_runs")[0]["run_id"]
            trouble = Trouble("run", run_id, "internal", 1, "acme", "clerk", instance, run_id=run_id)
            await park(world.sql, trouble)
        ledgers = ("decision_log", "kv_audit", "error_ledger")
        assert {len(world.sql_now(f"SELECT * FROM {table}")) for table in ledgers} == {1, 2}
        await delete_conversation(world.sql, InstanceClient(LocalInstances(world), instance_of("acme", "clerk", "a")))
        await world.settled()
        assert [row["instance_id"] for table in ledgers for row in world.sql_now(f"SELECT * FROM {table}")] == [
            "b",
            "b",
        ]
        assert {row["decision_id"] for row in world.sql_now("SELECT * FROM decision_memories")} == {
            row["decision_id"] for row in world.sql_now("SELECT * FROM decision_log")
        }


async def test_decisions_go_with_the_rows_of_their_runs() -> None:
    with closing(desk(says("YES"))) as world:
        await world.run("clerk", "hello")
        await world.settled()
        assert world.sql_now("SELECT * FROM decision_memories") != []
        assert (await prune(world.sql, world.clock() + 399 * DAY_MS, retention_rules(400))).by_rule[
            "decision_log"
        ] == {}
        pruned = await prune(world.sql, world.clock() + 401 * DAY_MS, retention_rules(400))
        assert pruned.by_rule["decision_log"] == {"acme": 1}
        assert world.sql_now("SELECT * FROM decision_memories") == []


async def test_decisions_are_listed_by_agent_label_and_time_page_by_page() -> None:
    with closing(World()) as world:
        for n in range(20):
            world.plant(
                "decision_log",
                decision_id=f"{n:026}",
                tenant_id=("acme", "rival")[n % 5 == 0],
                run_id=f"{n:026}",
                kind="outcome",
                decision=LABELS[n % 3],
                agent_type=("clerk", "sdr")[n % 2],
                at_ms=1000 + n,
            )
        meets: dict[str, tuple[dict[str, Any], Callable[[int], bool]]] = {
            "all": ({}, lambda n: True),
            "agent": ({"agent_type": "sdr"}, lambda n: n % 2 == 1),
            "label": ({"decision": "DECLINE"}, lambda n: n % 3 == 1),
            "time": ({"since_ms": 1003, "until_ms": 1012}, lambda n: 3 <= n < 12),
        }
        for wanted, fits in meets.values():
            seen: list[str] = []
            cursor = None
            while True:
                page = await list_decisions(world.sql, "acme", **wanted, limit=3, cursor=cursor)
                seen += [entry.run_id for entry in page.entries]
                cursor = page.cursor
                if cursor is None:
                    break
            assert seen == [f"{n:026}" for n in range(19, -1, -1) if n % 5 and fits(n)]


@pytest.mark.parametrize("wanted", [{}, {"agent_type": "sdr"}, {"decision": "YES"}, {"memory_id": "m"}], ids=str)
async def test_every_list_of_decisions_follows_an_index(wanted: dict[str, Any]) -> None:
    asked: list[str] = []
    with closing(migrated_d1()) as sql:

        class Explained(SqliteSql):
            async def run(self, statement: str, *values: Any) -> Any:
                plan = await sql.run(f"EXPLAIN QUERY PLAN {statement}", *values)
                asked.extend(str(row["detail"]) for row in plan.rows)
                return plan.__class__([], 0)

        await list_decisions(Explained.__new__(Explained), "acme", **wanted)
    plans = [detail for detail in asked if detail.startswith("SCAN") and "json_each" not in detail]
    assert plans == [], asked
    assert sum("decision_log" in detail and "INDEX" in detail for detail in asked) == 1, asked
