"""D1's port on the host's SQLite that keeps how each query is planned."""

from __future__ import annotations

from collections.abc import Sequence

from retain.host.sql import SqliteSql
from retain.ports import SqlResult, SqlValue, Statement


class Planned:
    """Runs queries, and keeps the steps of their plans."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql
        self.steps: list[str] = []

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """See the port."""
        self.steps += [row["detail"] for row in (await self._sql.run(f"EXPLAIN QUERY PLAN {sql}", *values)).rows]
        return await self._sql.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """See the port."""
        return [await self.run(sql, *values) for sql, values in statements]
