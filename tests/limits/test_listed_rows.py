"""Statements of many rows: bounded, in order, and with the effect of one statement for each row."""

from __future__ import annotations

from contextlib import closing

import pytest

from retain.host.sql import SqliteSql
from retain.limits.listed_rows import LISTED_BYTES, listed
from retain.ports import SqlValue

_ONE = "INSERT INTO t (n, a) VALUES (?, ?)"
_MANY = "INSERT INTO t (n, a) SELECT one.value ->> 0, one.value ->> 1 FROM json_each(?) one"
_OTHER = "DELETE FROM t WHERE n = ?"
FORMS = {_ONE: _MANY}


@pytest.mark.parametrize(
    ("size", "statements"),
    [
        pytest.param(LISTED_BYTES - 1, 1, id="one below: both rows in one statement"),
        pytest.param(LISTED_BYTES, 1, id="at: both rows in one statement"),
        pytest.param(LISTED_BYTES + 1, 2, id="above: one statement for each row"),
    ],
)
def test_a_statement_takes_rows_up_to_its_bytes(size: int, statements: int) -> None:
    first = "x" * 100
    rest = size - len(f'[1, "{first}"],') - len('[2, ""],')
    made = listed([(_ONE, (1, first)), (_ONE, (2, "y" * rest))], FORMS)
    assert len(made) == statements


async def test_listed_rows_are_written_as_single_ones() -> None:
    rows: list[tuple[SqlValue, ...]] = [(1, 'é "quoted"'), (2, None), (3, 0.5), (-4, 2**53), (5, '{"a": [1]}')]
    with closing(SqliteSql.open()) as database:
        await database.run("CREATE TABLE t (n INTEGER, a)")
        made = listed([*((_ONE, row) for row in rows), (_OTHER, (1,)), (_OTHER, (2,))], FORMS)
        assert [text for text, _ in made] == [_MANY, _OTHER, _OTHER]
        await database.batch(made)
        found = (await database.run("SELECT n, a FROM t ORDER BY rowid")).rows
    assert [(row["n"], row["a"]) for row in found] == rows[2:]


def test_a_row_alone_keeps_its_statement() -> None:
    assert listed([(_ONE, (1, "a")), (_OTHER, (1,))], FORMS) == [(_ONE, (1, "a")), (_OTHER, (1,))]
