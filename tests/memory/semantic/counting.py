"""A database that counts what it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from retain.ports import Sql, SqlResult, SqlValue, Statement


@dataclass
class CountingSql:
    """A database that records its statements, and counts round trips."""

    inner: Sql
    statements: list[Statement] = field(default_factory=list)
    trips: int = 0

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        self.trips += 1
        self.statements.append((sql, values))
        return await self.inner.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        self.trips += 1
        self.statements += statements
        return await self.inner.batch(statements)
