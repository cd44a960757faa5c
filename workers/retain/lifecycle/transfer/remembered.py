"""What a decision read in D1, so that it need not be made again while that reads the same."""

from __future__ import annotations

from collections.abc import Sequence

from retain.ports import Row, Sql, SqlResult, SqlValue, Statement


class RememberedReads:
    """Reads D1, and remembers what it read. statements: in their order, with all of which the answers are compared."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self.statements: list[Statement] = []
        self._found: list[Sequence[Row]] = []

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """See the port."""
        return (await self.batch([(sql, values)]))[0]

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """See the port."""
        results = await self._sql.batch(statements)
        self.statements += statements
        self._found += [result.rows for result in results]
        return results

    def read_the_same(self, results: Sequence[SqlResult]) -> bool:
        """Return whether the statements read now what they read before. False before anything was read."""
        return bool(results) and [result.rows for result in results] == self._found

    def forget(self) -> None:
        """Begin again, for another decision."""
        self.statements.clear()
        self._found.clear()
