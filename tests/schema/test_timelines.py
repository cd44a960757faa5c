"""What lists the events of runs: of whom, and since when. Triggers write it, whatever is done with the events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from shutil import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.admin.maintenance import retention_rules
from retain.evaluation.case_run import _DELEGATED as OF_CASES
from retain.host.sql import SqliteSql
from retain.lifecycle.moving.relations import relations_of
from retain.lifecycle.transfer.kinds import ROW_KINDS
from retain.lifecycle.transfer.rows import RowPlace, _page_query
from retain.ports import Row, Statement
from retain.tenant_tables import TENANT_TABLES
from tests.support.databases import migrated_d1
from tests.support.instances import ROOT

MINUTE_MS = 60_000
DAY_MS = 86_400_000
FIRST = 59
"""The migration that makes the tables."""


@pytest.fixture
async def sql() -> AsyncIterator[SqliteSql]:
    with closing(migrated_d1()) as database:
        yield database


def event(run_id: str, seq: int, at_ms: int, tenant_id: str = "acme") -> Statement:
    return (
        "INSERT OR IGNORE INTO run_events (run_id, seq, tenant_id, turn, kind, data, at_ms) VALUES (?, ?, ?, 1, 'k', '', ?)",
        (run_id, seq, tenant_id, at_ms),
    )


def change(audit_id: str, tenant_id: str, at_ms: int) -> Statement:
    return (
        "INSERT INTO kv_audit (audit_id, tenant_id, key, operation, changed_by, at_ms) VALUES (?, ?, 'k', 'put', 'x', ?)",
        (audit_id, tenant_id, at_ms),
    )


async def timelines(sql: SqliteSql) -> list[tuple[str, str, int]]:
    rows = (await sql.run("SELECT * FROM timelines ORDER BY tenant_id, run_id")).rows
    return [(row["tenant_id"], row["run_id"], row["since_minute"]) for row in rows]


steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "delete"]),
        st.sampled_from(["a", "b"]),
        st.integers(1, 4),
        st.integers(0, 3),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(steps=steps)
async def test_each_run_with_events_is_listed_since_its_first_event_or_earlier(
    steps: list[tuple[str, str, int, int]],
) -> None:
    with closing(migrated_d1()) as sql:
        for what, run_id, seq, minute in steps:
            if what == "insert":
                await sql.batch([event(run_id, seq, minute * MINUTE_MS + 7, f"of-{run_id}")])
            else:
                await sql.run("DELETE FROM run_events WHERE run_id = ? AND seq <= ?", run_id, seq)
        asked = "SELECT tenant_id, run_id, MIN(at_ms) / 60000 AS first FROM run_events GROUP BY 1, 2 ORDER BY 1, 2"
        expected = [(row["tenant_id"], row["run_id"], row["first"]) for row in (await sql.run(asked)).rows]
        listed = await timelines(sql)
        assert [one[:2] for one in listed] == [one[:2] for one in expected]
        assert all(one[2] <= other[2] for one, other in zip(listed, expected, strict=True))


async def test_a_run_that_loses_its_first_events_is_listed_since_the_first_that_is_left(sql: SqliteSql) -> None:
    await sql.batch([event("r", seq, seq * MINUTE_MS) for seq in range(1, 6)])
    assert await timelines(sql) == [("acme", "r", 1)]
    await sql.run("DELETE FROM run_events WHERE seq <= 3")
    assert await timelines(sql) == [("acme", "r", 4)]
    await sql.run("DELETE FROM run_events")
    assert await timelines(sql) == []


async def test_rows_whose_time_changes_are_listed_since_it(sql: SqliteSql) -> None:
    await sql.batch([*(event("r", seq, seq * MINUTE_MS) for seq in (5, 6)), change("a1", "acme", 3 * DAY_MS)])
    await sql.run("UPDATE run_events SET at_ms = ? WHERE seq = 6", 2 * MINUTE_MS)
    await sql.run("UPDATE kv_audit SET at_ms = ?", DAY_MS)
    assert await timelines(sql) == [("acme", "r", 2)]
    assert (await sql.run("SELECT relation, day FROM days_kept")).rows == [{"relation": "kv_audit", "day": 1}]


async def test_what_is_ignored_for_an_erased_tenant_is_not_listed(sql: SqliteSql) -> None:
    await sql.run("INSERT INTO erased_tenants (tenant_id, last_run_id, closed) VALUES ('acme', 'zzz', 1)")
    await sql.batch([event("r", 1, MINUTE_MS)])
    assert await timelines(sql) == []


async def test_a_table_is_listed_by_day_while_it_has_rows_of_it(sql: SqliteSql) -> None:
    await sql.batch([change(name, name[0], day * DAY_MS) for name, day in (("a1", 1), ("a2", 1), ("a3", 2), ("b1", 1))])
    days = "SELECT tenant_id || day AS one FROM days_kept WHERE relation = 'kv_audit' ORDER BY 1"
    seen = []
    for gone in ("a1", "a2", "b1", "a3"):
        seen.append(" ".join(row["one"] for row in (await sql.run(days)).rows))
        await sql.run("DELETE FROM kv_audit WHERE audit_id = ?", gone)
    assert seen == ["a1 a2 b1", "a1 a2 b1", "a2 b1", "a2"]
    assert (await sql.run(days)).rows == []


async def test_a_database_from_before_lists_what_it_has(tmp_path: Path) -> None:
    for path in sorted((ROOT / "migrations").glob("*.sql"))[: FIRST - 1]:
        copy(path, tmp_path)
    with closing(SqliteSql.open()) as sql:
        sql.migrate(tmp_path)
        await sql.batch(
            [
                *(event("a", seq, (10 + seq) * MINUTE_MS) for seq in range(3, 6)),
                event("b", 1, 5 * MINUTE_MS + 59_999, "rival"),
            ]
        )
        await sql.batch([change(str(number), "acme", number * DAY_MS // 2) for number in range(4)])
        sql.migrate(ROOT / "migrations")
        assert await timelines(sql) == [("acme", "a", 13), ("rival", "b", 5)]
        assert [row["day"] for row in (await sql.run("SELECT day FROM days_kept ORDER BY day")).rows] == [0, 1]


def _details(rows: list[Row]) -> list[str]:
    return [str(row["detail"]) for row in rows if str(row["detail"]).startswith(("SCAN", "SEARCH", "USE"))]


_MOVED = next(one for one in relations_of(TENANT_TABLES) if one.name == "run_events")
_TABLE = next(one for one in TENANT_TABLES if one.name == "run_events")


@pytest.mark.parametrize(
    ("statement", "through"),
    [
        (_MOVED.page("acme", None, 5), "PRIMARY KEY (tenant_id=?)"),
        (_MOVED.page("acme", ["r", 1], 5), "PRIMARY KEY (tenant_id=? AND run_id>?)"),
        (_MOVED.counting("acme"), "PRIMARY KEY (tenant_id=?)"),
        ((_TABLE.page_through_list("?", 5), ("acme",)), "PRIMARY KEY (tenant_id=?)"),
        ((OF_CASES, ("acme",)), "PRIMARY KEY (tenant_id=?)"),
    ],
    ids=["moved first", "moved next", "counted", "erased", "scored"],
)
async def test_the_events_of_a_tenant_are_read_through_its_runs(
    sql: SqliteSql, statement: Statement, through: str
) -> None:
    text, values = statement
    first, second = _details(list((await sql.run(f"EXPLAIN QUERY PLAN {text}", *values)).rows))
    assert first.endswith(f"USING {through}")
    assert second.endswith("USING PRIMARY KEY (run_id=?)")


@pytest.mark.parametrize("after", [(), ("r", 1)], ids=["first", "next"])
async def test_a_page_of_an_export_reads_the_events_of_its_runs(sql: SqliteSql, after: tuple[str | int, ...]) -> None:
    asked = _page_query(ROW_KINDS["event"], RowPlace("event", after))
    plan = _details(list((await sql.run(f"EXPLAIN QUERY PLAN {asked}", "acme", *after, 5, 5000)).rows))
    beyond = " AND run_id>?" if after else ""
    assert plan[:2] == [
        f"SEARCH listed USING PRIMARY KEY (tenant_id=?{beyond})",
        "SEARCH t USING PRIMARY KEY (run_id=?)",
    ]


async def test_a_pruning_of_events_reads_the_runs_that_have_old_ones(sql: SqliteSql) -> None:
    rule = next(rule for rule in retention_rules(400) if rule.name == "run_events")
    plan = _details(list((await sql.run(f"EXPLAIN QUERY PLAN {rule.statements[0]}", DAY_MS, 5)).rows))
    assert plan[1:] == [
        "SEARCH t USING COVERING INDEX timelines_by_age (since_minute<?)",
        "SEARCH event USING PRIMARY KEY (run_id=?)",
    ]
