"""The plans that statements are held to notice a table that is read whole and a tenant that is forgotten."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from retain.host.sql import SqliteSql
from retain.ledgers import debts
from tests.support.excused_plans import PARTS, SMALL
from tests.support.plans import Plans, UnplannedRead, check_statements
from tools.paths import ROOT

_TRIGGER = re.compile(r"CREATE TRIGGER .*? ON \w+(?: WHEN (?P<when>.*?))? BEGIN (?P<body>.*)END", re.DOTALL)
_UNPLANNED = {
    "INSTEAD OF INSERT ON shard_works": "the work of a database asks whether any of its tenants moves; an index has those",
    "INSTEAD OF INSERT ON dropped_schedules": "who drops a schedule has found it in its tenant; its owed writes are few",
}
"""What triggers do otherwise, and why."""

Faults = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    """A database with the schema."""
    with closing(SqliteSql.open()) as sql:
        sql.migrate(ROOT / "migrations")
        yield sql._connection


@pytest.fixture(scope="module")
def faults(connection: sqlite3.Connection) -> Faults:
    """Return what is wrong with the plan of a statement."""
    plans = Plans(connection)
    return lambda sql: plans.faults(sql, sql.count("?"))


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT * FROM quotas WHERE tenant_id = ?", id="by the tenant"),
        pytest.param("SELECT * FROM agent_runs WHERE tenant_id IN (?, ?) AND run_id = ?", id="by an id, in the tenant"),
        pytest.param(
            "SELECT * FROM memory_records r JOIN memory_search s ON s.number = r.number WHERE r.tenant_id = ?",
            id="by an id that leads from the tenant",
        ),
        pytest.param(
            "DELETE FROM agent_runs WHERE run_id IN (SELECT run_id FROM agent_runs WHERE tenant_id = ? LIMIT 9)",
            id="by ids of the tenant",
        ),
        pytest.param(
            "SELECT * FROM memory_text f CROSS JOIN memory_records r ON r.number = f.rowid WHERE +r.tenant_id = ?",
            id="by a full text, checked",
        ),
        pytest.param(
            "SELECT * FROM (SELECT * FROM users WHERE tenant_id = ?) users", id="a part with the name of a table"
        ),
        pytest.param("SELECT MAX(seq) FROM world_history WHERE tenant_id = ?", id="the last of an index"),
        pytest.param(
            "INSERT INTO quotas (tenant_id) VALUES (?) ON CONFLICT (tenant_id) DO NOTHING", id="a written row"
        ),
        pytest.param("SELECT * FROM memory_events WHERE record_id = ?", id="parts of what was found before"),
    ],
)
def test_statements_by_the_tenant_and_an_index_pass(faults: Faults, sql: str) -> None:
    assert faults(sql) == []


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT * FROM quotas", id="all"),
        pytest.param("SELECT * FROM quotas WHERE (tenant_id = ? OR 1)", id="a condition that is always met"),
        pytest.param("SELECT * FROM quotas WHERE tenant_id >= ?", id="more than one tenant"),
        pytest.param("SELECT * FROM agent_runs WHERE run_id = ?", id="by an id alone"),
        pytest.param("SELECT * FROM memory_episodes WHERE created_at_ms < ?", id="by an index of age"),
        pytest.param("DELETE FROM memory_episodes WHERE episode_id = ?", id="deleted by an id alone"),
        pytest.param("UPDATE users SET name = ? WHERE user_id = ?", id="changed by a name that tenants share"),
        pytest.param(
            "SELECT * FROM memory_events WHERE record_id = ? AND (tenant_id = ? OR 1)", id="parts, with a tenant"
        ),
        pytest.param("DELETE FROM memory_records WHERE id = ? AND (tenant_id = ? OR 1)", id="excused, with a tenant"),
        pytest.param(
            "SELECT * FROM conversations c JOIN agent_runs r ON r.instance_id = c.instance_id WHERE c.tenant_id = ?",
            id="joined by a name that tenants share",
        ),
        pytest.param(
            "SELECT name FROM users WHERE tenant_id = ? UNION ALL SELECT name FROM users WHERE user_id = ?",
            id="in one of two",
        ),
        pytest.param(
            "SELECT * FROM users WHERE tenant_id = ? AND NOT EXISTS (SELECT 1 FROM quotas)",
            id="in a part of the statement",
        ),
        pytest.param("INSERT INTO quotas (tenant_id) SELECT tenant_id FROM users WHERE user_id = ?", id="copied"),
    ],
)
def test_a_statement_without_the_tenant_is_noticed(faults: Faults, sql: str) -> None:
    assert any("without the tenant" in fault for fault in faults(sql))


_LISTED = "IN (SELECT value FROM json_each(?))"


@pytest.mark.parametrize(
    ("sql", "noticed"),
    [
        pytest.param(f"SELECT * FROM memory_records WHERE tenant_id = ? AND id {_LISTED}", True, id="ids"),
        pytest.param(
            f"SELECT * FROM memory_records WHERE +tenant_id = ? AND id {_LISTED}", False, id="not by the tenant"
        ),
        pytest.param(
            f"SELECT * FROM memory_records WHERE tenant_id = ? AND id {_LISTED} LIMIT 9", False, id="with a limit"
        ),
        pytest.param(
            "SELECT r.id FROM json_each(?) c JOIN memory_records r ON r.tenant_id = ? AND r.content_hash = c.value",
            True,
            id="joined",
        ),
        pytest.param(f"DELETE FROM quotas WHERE tenant_id = ? AND tenant_id {_LISTED}", False, id="one row for each"),
    ],
)
def test_a_statement_that_is_given_ids_and_reads_all_of_the_tenant_is_noticed(
    faults: Faults, sql: str, noticed: bool
) -> None:
    assert any("reads all of the tenant's" in fault for fault in faults(sql)) == noticed


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT 1 FROM memory_search WHERE tenant_id = ?", id="no index has all rows of a tenant"),
        pytest.param(
            "SELECT 1 FROM ingest_jobs WHERE state = 'running' AND tenant_id = tenant_id", id="no index at all"
        ),
        pytest.param(
            "SELECT 1 FROM tenants t WHERE t.tenant_id = ? AND t.tenant_id IN (SELECT tenant_id FROM memory_search)",
            id="in a part",
        ),
    ],
)
def test_a_table_that_is_read_whole_is_noticed(faults: Faults, sql: str) -> None:
    assert any("whole" in fault for fault in faults(sql))


async def test_a_statement_of_the_product_is_held_and_one_of_a_test_is_not(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = SqliteSql(connection)
    await sql.run("SELECT * FROM memory_outbox")
    await debts.debts_of(sql, "acme")
    check_statements()
    monkeypatch.setitem(debts._WAITING, "vectors", "SELECT at_ms FROM memory_outbox WHERE (tenant_id = ? OR 1)")
    await debts.debts_of(sql, "acme")
    with pytest.raises(UnplannedRead, match="memory_outbox without the tenant"):
        check_statements()
    check_statements()


def test_triggers_read_by_the_tenant_and_an_index(connection: sqlite3.Connection, faults: Faults) -> None:
    found, read = set(), 0
    for (text,) in connection.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'").fetchall():
        trigger = _TRIGGER.fullmatch(" ".join(re.sub(r"--.*", "", text).split()))
        assert trigger is not None, text
        for statement in [*trigger["body"].split(";")[:-1], f"SELECT 1 WHERE {trigger['when'] or 1}"]:
            asked = re.sub(r"\b(?:new|old)\.\w+", "?", re.sub(r"RAISE ?\([^)]*\)", "NULL", statement))
            read += 1
            if faults(asked.strip()):
                found.add(text)
    assert read > 200
    assert {excuse for excuse in _UNPLANNED if any(excuse in text for text in found)} == set(_UNPLANNED)
    assert not [text for text in found if not any(excuse in text for excuse in _UNPLANNED)]


def test_every_table_that_is_excused_exists(connection: sqlite3.Connection) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {*SMALL, *PARTS} <= tables
