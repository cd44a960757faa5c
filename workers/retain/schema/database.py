"""The schema of D1: no statement runs on one that this code does not know."""

from __future__ import annotations

from collections.abc import Sequence

from retain.errors import Unavailable
from retain.ports import Sql, SqlResult, SqlValue, Statement

VERSION = 66
"""The number of the last migration in `migrations/`: the schema that this code is written for."""

_READ = "SELECT max(version) AS version, max(usable_from) AS usable_from FROM schema_versions"
_EXISTS = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_versions'"


class KnownSchemaSql:
    """`Sql` on a database whose schema is read before the first statement, and again until it is one that can be used.

    A newer schema can be used if its migrations say so: a deployment migrates first, while the earlier Worker serves.
    Raises, for every statement: Unavailable (code `schema_outdated`, `schema_unknown`), so that what is owed stays owed.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._is_known = False

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """Run one statement. See the port."""
        await self._require_known()
        return await self._sql.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """Run the statements as one transaction. See the port."""
        await self._require_known()
        return await self._sql.batch(statements)

    async def _require_known(self) -> None:
        if self._is_known:
            return
        version, usable_from = await self._version()
        if version < VERSION:
            raise Unavailable(
                f"the database has schema {version} and this Worker needs {VERSION}: apply the migrations",
                code="schema_outdated",
            )
        if usable_from > VERSION:
            raise Unavailable(
                f"the database has schema {version}, of a later version than this Worker, which knows {VERSION}:"
                " deploy the Worker that belongs to it",
                code="schema_unknown",
            )
        self._is_known = True

    async def _version(self) -> tuple[int, int]:
        """Return the schema's number, 0 before any was kept, and the number from which a Worker can use it."""
        try:
            row = (await self._sql.run(_READ)).rows[0]
        except Unavailable:
            if (await self._sql.run(_EXISTS)).rows:
                raise
            return 0, 0
        return int(row["version"] or 0), int(row["usable_from"] or 0)
