"""Attribution: the transactions of a request name who made it, and the triggers of world history write the name down.

D1 has no sessions, so the name is a row (migrations/0036_changed_by.sql) that a transaction writes first and removes last:
nothing else runs between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from retain.ports import Sql, SqlResult, SqlValue, Statement
from retain.roles.principals import RETAIN

_NAMED = "INSERT INTO acting (one, name) VALUES (1, ?)"
_UNNAMED = "DELETE FROM acting"
_READS = ("SELECT", "WITH")
_acting: ContextVar[str | None] = ContextVar("retain_acting", default=None)


def acting_principal() -> str:
    """Return who does what is done now: the person whose request it is, or `RETAIN`."""
    return _acting.get() or RETAIN


@contextmanager
def acting(name: str | None) -> Iterator[None]:
    """Attribute what is written meanwhile, and by work that is started meanwhile, to a name such as `person:ada`."""
    token = _acting.set(name)
    try:
        yield
    finally:
        _acting.reset(token)


def acting_name() -> str | None:
    """Return the name to which writes are attributed now."""
    return _acting.get()


def attributed(name: str | None, statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements as they name who makes them, for a transaction of which they are a part."""
    return [*statements] if name is None else [(_NAMED, (name,)), *statements, (_UNNAMED, ())]


class AttributedSql:
    """Implements `Sql` on another one: writes that somebody makes name them. Reads cost nothing more.

    A write costs no more calls: the name goes with it, in its transaction.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """See the port."""
        if _acting.get() is None or reads(sql):
            return await self._sql.run(sql, *values)
        return (await self.batch([(sql, values)]))[0]

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """See the port."""
        name = _acting.get()
        if name is None or all(reads(sql) for sql, _ in statements):
            return await self._sql.batch(statements)
        return (await self._sql.batch(attributed(name, statements)))[1:-1]


def reads(sql: str) -> bool:
    """Return whether a statement reads. No write of Retain begins with one of these words; a test checks that."""
    return sql.lstrip().startswith(_READS)
