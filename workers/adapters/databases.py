"""D1 and a Durable Object's SQLite as ports, and the object's alarm.

BLOBs come from D1 as lists of integers and from a Durable Object's SQLite as memory views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyodide.ffi import JsException, create_proxy, jsnull, to_js

from adapters.deadline import within
from adapters.failures import sql_error
from retain.limits.d1_calls import spend
from retain.limits.deadlines import SQL_MS
from retain.limits.storage import check_statement
from retain.ports import Row, SqlResult, SqlRows, SqlValue, Statement

if TYPE_CHECKING:
    from cloudflare_bindings import D1Database, D1Result, DirectD1Statement, DurableStorage


class D1:
    """`Sql` on a D1 database.

    It calls the platform's object, not the SDK's wrapper, which inspects each statement before and after it is bound.
    """

    def __init__(self, binding: D1Database) -> None:
        self._db = binding._binding

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        spend()
        try:
            statement = self._prepare(sql, values)
            async with _in_time():
                return _d1_result((await statement.all()).to_py())
        except JsException as error:
            raise sql_error("D1", error, "d1_unavailable") from error

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        if not statements:
            return []
        spend()
        try:
            prepared = to_js([self._prepare(sql, values) for sql, values in statements])
            async with _in_time():
                results = (await self._db.batch(prepared)).to_py()
        except JsException as error:
            raise sql_error("D1", error, "d1_unavailable") from error
        return [_d1_result(result) for result in results]

    def _prepare(self, sql: str, values: Sequence[SqlValue]) -> DirectD1Statement:
        bound = _platform_values(check_statement(sql, values))
        statement = self._db.prepare(sql)
        return statement.bind(*bound) if bound else statement


def _in_time() -> within:
    """Bound a call. A batch whose deadline has passed may have committed, as one whose answer was lost."""
    return within(SQL_MS, "D1", "d1_unavailable")


def _d1_result(result: D1Result) -> SqlResult:
    rows: list[Row] = [{name: _d1_value(value) for name, value in row.items()} for row in result["results"]]
    return SqlResult(rows, int(result["meta"]["changes"]), int(result["meta"]["size_after"]))


def _d1_value(value: Any) -> Any:
    if value is jsnull:
        return None
    return bytes(value) if isinstance(value, list) else value


class DurableSql:
    """`ObjectSql` on a Durable Object's SQLite.

    It calls the platform's object, not the SDK's wrapper, whose conversions take longer than the statement.
    """

    def __init__(self, storage: DurableStorage) -> None:
        self._sql = storage.sql._binding
        self._storage = storage._binding

    def run(self, sql: str, *values: SqlValue) -> SqlRows:
        bound = _platform_values(check_statement(sql, values))
        try:
            cursor = self._sql.exec(sql, *bound)
            found = cursor.toArray().to_py() if _answers(sql) else ()
        except JsException as error:
            raise sql_error("object storage", error, "object_storage_unavailable") from error
        return SqlRows([{name: _python_value(value) for name, value in row.items()} for row in found])

    def script(self, statements: Sequence[str]) -> None:
        for statement in statements:
            check_statement(statement, ())
        try:
            self._sql.exec("\n;".join(statements))
        except JsException as error:
            raise sql_error("object storage", error, "object_storage_unavailable") from error

    def atomically(self, work: Callable[[], None]) -> None:
        raised: list[Exception] = []

        def guarded() -> None:
            try:
                work()
            except Exception as error:
                raised.append(error)  # the platform would keep only its text
                raise

        callback = create_proxy(guarded)
        try:
            self._storage.transactionSync(callback)
        except JsException as error:
            if not raised:
                raise sql_error("object storage", error, "object_storage_unavailable") from error
        finally:
            callback.destroy()
        if raised:
            raise raised[0]


@lru_cache(maxsize=512)
def _answers(sql: str) -> bool:
    """Return whether a statement may have rows. The rest has ended when it was executed, and its cursor is not asked."""
    return (
        not sql.lstrip()[:6].upper().startswith(("INSERT", "UPDATE", "DELETE", "CREATE")) or "RETURNING" in sql.upper()
    )


def _platform_values(values: Sequence[SqlValue]) -> Sequence[object]:
    """Return checked values as the platform takes them; most are so already."""
    return [_platform_value(value) if value is None or isinstance(value, bytes) else value for value in values]


def _platform_value(value: SqlValue) -> object:
    if value is None:
        return jsnull
    return to_js(value) if isinstance(value, bytes) else value


def _python_value(value: Any) -> Any:
    if value is jsnull:
        return None
    return bytes(value) if isinstance(value, memoryview) else value


class DurableAlarm:
    """`Alarm` of a Durable Object."""

    def __init__(self, storage: DurableStorage) -> None:
        self._storage = storage

    async def set(self, at_ms: int) -> None:
        await self._storage.setAlarm(at_ms)

    async def get(self) -> int | None:
        at_ms = await self._storage.getAlarm()
        return None if at_ms is None else int(at_ms)
