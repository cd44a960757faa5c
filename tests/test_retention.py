"""Retention in D1: what is removed at which age, at what cost, and what a stopped pruning leaves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from pathlib import Path
from shutil import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.admin.maintenance import retention_rules
from retain.agents.files.owed import UseAttachments
from retain.agents.runs.owed import EARLIER, CloseRun, StartRun
from retain.errors import ConstraintViolated, Unavailable
from retain.host.sql import SqliteSql
from retain.json_text import Json
from retain.memory.conversations.statements import AppendMessage
from retain.ports import Sql, SqlResult, SqlValue, Statement
from retain.retention import DAY_MS, STATEMENTS, Pruned, RetentionRule, prune
from tests.support.databases import migrated_d1
from tests.support.faults import Fault, Faults
from tests.support.instances import ROOT

NOW = 1_700_000_000_000
RULES = retention_rules(400)
CANARY = "my card ends in 4242"


@pytest.fixture
async def sql() -> AsyncIterator[SqliteSql]:
    with closing(migrated_d1()) as database:
        yield database


class Counted:
    """Implements `Sql` on another one, and counts the statements."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self.statements = 0

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        self.statements += 1
        return await self._sql.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        self.statements += len(statements)
        return await self._sql.batch(statements)


def episode(name: str, age_days: float, *, tenant: str = "acme") -> Statement:
    return (
        "INSERT INTO memory_episodes (episode_id, tenant_id, agent_type, instance_id, run_id, turn, content, created_at_ms)"
        " VALUES (?, ?, 'sdr', 'main', 'r', 1, ?, ?)",
        (name, tenant, CANARY, NOW - int(age_days * DAY_MS)),
    )


def message(number: int, age_days: float) -> Statement:
    owed = AppendMessage(
        f"{number}.0", "acme", "sdr", "main", "r", "user", CANARY, NOW - int(age_days * DAY_MS), None, 0
    )
    return owed.SQL, owed.values()


def event(number: int, age_days: float) -> Statement:
    return (
        "INSERT INTO run_events (run_id, seq, tenant_id, kind, turn, data, at_ms) VALUES ('r', ?, 'acme', 'k', 1, ?, ?)",
        (number, json.dumps(CANARY), NOW - int(age_days * DAY_MS)),
    )


def logged(**more: Json) -> str:
    """Return a run's logged input."""
    episodes: list[Json] = [{"episode_id": "e.001"}]
    return json.dumps({"input": CANARY, "metadata": {"note": CANARY}, "episodes": episodes, "cut": {}, **more})


def started(run_id: str, age_days: float, *, tenant: str = "acme", kept: str | None = None) -> Statement:
    at_ms = NOW - int(age_days * DAY_MS)
    owed = StartRun(run_id, tenant, "sdr", "main", None, kept or logged(), "model", at_ms, None, None, None)
    return owed.SQL, owed.values()


def closed(run_id: str, error: str | None = None) -> Statement:
    owed = CloseRun("failed" if error else "completed", CANARY, error, 3, 20, 0, 4, NOW, run_id)
    return owed.SQL, owed.values()


def stored(attachment_id: str, age_days: float) -> Statement:
    at_ms = NOW - int(age_days * DAY_MS)
    sql = "INSERT INTO attachments VALUES (?1, 'acme', NULL, ?1, 'text/plain', 1, ?1, ?2, ?2, NULL)"
    return sql, (attachment_id, at_ms)


def named(run_id: str, attachment_id: str, age_days: float) -> Statement:
    owed = UseAttachments(run_id, json.dumps([attachment_id]), "acme", "sdr", "main", NOW - int(age_days * DAY_MS))
    return owed.SQL, owed.values()


async def names(sql: Sql, table: str, key: str) -> list[object]:
    return [row[key] for row in (await sql.run(f"SELECT {key} FROM {table} ORDER BY {key}")).rows]


async def holding_text(sql: Sql) -> list[str]:
    """Return the tables in which the canary is found."""
    tables = (
        "agent_runs",
        "run_events",
        "memory_episodes",
        "outbox_failures",
        "refused_episodes",
        "conversation_messages",
    )
    return [t for t in tables if CANARY in json.dumps((await sql.run(f"SELECT * FROM {t}")).rows)]


async def test_texts_go_after_90_days_from_every_table_for_each_tenant(sql: SqliteSql) -> None:
    failure = "INSERT INTO outbox_failures VALUES ('sdr:acme:main', ?, 'acme', 'append_episode', ?, 'e', ?)"
    for number, age in enumerate((91, 90.01, 90, 1)):
        await sql.batch(
            [
                *(episode(f"{tenant}{number}", age, tenant=tenant) for tenant in ("acme", "rival")),
                event(number, age),
                message(number, age),
                started(f"run{number}", age),
                closed(f"run{number}"),
                (failure, (number, CANARY, NOW - int(age * DAY_MS))),
                ("INSERT INTO refused_episodes VALUES (?, 'acme', ?)", (str(number), NOW - int(age * DAY_MS))),
            ]
        )
    pruned = await prune(sql, NOW, RULES)
    assert {rule: dict(tenants) for rule, tenants in pruned.by_rule.items() if tenants} == {
        "memory_episodes": {"acme": 2, "rival": 2},
        "refused_episodes": {"acme": 2},
        "conversation_messages": {"acme": 2},
        "run_events": {"acme": 2},
        "texts_of_runs": {"acme": 2},
        "outbox_failures": {"acme": 2},
    }
    assert await names(sql, "memory_episodes", "episode_id") == ["acme2", "acme3", "rival2", "rival3"]
    assert await names(sql, "run_events", "seq") == [2, 3]
    assert await names(sql, "conversation_messages", "message_id") == ["2.0", "3.0"]
    assert await names(sql, "outbox_failures", "entry_id") == [2, 3]
    assert await names(sql, "refused_episodes", "episode_id") == ["2", "3"]
    rows = (await sql.run("SELECT run_id, texts FROM agent_runs WHERE input LIKE ? ORDER BY 1", f"%{CANARY}%")).rows
    assert [(row["run_id"], row["texts"]) for row in rows] == [("run2", "kept"), ("run3", "kept")]
    await prune(sql, NOW + 90 * DAY_MS, RULES)
    assert await holding_text(sql) == []


async def test_a_run_without_its_texts_still_says_what_it_was_and_what_it_refers_to(sql: SqliteSql) -> None:
    await sql.batch(
        [
            started(
                "old",
                91,
                kept=logged(records=[{"id": "m", "score": 0.5}], procedure={"workflow_id": "short"}, unheard_of=CANARY),
            ),
            closed("old", json.dumps({"code": "turn_limit", "message": CANARY})),
            ("UPDATE agent_runs SET learning = ?", (json.dumps({"error": {"code": "c", "message": CANARY}}),)),
        ]
    )
    await prune(sql, NOW, RULES)
    [row] = (await sql.run("SELECT * FROM agent_runs")).rows
    assert json.loads(row["input"]) == {
        "episodes": [{"episode_id": "e.001"}],
        "cut": {},
        "records": [{"id": "m", "score": 0.5}],
        "procedure": {"workflow_id": "short"},
    }
    assert json.loads(row["error"]) == {"code": "turn_limit", "message": None}
    assert json.loads(row["learning"]) == {"error": {"code": "c"}}
    assert (row["texts"], row["output"], row["steps"], row["input_tokens"]) == ("removed", None, 3, 20)


async def test_a_run_that_ends_after_its_texts_were_removed_loses_its_output_with_the_next_pruning(
    sql: SqliteSql,
) -> None:
    await sql.batch([started("late", 91)])
    await prune(sql, NOW, RULES)
    await sql.batch([closed("late")])
    assert await holding_text(sql) == ["agent_runs"]
    await prune(sql, NOW, RULES)
    assert await holding_text(sql) == []
    [row] = (await sql.run("SELECT status, steps FROM agent_runs")).rows
    assert row == {"status": "completed", "steps": 3}


@pytest.mark.parametrize(
    ("kept_days", "left"), [(400, ["d30", "d399"]), (30, ["d30"]), (1000, ["d30", "d399", "d401"])]
)
async def test_rows_of_runs_are_deleted_at_the_configured_age(sql: SqliteSql, kept_days: int, left: list[str]) -> None:
    await sql.batch([started("d30", 30), started("d399", 399), started("d401", 401)])
    await sql.batch([closed("d30"), closed("d399"), closed("d401")])
    await prune(sql, NOW, retention_rules(kept_days))
    assert await names(sql, "agent_runs", "run_id") == left
    # A row that is kept for less than 90 days loses its texts with itself.
    texts = (await sql.run("SELECT run_id FROM agent_runs WHERE texts = 'kept'")).rows
    assert texts == [{"run_id": "d30"}]


@pytest.mark.parametrize("kept_days", [400, 30])
async def test_what_rebuilds_a_waiting_run_is_kept_for_90_days_however_long_rows_of_runs_are(
    sql: SqliteSql, kept_days: int
) -> None:
    for name, age_days in (("d29", 29), ("d31", 31), ("d91", 91)):
        await sql.run(
            "INSERT INTO parked_runs"
            " (run_id, tenant_id, agent_type, instance_id, seq, due_at_ms, parked_at_ms, request, context)"
            " VALUES (?, 'acme', 'sdr', 'main', 1, 0, ?, '{}', '{}')",
            name,
            NOW - age_days * DAY_MS,
        )
    await prune(sql, NOW, retention_rules(kept_days))
    assert await names(sql, "parked_runs", "run_id") == ["d29", "d31"]


async def test_the_row_of_a_run_that_has_not_ended_is_kept_for_90_days_longer(sql: SqliteSql) -> None:
    await sql.batch([started("waits", 96.9), started("lost", 97.1), started("ended", 8), closed("ended")])
    await prune(sql, NOW, retention_rules(7))
    assert await names(sql, "agent_runs", "run_id") == ["waits"]
    await sql.batch([closed("waits")])
    for _ in range(2):  # its output goes, and then its row
        await prune(sql, NOW, retention_rules(7))
    assert await names(sql, "agent_runs", "run_id") == []


async def test_a_run_is_kept_until_its_webhooks_have_heard_of_it(sql: SqliteSql) -> None:
    """A run that waited for a person for as long as rows of runs are kept has just ended."""
    await sql.run(
        "INSERT INTO webhooks (tenant_id, webhook_id, url, events, secret, created_by, created_at_ms)"
        " VALUES ('acme', 'w', 'https://shop.example', '[\"run.completed\"]', 's', 'ada', 0)"
    )
    await sql.batch([started("heard", 20), closed("heard"), started("owed", 20), closed("owed")])
    await sql.run("UPDATE webhook_deliveries SET status = 'delivered' WHERE run_id = 'heard'")
    for _ in range(2):
        await prune(sql, NOW, retention_rules(7))
    assert (await sql.run("SELECT run_id, output FROM agent_runs")).rows == [{"run_id": "owed", "output": CANARY}]
    await sql.run("UPDATE webhook_deliveries SET status = 'failed'")
    await prune(sql, NOW, retention_rules(7))
    assert await names(sql, "agent_runs", "run_id") == []


async def test_a_file_that_a_run_names_which_has_not_ended_is_kept_for_90_days(sql: SqliteSql) -> None:
    for name, age_days in (("waits", 20), ("lost", 91), ("ended", 20)):
        await sql.batch([started(name, age_days), stored(name, age_days), named(name, name, age_days)])
    await sql.batch([stored("both", 20), named("ended", "both", 20), named("waits", "both", 20), closed("ended")])
    await prune(sql, NOW, retention_rules(7))
    assert await names(sql, "attachments", "attachment_id") == ["both", "waits"]
    await sql.batch([closed("waits")])
    await prune(sql, NOW, retention_rules(7))
    assert await names(sql, "attachments", "attachment_id") == await names(sql, "attachment_uses", "run_id") == []


async def test_the_mark_of_an_erasure_stays(sql: SqliteSql) -> None:
    await sql.batch([started("erased", 91, kept='{"erased": "receipt"}'), started("odd", 91, kept="not JSON")])
    await prune(sql, NOW, RULES)
    rows = (await sql.run("SELECT run_id, input, texts FROM agent_runs ORDER BY run_id")).rows
    assert [(row["input"], row["texts"]) for row in rows] == [('{"erased":"receipt"}', "removed"), ("{}", "removed")]


async def test_idle_tenants_cost_nothing(sql: SqliteSql) -> None:
    await sql.batch(
        [("INSERT INTO tenants (tenant_id, created_at_ms) VALUES (?, 0)", (f"t{number}",)) for number in range(600)]
    )
    await sql.batch([episode(f"e{number}", 1, tenant=f"t{number}") for number in range(600)])
    counted = Counted(sql)
    pruned = await prune(counted, NOW, RULES)
    assert counted.statements == pruned.statements == sum(len(rule.statements) for rule in RULES) == 24


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.name) for rule in RULES])
async def test_what_is_old_is_found_through_an_index(sql: SqliteSql, rule: RetentionRule) -> None:
    for statement in rule.statements:
        plan = (await sql.run(f"EXPLAIN QUERY PLAN {statement}", NOW, rule.rows)).rows
        details = [str(row["detail"]) for row in plan]
        assert [detail for detail in details if detail.startswith("SCAN") and "json_each" not in detail] == []
        assert any("<?" in detail and "INDEX" in detail for detail in details), details


SMALL = tuple(RetentionRule(rule.name, rule.kept_ms, rule.statements, 3) for rule in RULES)
"""The rules with small slices."""
ONCE = sum(len(rule.statements) for rule in RULES)
"""The statements of one slice of each rule."""


async def test_a_call_takes_no_more_statements_than_it_may_and_the_next_one_continues(sql: SqliteSql) -> None:
    await sql.batch(
        [*(episode(f"e{n}", 100) for n in range(20)), *(event(n, 100) for n in range(20)), episode("new", 1)]
    )
    calls: list[Pruned] = []
    while not calls or not calls[-1].complete:
        counted = Counted(sql)
        calls.append(await prune(counted, NOW, SMALL, statements=ONCE + 2))
        assert counted.statements == calls[-1].statements <= ONCE + 2
    # Each rule has its turn: one with much to remove does not keep the others waiting.
    assert all(calls[0].by_rule[name]["acme"] > 0 for name in ("memory_episodes", "run_events"))
    assert [sum(call.by_rule["memory_episodes"].values()) for call in calls] == [6, 6, 6, 2]
    assert await names(sql, "memory_episodes", "episode_id") == ["new"]


@pytest.mark.parametrize("at", range(1, 12))
async def test_a_pruning_that_failed_is_resumed(sql: SqliteSql, at: int) -> None:
    await sql.batch([*(episode(f"e{n}", 100) for n in range(10)), *(started(f"r{n}", 100) for n in range(5))])
    faults = Faults(lambda owner: None)
    faults.plan(Fault(Unavailable("D1 is down"), at, "sql.batch"))
    failing = faults.wrap("sql", sql, faults.life("cron"))
    with pytest.raises(Unavailable):
        await prune(failing, NOW, SMALL)
    assert (await prune(failing, NOW, SMALL)).complete
    assert await holding_text(sql) == []
    [row] = (await sql.run("SELECT SUM(episodes) AS n FROM episode_counts")).rows
    assert row["n"] == 0


async def test_a_rule_that_fails_does_not_keep_the_others_from_what_is_too_old(sql: SqliteSql) -> None:
    await sql.batch([episode("e", 100), event(1, 100), started("r", 500), message(1, 100)])
    await sql.run("CREATE TRIGGER broken BEFORE DELETE ON memory_episodes BEGIN SELECT RAISE(ABORT, 'refused'); END")
    with pytest.raises(ConstraintViolated):
        await prune(sql, NOW, RULES)
    left = [
        name
        for name in ("memory_episodes", "run_events", "agent_runs", "conversation_messages")
        if (await sql.run(f"SELECT 1 FROM {name}")).rows
    ]
    assert left == ["memory_episodes"]


ages = st.lists(st.tuples(st.sampled_from(["episode", "event", "run"]), st.sampled_from([1, 90, 91, 401])), max_size=25)


@settings(max_examples=40, deadline=None)
@given(rows=ages, statements=st.integers(ONCE, 2 * ONCE))
async def test_however_often_a_pruning_stops_its_outcome_is_the_same(
    rows: list[tuple[str, int]], statements: int
) -> None:
    made: dict[str, Callable[[int, int], Statement]] = {
        "episode": lambda n, age: episode(f"e{n}", age),
        "event": event,
        "run": lambda n, age: started(f"r{n}", age),
    }
    outcomes: list[str] = []
    for rules, bound in ((SMALL, statements), (RULES, 1000)):
        with closing(migrated_d1()) as sql:
            await sql.batch([made[kind](number, age) for number, (kind, age) in enumerate(rows)])
            while not (await prune(sql, NOW, rules, bound)).complete:
                pass
            tables = ("agent_runs", "run_events", "memory_episodes", "episode_counts")
            outcomes.append(json.dumps([(await sql.run(f"SELECT * FROM {t} ORDER BY 1, 2")).rows for t in tables]))
    assert outcomes[0] == outcomes[1]


def test_a_pruning_fits_the_free_plan_and_has_room_for_each_rule() -> None:
    assert 2 * ONCE <= STATEMENTS < 50


def of_version_0_1_0(run_id: str, age_days: float, episodes: int) -> Statement:
    """Return a run's first entry as version 0.1.0 wrote it."""
    read = [
        {
            "episode_id": f"{run_id}{n}.001",
            "run_id": f"{run_id}{n}",
            "turn": 1,
            "content": f"{CANARY} “{n}” \ud83d",
            "created_at_ms": 7,
        }
        for n in range(episodes)
    ]
    kept = {"input": "hello", "metadata": {"big": 2**60, "half": 0.5}, "episodes": read, "records": [], "cut": {}}
    at_ms = NOW - int(age_days * DAY_MS)
    return EARLIER["start_run"], (run_id, "acme", "sdr", "main", None, json.dumps(kept), "model", at_ms)


async def test_a_database_of_version_0_1_0_refers_to_episodes_after_the_first_prunings(tmp_path: Path) -> None:
    for path in sorted((ROOT / "migrations").glob("*.sql"))[:11]:
        copy(path, tmp_path)
    with closing(SqliteSql.open()) as sql:
        assert sql.migrate(tmp_path)[-1] == "0011_episodes_of_instances.sql"
        young = [of_version_0_1_0(f"young{number}", 1, episodes=number % 11) for number in range(7)]
        await sql.batch([*young, of_version_0_1_0("old", 91, episodes=10)])
        await sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        sql.migrate(ROOT / "migrations")
        waiting = of_version_0_1_0("waiting", 1, episodes=2)  # was in an instance's outbox meanwhile
        await sql.batch([waiting])
        assert await holding_text(sql) == ["agent_runs"]

        calls = 1
        while not (await prune(sql, NOW, SMALL, statements=ONCE)).complete:
            calls += 1
        assert calls > 1
        assert await holding_text(sql) == []
        for _, (run_id, *_, given, _, _) in (*young, waiting):
            [row] = (await sql.run("SELECT * FROM agent_runs WHERE run_id = ?", run_id)).rows
            before = json.loads(str(given))
            before["episodes"] = [{"episode_id": episode["episode_id"]} for episode in before["episodes"]]
            assert json.loads(row["input"]) == before
            assert row["texts"] == "kept"
        [old] = (await sql.run("SELECT * FROM agent_runs WHERE run_id = 'old'")).rows
        assert (old["texts"], json.loads(old["input"]).keys()) == ("removed", {"episodes", "records", "cut"})
