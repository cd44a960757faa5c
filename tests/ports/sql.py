"""The contract of every `Sql`. Each case makes its own tables and may be repeated on the same database."""

from __future__ import annotations

from retain.errors import Conflict, InvalidInput, LimitExceeded, RetainError, Unavailable
from retain.ports import Sql, SqlValue
from tests.ports import raises


async def _table(sql: Sql, name: str, columns: str) -> None:
    await sql.run(f"DROP TABLE IF EXISTS {name}")
    await sql.run(f"CREATE TABLE {name} ({columns})")


async def _count(sql: Sql, table: str) -> int:
    count = (await sql.run(f"SELECT count(*) AS n FROM {table}")).rows[0]["n"]
    assert isinstance(count, int)
    return count


async def check_rows_are_mappings_by_column_name(sql: Sql) -> None:
    result = await sql.run("SELECT 1 AS one, 'zwei' AS two, NULL AS three")
    assert [dict(row) for row in result.rows] == [{"one": 1, "two": "zwei", "three": None}]


async def check_column_names_that_are_methods_of_a_dict_are_read_by_name(sql: Sql) -> None:
    row = (await sql.run("SELECT 1 AS items, 2 AS keys, 3 AS length")).rows[0]
    assert (row["items"], row["keys"], row["length"]) == (1, 2, 3)


async def check_a_statement_without_rows_answers_none(sql: Sql) -> None:
    assert (await sql.run("SELECT 1 AS x WHERE 0")).rows == []


async def check_text_survives_with_unicode_quotes_and_nul(sql: Sql) -> None:
    await _table(sql, "contract_text", "id INTEGER PRIMARY KEY, v TEXT")
    texts = ["", "é", "🦀", "a\0b", "\u2028\ufeff", "'; DROP TABLE contract_text; --", '{"json": true}']
    for number, text in enumerate(texts):
        await sql.run("INSERT INTO contract_text VALUES (?, ?)", number, text)
    rows = (await sql.run("SELECT v FROM contract_text ORDER BY id")).rows
    assert [row["v"] for row in rows] == texts


async def check_blobs_are_bytes(sql: Sql) -> None:
    await _table(sql, "contract_blob", "id INTEGER PRIMARY KEY, v BLOB")
    blobs = [b"", b"\0\1\2\xff", bytes(range(256))]
    for number, blob in enumerate(blobs):
        await sql.run("INSERT INTO contract_blob VALUES (?, ?)", number, blob)
    rows = (await sql.run("SELECT v, typeof(v) AS t FROM contract_blob ORDER BY id")).rows
    assert [row["v"] for row in rows] == blobs
    assert all(isinstance(row["v"], bytes) and row["t"] == "blob" for row in rows)


async def check_null_is_none_both_ways(sql: Sql) -> None:
    row = (await sql.run("SELECT ? AS v, typeof(?) AS t", None, None)).rows[0]
    assert (row["v"], row["t"]) == (None, "null")


async def check_whole_numbers_are_exact_up_to_two_to_the_53(sql: Sql) -> None:
    await _table(sql, "contract_integer", "id INTEGER PRIMARY KEY, v INTEGER")
    numbers = [0, 1, -1, 1_700_000_000_000, 2**31, 2**53 - 1, 2**53, -(2**53)]
    for number, value in enumerate(numbers):
        await sql.run("INSERT INTO contract_integer VALUES (?, ?)", number, value)
    rows = (await sql.run("SELECT v, typeof(v) AS t FROM contract_integer ORDER BY id")).rows
    assert [row["v"] for row in rows] == numbers
    assert {row["t"] for row in rows} == {"integer"}
    assert isinstance(rows[3]["v"], int)


async def check_fractions_are_doubles(sql: Sql) -> None:
    await _table(sql, "contract_real", "id INTEGER PRIMARY KEY, v REAL")
    numbers = [0.1, -2.5, 1e-300, 1e300, 3.0]
    for number, value in enumerate(numbers):
        await sql.run("INSERT INTO contract_real VALUES (?, ?)", number, value)
    rows = (await sql.run("SELECT v FROM contract_real ORDER BY id")).rows
    assert [row["v"] for row in rows] == numbers


async def check_numbers_are_bound_as_doubles(sql: Sql) -> None:
    row = (await sql.run("SELECT typeof(?) AS t, 7 / ? AS half, CAST(? AS TEXT) AS text", 5, 2, 5)).rows[0]
    assert (row["t"], row["half"], row["text"]) == ("real", 3.5, "5.0")


async def check_booleans_are_one_and_zero(sql: Sql) -> None:
    await _table(sql, "contract_boolean", "a INTEGER, b INTEGER")
    await sql.run("INSERT INTO contract_boolean VALUES (?, ?)", True, False)
    row = (await sql.run("SELECT a, b FROM contract_boolean")).rows[0]
    assert (row["a"], row["b"]) == (1, 0)


async def check_values_that_a_database_cannot_hold_are_refused(sql: Sql) -> None:
    refused: list[object] = [
        2**53 + 1,
        -(2**53) - 1,
        float("nan"),
        float("inf"),
        "\ud800",
        [1],
        {"a": 1},
        (1,),
        bytearray(b"x"),
        1j,
    ]
    for value in refused:
        with raises(InvalidInput, code="unsupported_value"):
            await sql.run("SELECT ? AS v", value)  # type: ignore[arg-type]


async def check_one_hundred_values_are_accepted_and_one_more_refused(sql: Sql) -> None:
    values: list[SqlValue] = list(range(100))
    places = ", ".join("(?)" for _ in values)
    result = await sql.run(f"SELECT sum(column1) AS total FROM (VALUES {places})", *values)
    assert result.rows[0]["total"] == sum(range(100))
    with raises(LimitExceeded, code="too_many_parameters"):
        await sql.run(f"SELECT sum(column1) AS total FROM (VALUES {places}, (?))", *values, 1)


async def check_a_statement_over_100_kilobytes_is_refused(sql: Sql) -> None:
    with raises(LimitExceeded, code="statement_too_long"):
        await sql.run(f"SELECT '{'x' * 100_000}' AS v")


async def check_a_value_over_two_megabytes_is_refused(sql: Sql) -> None:
    assert (await sql.run("SELECT length(?) AS n", "x" * 1_900_000)).rows[0]["n"] == 1_900_000
    for value in ("x" * 2_000_001, b"x" * 2_000_001, "é" * 1_000_001):
        with raises(LimitExceeded, code="value_too_large"):
            await sql.run("SELECT length(?) AS n", value)


async def check_changes_counts_rows_written(sql: Sql) -> None:
    await _table(sql, "contract_changes", "id INTEGER PRIMARY KEY, v INTEGER")
    await sql.run("CREATE INDEX contract_changes_v ON contract_changes (v)")
    assert (await sql.run("INSERT INTO contract_changes VALUES (1, 1), (2, 2), (3, 3)")).changes == 3
    assert (await sql.run("UPDATE contract_changes SET v = 9 WHERE id > 1")).changes == 2
    assert (await sql.run("UPDATE contract_changes SET v = 9 WHERE id = 99")).changes == 0
    assert (await sql.run("DELETE FROM contract_changes WHERE id = 1")).changes == 1


async def check_the_size_of_the_database_is_known_and_grows(sql: Sql) -> None:
    await _table(sql, "contract_size", "v TEXT")
    before = (await sql.run("SELECT 1")).database_bytes
    after = (await sql.run("INSERT INTO contract_size VALUES (?)", "x" * 1_000_000)).database_bytes
    assert before is not None
    assert after is not None
    assert after >= before, "a database that had free pages does not grow"
    assert after > 900_000


async def check_reading_changes_nothing_even_after_a_write(sql: Sql) -> None:
    await _table(sql, "contract_reading", "v")
    await sql.run("INSERT INTO contract_reading VALUES (1), (2)")
    assert (await sql.run("SELECT v FROM contract_reading")).changes == 0
    assert (await sql.run("CREATE TABLE IF NOT EXISTS contract_reading (v)")).changes == 0


async def check_changes_counts_what_triggers_wrote(sql: Sql) -> None:
    await _table(sql, "contract_trigger", "v")
    await _table(sql, "contract_trigger_log", "v")
    await sql.run(
        "CREATE TRIGGER contract_trigger_copy AFTER INSERT ON contract_trigger"
        " BEGIN INSERT INTO contract_trigger_log VALUES (new.v); END"
    )
    assert (await sql.run("INSERT INTO contract_trigger VALUES (1)")).changes == 2
    assert await _count(sql, "contract_trigger_log") == 1


async def check_insert_on_conflict_updates_or_does_nothing(sql: Sql) -> None:
    await _table(sql, "contract_upsert", "id TEXT PRIMARY KEY, v INTEGER")
    upsert = "INSERT INTO contract_upsert VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET v = excluded.v"
    assert (await sql.run(upsert, "a", 1)).changes == 1
    assert (await sql.run(upsert, "a", 2)).changes == 1
    assert (await sql.run("INSERT INTO contract_upsert VALUES ('a', 3) ON CONFLICT DO NOTHING")).changes == 0
    assert (await sql.run("INSERT OR IGNORE INTO contract_upsert VALUES ('a', 4)")).changes == 0
    assert [row["v"] for row in (await sql.run("SELECT v FROM contract_upsert")).rows] == [2]


async def check_returning_answers_rows_and_changes(sql: Sql) -> None:
    await _table(sql, "contract_returning", "id INTEGER PRIMARY KEY, v TEXT")
    inserted = await sql.run("INSERT INTO contract_returning (v) VALUES (?), (?) RETURNING id, v", "a", "b")
    assert [dict(row) for row in inserted.rows] == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    assert inserted.changes == 2
    deleted = await sql.run("DELETE FROM contract_returning WHERE id = ? RETURNING v", 1)
    assert ([dict(row) for row in deleted.rows], deleted.changes) == ([{"v": "a"}], 1)


async def check_a_violated_constraint_is_a_conflict(sql: Sql) -> None:
    await _table(sql, "contract_child", "v")  # emptied first: its parent is dropped next
    await sql.run("DROP TABLE contract_child")
    await _table(sql, "contract_parent", "id INTEGER PRIMARY KEY, u TEXT UNIQUE, c INTEGER CHECK (c > 0), n NOT NULL")
    await _table(sql, "contract_child", "parent INTEGER REFERENCES contract_parent (id)")
    await sql.run("INSERT INTO contract_parent VALUES (1, 'u', 1, 1)")
    for statement in (
        "INSERT INTO contract_parent VALUES (1, 'other', 1, 1)",
        "INSERT INTO contract_parent VALUES (2, 'u', 1, 1)",
        "INSERT INTO contract_parent VALUES (2, 'other', 0, 1)",
        "INSERT INTO contract_parent VALUES (2, 'other', 1, NULL)",
        "INSERT INTO contract_child VALUES (99)",
    ):
        with raises(Conflict, code="constraint"):
            await sql.run(statement)
    assert await _count(sql, "contract_parent") == 1
    assert await _count(sql, "contract_child") == 0


async def check_a_trigger_that_aborts_is_a_conflict(sql: Sql) -> None:
    await _table(sql, "contract_append_only", "v")
    await sql.run(
        "CREATE TRIGGER contract_append_only_update BEFORE UPDATE ON contract_append_only"
        " BEGIN SELECT RAISE(ABORT, 'append only'); END"
    )
    await sql.run("INSERT INTO contract_append_only VALUES (1)")
    with raises(Conflict, code="constraint"):
        await sql.run("UPDATE contract_append_only SET v = 2")
    assert (await sql.run("SELECT v FROM contract_append_only")).rows[0]["v"] == 1


async def check_a_statement_that_fails_otherwise_is_an_error_not_an_empty_answer(sql: Sql) -> None:
    for statement in ("SELEC 1", "SELECT * FROM contract_no_such_table", "SELECT ? AS a, ? AS b"):
        with raises(Unavailable):
            await sql.run(statement)


async def check_errors_do_not_quote_values(sql: Sql) -> None:
    await sql.run("DROP TABLE IF EXISTS contract_quote")
    await sql.run("CREATE VIRTUAL TABLE contract_quote USING fts5(v)")
    failure: RetainError | None = None
    try:
        await sql.run("SELECT v FROM contract_quote WHERE contract_quote MATCH ?", 'hunter2:"')
    except RetainError as error:
        failure = error
    assert failure is not None, "a malformed full-text query was accepted"
    assert "hunter2" not in f"{failure} {dict(failure.details)}"


async def check_a_batch_answers_one_result_per_statement_in_order(sql: Sql) -> None:
    await _table(sql, "contract_batch", "id INTEGER PRIMARY KEY, v TEXT")
    results = await sql.batch(
        [
            ("INSERT INTO contract_batch VALUES (?, ?)", (1, "a")),
            ("INSERT INTO contract_batch VALUES (?, ?), (?, ?)", (2, "b", 3, "c")),
            ("SELECT v FROM contract_batch ORDER BY id", ()),
            ("DELETE FROM contract_batch", ()),
        ]
    )
    assert [result.changes for result in results] == [1, 2, 0, 3]
    assert [row["v"] for row in results[2].rows] == ["a", "b", "c"]


async def check_an_empty_batch_does_nothing(sql: Sql) -> None:
    assert await sql.batch([]) == []


async def check_a_batch_whose_last_statement_fails_leaves_nothing(sql: Sql) -> None:
    await _table(sql, "contract_atomic", "id INTEGER PRIMARY KEY")
    insert = "INSERT INTO contract_atomic VALUES (?)"
    with raises(Conflict, code="constraint"):
        await sql.batch([(insert, (1,)), (insert, (2,)), (insert, (1,))])
    assert await _count(sql, "contract_atomic") == 0
    with raises(Unavailable):
        await sql.batch([(insert, (1,)), ("INSERT INTO contract_no_such_table VALUES (1)", ())])
    with raises(InvalidInput, code="unsupported_value"):
        await sql.batch([(insert, (1,)), (insert, (2**60,))])
    assert await _count(sql, "contract_atomic") == 0
    await sql.batch([(insert, (1,)), (insert, (2,))])
    assert await _count(sql, "contract_atomic") == 2


async def check_foreign_keys_may_be_checked_at_the_end_of_a_batch(sql: Sql) -> None:
    await sql.run("DROP TABLE IF EXISTS contract_later_child")
    await _table(sql, "contract_later_parent", "id INTEGER PRIMARY KEY")
    await _table(sql, "contract_later_child", "parent INTEGER REFERENCES contract_later_parent (id)")
    await sql.batch(
        [
            ("PRAGMA defer_foreign_keys = on", ()),
            ("INSERT INTO contract_later_child VALUES (1)", ()),
            ("INSERT INTO contract_later_parent VALUES (1)", ()),
        ]
    )
    with raises(RetainError):  # found at the commit, where the platform cannot name the reason
        await sql.batch(
            [("PRAGMA defer_foreign_keys = on", ()), ("INSERT INTO contract_later_child VALUES (2)", ())],
        )
    assert await _count(sql, "contract_later_child") == 1


async def check_a_statement_that_opens_or_ends_a_transaction_is_refused(sql: Sql) -> None:
    await _table(sql, "contract_transaction", "id INTEGER PRIMARY KEY")
    for statement in ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ATTACH ':memory:' AS other"):
        with raises(InvalidInput, code="statement_not_allowed"):
            await sql.run(statement)
    with raises(InvalidInput, code="statement_not_allowed"):
        await sql.batch([("INSERT INTO contract_transaction VALUES (1)", ()), (" commit", ())])
    assert await _count(sql, "contract_transaction") == 0


async def check_full_text_search_stems_with_porter_and_ranks(sql: Sql) -> None:
    await sql.run("DROP TABLE IF EXISTS contract_words")
    await sql.run("CREATE VIRTUAL TABLE contract_words USING fts5(id UNINDEXED, v, tokenize='porter unicode61')")
    rows = [("a", "the dogs are running"), ("b", "a dog, a run, a dog, a run"), ("c", "cats and Füße")]
    await sql.batch([("INSERT INTO contract_words (id, v) VALUES (?, ?)", row) for row in rows])
    search = (
        "SELECT id, bm25(contract_words) AS score FROM contract_words WHERE contract_words MATCH ? ORDER BY score, id"
    )
    found = (await sql.run(search, "run AND dog")).rows
    assert {row["id"] for row in found} == {"a", "b"}
    assert all(row["score"] < 0 for row in found)
    assert [row["id"] for row in (await sql.run(search, '"fuße"')).rows] == ["c"]
    assert (await sql.run(search, '"nothing"')).rows == []


async def check_json_functions_work(sql: Sql) -> None:
    row = (
        await sql.run("SELECT ? ->> '$.a' AS a, json_extract(?, '$.b[1]') AS b", '{"a": "x"}', '{"b": [1, 2]}')
    ).rows[0]
    assert (row["a"], row["b"]) == ("x", 2)
    rows = (await sql.run("SELECT value FROM json_each(?) ORDER BY value", '["b", "a"]')).rows
    assert [row["value"] for row in rows] == ["a", "b"]


async def check_limit_and_offset_can_be_bound(sql: Sql) -> None:
    rows = (await sql.run("SELECT value FROM json_each('[1, 2, 3]') LIMIT ? OFFSET ?", 1, 1)).rows
    assert [row["value"] for row in rows] == [2]
