"""The contract of every `ObjectSql`. Each case makes its own tables and may be repeated on the same object.

Cases are coroutines only because those of every suite are: the port is synchronous.
"""

from __future__ import annotations

from retain.errors import Conflict, InvalidInput, LimitExceeded, Unavailable
from retain.ports import ObjectSql, SqlValue
from tests.ports import raises


def _table(sql: ObjectSql, name: str, columns: str) -> None:
    sql.run(f"DROP TABLE IF EXISTS {name}")
    sql.run(f"CREATE TABLE {name} ({columns})")


async def check_rows_are_mappings_by_column_name(sql: ObjectSql) -> None:
    result = sql.run("SELECT 1 AS one, 'zwei' AS two, NULL AS three, 4 AS items")
    assert [dict(row) for row in result.rows] == [{"one": 1, "two": "zwei", "three": None, "items": 4}]


async def check_values_survive_in_columns_of_their_type(sql: ObjectSql) -> None:
    _table(sql, "contract_types", "id INTEGER PRIMARY KEY, t TEXT, i INTEGER, r REAL, b BLOB")
    rows: list[tuple[SqlValue, ...]] = [
        (1, "é 🦀 a\0b", 2**53, 0.1, b"\0\xff"),
        (2, "", -1_700_000_000_000, -2.5, b""),
        (3, None, None, None, None),
    ]
    for row in rows:
        sql.run("INSERT INTO contract_types VALUES (?, ?, ?, ?, ?)", *row)
    found = sql.run("SELECT id, t, i, r, b, typeof(i) AS ti FROM contract_types ORDER BY id").rows
    assert [tuple(row[name] for name in ("id", "t", "i", "r", "b")) for row in found] == rows
    assert isinstance(found[0]["b"], bytes)
    assert isinstance(found[1]["i"], int)
    assert [row["ti"] for row in found] == ["integer", "integer", "null"]


async def check_numbers_are_bound_as_doubles(sql: ObjectSql) -> None:
    row = sql.run("SELECT typeof(?) AS t, 7 / ? AS half, CAST(? AS TEXT) AS text", 5, 2, 5).rows[0]
    assert (row["t"], row["half"], row["text"]) == ("real", 3.5, "5.0")


async def check_booleans_are_one_and_zero(sql: ObjectSql) -> None:
    _table(sql, "contract_boolean", "a INTEGER, b INTEGER")
    sql.run("INSERT INTO contract_boolean VALUES (?, ?)", True, False)
    row = sql.run("SELECT a, b FROM contract_boolean").rows[0]
    assert (row["a"], row["b"]) == (1, 0)


async def check_values_that_a_database_cannot_hold_are_refused(sql: ObjectSql) -> None:
    refused: list[object] = [2**53 + 1, float("nan"), float("inf"), "\ud800", [1], {"a": 1}, (1,), bytearray(b"x")]
    for value in refused:
        with raises(InvalidInput, code="unsupported_value"):
            sql.run("SELECT ? AS v", value)  # type: ignore[arg-type]


async def check_the_limits_of_values_and_statements_are_enforced(sql: ObjectSql) -> None:
    values: list[SqlValue] = list(range(100))
    places = ", ".join("(?)" for _ in values)
    assert sql.run(f"SELECT sum(column1) AS n FROM (VALUES {places})", *values).rows[0]["n"] == sum(range(100))
    with raises(LimitExceeded, code="too_many_parameters"):
        sql.run(f"SELECT sum(column1) AS n FROM (VALUES {places}, (?))", *values, 1)
    with raises(LimitExceeded, code="statement_too_long"):
        sql.run(f"SELECT '{'x' * 100_000}' AS v")
    with raises(LimitExceeded, code="value_too_large"):
        sql.run("SELECT length(?) AS n", "x" * 2_000_001)


async def check_a_write_without_returning_has_no_rows_and_is_done_when_it_returns(sql: ObjectSql) -> None:
    _table(sql, "contract_writes", "id INTEGER PRIMARY KEY, v INTEGER UNIQUE")
    assert sql.run("INSERT INTO contract_writes SELECT value, value FROM json_each('[1, 2, 3]')").rows == []
    assert sql.run("  update contract_writes SET v = v + 10 WHERE id > 1").rows == []
    assert sql.run("DELETE FROM contract_writes WHERE id = 3").rows == []
    sql.run("ALTER TABLE contract_writes ADD COLUMN w")  # refused while a statement on the table is not done
    found = sql.run("SELECT id, v FROM contract_writes ORDER BY id").rows
    assert [(row["id"], row["v"]) for row in found] == [(1, 1), (2, 12)]


async def check_returning_answers_rows(sql: ObjectSql) -> None:
    _table(sql, "contract_returning", "id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT")
    result = sql.run("INSERT INTO contract_returning (v) VALUES (?), (?) RETURNING id, v", "a", "b")
    assert [row["v"] for row in result.rows] == ["a", "b"]
    assert result.rows[0]["id"] < result.rows[1]["id"]
    assert [row["v"] for row in sql.run("delete from contract_returning returning v").rows] == ["a", "b"]


async def check_a_violated_constraint_is_a_conflict_and_changes_nothing(sql: ObjectSql) -> None:
    _table(sql, "contract_constraint", "id INTEGER PRIMARY KEY, v INTEGER CHECK (v > 0), w TEXT NOT NULL")
    sql.run("INSERT INTO contract_constraint VALUES (1, 1, 'w')")
    for statement in (
        "INSERT INTO contract_constraint VALUES (2, 1, 'w'), (1, 1, 'w')",
        "INSERT INTO contract_constraint VALUES (2, 0, 'w')",
        "INSERT INTO contract_constraint VALUES (2, 1, NULL)",
    ):
        with raises(Conflict, code="constraint"):
            sql.run(statement)
    assert sql.run("SELECT count(*) AS n FROM contract_constraint").rows[0]["n"] == 1


async def check_a_statement_that_fails_otherwise_is_an_error_not_an_empty_answer(sql: ObjectSql) -> None:
    for statement in ("SELEC 1", "SELECT * FROM contract_no_such_table", "SELECT ? AS a, ? AS b"):
        with raises(Unavailable):
            sql.run(statement)


async def check_a_statement_that_opens_or_ends_a_transaction_is_refused(sql: ObjectSql) -> None:
    for statement in ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ATTACH ':memory:' AS other"):
        with raises(InvalidInput, code="statement_not_allowed"):
            sql.run(statement)


async def check_work_that_raises_leaves_none_of_its_statements(sql: ObjectSql) -> None:
    _table(sql, "contract_atomically", "id INTEGER PRIMARY KEY")

    def work() -> None:
        sql.run("INSERT INTO contract_atomically VALUES (1)")
        raise LimitExceeded("enough", code="too_many_lines")

    with raises(LimitExceeded, code="too_many_lines"):
        sql.atomically(work)
    assert sql.run("SELECT count(*) AS n FROM contract_atomically").rows[0]["n"] == 0


async def check_work_that_returns_keeps_all_of_its_statements(sql: ObjectSql) -> None:
    _table(sql, "contract_atomic_end", "id INTEGER PRIMARY KEY")

    def work() -> None:
        sql.run("INSERT INTO contract_atomic_end VALUES (1)")
        sql.run("INSERT INTO contract_atomic_end VALUES (2)")

    sql.atomically(work)
    assert sql.run("SELECT count(*) AS n FROM contract_atomic_end").rows[0]["n"] == 2


async def check_a_script_runs_its_statements_in_order(sql: ObjectSql) -> None:
    sql.run("DROP TABLE IF EXISTS contract_script")
    sql.script(["CREATE TABLE contract_script (v)", "INSERT INTO contract_script VALUES (1)"])
    sql.script(["UPDATE contract_script SET v = 2 -- not the last line", "INSERT INTO contract_script VALUES (3)"])
    assert [row["v"] for row in sql.run("SELECT v FROM contract_script ORDER BY v").rows] == [2, 3]
    with raises(InvalidInput, code="statement_not_allowed"):
        sql.script(["COMMIT"])

    def work() -> None:
        sql.script(["INSERT INTO contract_script VALUES (4)", "INSERT INTO contract_no_such_table VALUES (5)"])

    with raises(Unavailable):
        sql.atomically(work)
    assert sql.run("SELECT count(*) AS n FROM contract_script").rows[0]["n"] == 2
