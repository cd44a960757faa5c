"""SqliteSql: the contract, D1's migrations, and what only a database on the host can do."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Conflict, ConstraintViolated, LimitExceeded, Misconfigured, Unavailable
from retain.host.sql import SqliteSql, split_statements
from retain.ports import SqlResult, Statement
from tests.ports import Case, cases
from tests.ports import sql as suite


@pytest.fixture
def sql() -> Iterator[SqliteSql]:
    database = SqliteSql.open()
    yield database
    database.close()


@pytest.mark.parametrize("case", cases(suite).values(), ids=cases(suite).keys())
async def test_contract(case: Case, sql: SqliteSql) -> None:
    await case(sql)


@pytest.mark.parametrize("case", cases(suite).values(), ids=cases(suite).keys())
async def test_contract_may_be_repeated_on_the_same_database(case: Case, sql: SqliteSql) -> None:
    await case(sql)
    await case(sql)


async def test_a_row_over_two_megabytes_is_refused(sql: SqliteSql) -> None:
    await sql.run("CREATE TABLE t (a, b)")
    with pytest.raises(LimitExceeded) as raised:
        await sql.run("INSERT INTO t VALUES (?, ?)", "x" * 1_500_000, b"y" * 1_500_000)
    assert raised.value.code == "value_too_large"
    assert (await sql.run("SELECT count(*) AS n FROM t")).rows[0]["n"] == 0


async def test_a_full_database_refuses_writes_and_answers_reads(sql: SqliteSql) -> None:
    await sql.run("CREATE TABLE t (a)")
    await sql.run("INSERT INTO t VALUES ('kept')")
    await sql.run("PRAGMA max_page_count = 20")
    with pytest.raises(Unavailable) as raised:
        await sql.run("INSERT INTO t VALUES (?)", "x" * 1_000_000)
    assert raised.value.code == "database_full"
    assert (await sql.run("SELECT a FROM t")).rows == [{"a": "kept"}]


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("SELECT 'a' LIKE '" + "%" * 51 + "'", id="like_pattern"),
        pytest.param(" UNION ALL ".join(["SELECT 1"] * 6), id="compound_select"),
        pytest.param("SELECT " + ", ".join(f"1 AS c{n}" for n in range(101)), id="columns"),
        pytest.param("SELECT 1 WHERE " + " OR ".join(["1 = 0"] * 100), id="expression_depth"),
        pytest.param("SELECT max(" + ", ".join("1" * 33) + ")", id="function_arguments"),
    ],
)
async def test_statements_that_the_platform_finds_too_complex_are_refused(sql: SqliteSql, statement: str) -> None:
    with pytest.raises(Unavailable):
        await sql.run(statement)


async def test_two_statements_in_one_call_are_refused(sql: SqliteSql) -> None:
    with pytest.raises(Unavailable):
        await sql.run("SELECT 1; SELECT 2")


async def test_nothing_runs_inside_a_batch(sql: SqliteSql) -> None:
    await sql.run("CREATE TABLE t (id INTEGER PRIMARY KEY, who TEXT)")

    async def write(who: str, first: int) -> None:
        await sql.batch([("INSERT INTO t VALUES (?, ?)", (first + step, who)) for step in range(5)])

    outcomes = await asyncio.gather(write("a", 0), write("b", 5), write("clash", 9), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), ConstraintViolated]
    rows = (await sql.run("SELECT who, count(*) AS n FROM t GROUP BY who ORDER BY who")).rows
    assert [(row["who"], row["n"]) for row in rows] == [("a", 5), ("b", 5)]


async def test_a_database_locked_by_another_process_is_unavailable_and_usable_later(tmp_path: Path) -> None:
    database = SqliteSql(sqlite3.connect(tmp_path / "db.sqlite", isolation_level=None, timeout=0))
    other = sqlite3.connect(tmp_path / "db.sqlite", isolation_level=None)
    await database.run("CREATE TABLE t (v)")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable):
        await database.batch([("INSERT INTO t VALUES (1)", ())])
    other.execute("ROLLBACK")
    await database.batch([("INSERT INTO t VALUES (2)", ())])
    assert (await database.run("SELECT v FROM t")).rows == [{"v": 2}]
    other.close()
    database.close()


async def test_a_statement_that_rolls_the_transaction_back_ends_the_batch(sql: SqliteSql) -> None:
    await sql.run("CREATE TABLE t (id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK)")
    with pytest.raises(Conflict):
        await sql.batch([("INSERT INTO t VALUES (1)", ()), ("INSERT INTO t VALUES (1)", ())])
    assert (await sql.run("SELECT id FROM t")).rows == []


async def test_a_file_keeps_what_was_committed(tmp_path: Path) -> None:
    first = SqliteSql.open(tmp_path / "db.sqlite")
    await first.run("CREATE TABLE t (v)")
    await first.run("INSERT INTO t VALUES ('kept')")
    first.close()
    second = SqliteSql.open(tmp_path / "db.sqlite")
    assert (await second.run("SELECT v FROM t")).rows == [{"v": "kept"}]
    second.close()


def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        SqliteSql.open(tmp_path / "no" / "such" / "folder.sqlite")


def _folder(tmp_path: Path, **files: str) -> Path:
    for name, script in files.items():
        (tmp_path / f"{name}.sql").write_text(script)
    return tmp_path


async def test_migrations_apply_once_each_by_number(sql: SqliteSql, tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        **{
            "10_last": "INSERT INTO t VALUES ('ten');",
            "0002_second": "INSERT INTO t VALUES ('two');",
            "0001_first": "CREATE TABLE t (v);\nINSERT INTO t VALUES ('one')",
            "notes": "not numbered",
        },
    )
    assert sql.migrate(folder) == ["0001_first.sql", "0002_second.sql", "10_last.sql"]
    assert sql.migrate(folder) == []
    assert [row["v"] for row in (await sql.run("SELECT v FROM t")).rows] == ["one", "two", "ten"]
    recorded = (await sql.run("SELECT id, name, applied_at FROM d1_migrations ORDER BY id")).rows
    assert [(row["id"], row["name"]) for row in recorded] == [
        (1, "0001_first.sql"),
        (2, "0002_second.sql"),
        (3, "10_last.sql"),
    ]
    assert all(row["applied_at"] for row in recorded)
    _folder(tmp_path, **{"0003_third": "INSERT INTO t VALUES ('three');"})
    assert sql.migrate(folder) == ["0003_third.sql"]


async def test_processes_that_begin_at_once_apply_each_migration_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _folder(tmp_path, **{"0001_a": "CREATE TABLE t (v);", "0002_b": "INSERT INTO t VALUES ('b');"})
    first, second = SqliteSql.open(tmp_path / "both.db"), SqliteSql.open(tmp_path / "both.db")
    transaction = first._transaction

    def overtaken(statements: Sequence[Statement]) -> list[SqlResult]:
        second.migrate(folder)
        return transaction(statements)

    monkeypatch.setattr(first, "_transaction", overtaken)
    assert (first.migrate(folder), second.migrate(folder)) == ([], [])
    assert [row["v"] for row in (await first.run("SELECT v FROM t")).rows] == ["b"]
    first.close()
    second.close()


async def test_a_failing_migration_leaves_nothing_and_is_retried(sql: SqliteSql, tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        **{
            "0001_good": "CREATE TABLE t (v INTEGER PRIMARY KEY);",
            "0002_bad": "INSERT INTO t VALUES (1); CREATE TABLE u (v); INSERT INTO t VALUES (1);",
        },
    )
    with pytest.raises(Misconfigured) as raised:
        sql.migrate(folder)
    assert (raised.value.code, raised.value.details["migration"]) == ("migration_failed", "0002_bad.sql")
    assert isinstance(raised.value.__cause__, sqlite3.IntegrityError)
    tables = (await sql.run("SELECT name FROM sqlite_master WHERE name IN ('t', 'u')")).rows
    assert [row["name"] for row in tables] == ["t"]
    assert (await sql.run("SELECT v FROM t")).rows == []
    _folder(tmp_path, **{"0002_bad": "INSERT INTO t VALUES (1);"})
    assert sql.migrate(folder) == ["0002_bad.sql"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("-- only a comment; really\n/* ; */", [], id="comments"),
        pytest.param("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"], id="no_semicolon_at_the_end"),
        pytest.param("SELECT 1;;\n;SELECT 2;\n", ["SELECT 1", "SELECT 2"], id="empty_statements"),
        pytest.param("SELECT 'a;b';SELECT \"c;d\"", ["SELECT 'a;b'", 'SELECT "c;d"'], id="in_a_string"),
        pytest.param("SELECT 1 -- a; b\n;SELECT 2", ["SELECT 1 -- a; b", "SELECT 2"], id="in_a_comment"),
        pytest.param(
            "CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; SELECT 2; END; SELECT 3",
            ["CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; SELECT 2; END", "SELECT 3"],
            id="in_a_trigger",
        ),
    ],
)
def test_scripts_are_split_at_the_ends_of_statements(script: str, expected: list[str]) -> None:
    assert list(split_statements(script)) == expected


@given(st.lists(st.text("ab;'\"-*/ \n"), max_size=6))
def test_every_string_of_a_script_survives_splitting(strings: list[str]) -> None:
    script = "".join(f"SELECT {sqlite_quote(text)} AS v; -- it's; so\n" for text in strings)
    connection = sqlite3.connect(":memory:")
    found = [connection.execute(statement).fetchone()[0] for statement in split_statements(script)]
    connection.close()
    assert found == strings


def sqlite_quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
