"""D1 as the Worker reaches it: each call is one of those that an invocation may make."""

from __future__ import annotations

from collections.abc import Sequence

from retain.limits.d1_calls import spend
from retain.ports import Sql, SqlResult, SqlValue, Statement


class CountedD1:
    """Counts each call against the invocation's budget, as the binding's adapter does."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        spend()
        return await self._sql.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        spend()
        return await self._sql.batch(statements)
