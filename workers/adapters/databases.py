"""D1 and a Durable Object's SQLite as ports, and the object's alarm.

They call the platform's objects by a module of JavaScript, not the SDK's wrappers: what crosses into Python takes longer
than most statements. BLOBs come from D1 as lists of integers and from a Durable Object's SQLite as memory views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pyodide.ffi import JsException, create_proxy, jsnull, to_js

from adapters.deadline import within
from adapters.failures import sql_error
from retain.limits.d1_calls import spend
from retain.limits.deadlines import SQL_MS
from retain.limits.storage import check_statement
from retain.ports import Row, SqlResult, SqlRows, SqlValue, Statement
from workers import import_from_javascript

if TYPE_CHECKING:
    import js
    from cloudflare_bindings import D1Database, DurableStorage


class D1:
    """`Sql` on a D1 database."""

    def __init__(self, binding: D1Database) -> None:
        self._db = binding._binding

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        spend()
        try:
            statement = to_js(_bound(sql, values))
            async with _in_time():
                return _d1_result(*(await _module().run(self._db, statement)).to_py())
        except JsException as error:
            raise sql_error("D1", error, "d1_unavailable") from error

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        if not statements:
            return []
        spend()
        try:
            bound = to_js([_bound(sql, values) for sql, values in statements])
            async with _in_time():
                results = (await _module().batch(self._db, bound)).to_py()
        except JsException as error:
            raise sql_error("D1", error, "d1_unavailable") from error
        return [_d1_result(*result) for result in results]


@cache
def _module() -> js.Database:
    """Return the module of JavaScript that runs statements. It can only be loaded while a request is answered."""
    module: js.Database = import_from_javascript("adapters/database.mjs")
    return module


def _in_time() -> within:
    """Bound a call. A batch whose deadline has passed may have committed, as one whose answer was lost."""
    return within(SQL_MS, "D1", "d1_unavailable")


def _d1_result(rows: Sequence[Row], changes: float, size_bytes: float) -> SqlResult:
    found: list[Row] = [{name: _d1_value(value) for name, value in row.items()} for row in rows]
    return SqlResult(found, int(changes), int(size_bytes))


def _d1_value(value: Any) -> Any:
    if value is jsnull:
        return None
    return bytes(value) if isinstance(value, list) else value


class DurableSql:
    """`ObjectSql` on a Durable Object's SQLite."""

    def __init__(self, storage: DurableStorage) -> None:
        self._sql = storage.sql._binding
        self._storage = storage._binding
        self._rows = _module().rows

    def run(self, sql: str, *values: SqlValue) -> SqlRows:
        bound = _bound(sql, values)
        try:
            found = self._rows(self._sql, *bound)
        except JsException as error:
            raise sql_error("object storage", error, "object_storage_unavailable") from error
        if found is None:
            return SqlRows([])
        return SqlRows([{name: _python_value(value) for name, value in row.items()} for row in found.to_py()])

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


def _bound(sql: str, values: Sequence[SqlValue]) -> list[object]:
    """Return a statement and its checked values as the platform takes them; most are so already."""
    checked = check_statement(sql, values)
    return [sql, *[_platform_value(value) if value is None or isinstance(value, bytes) else value for value in checked]]


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
        self._storage = storage._binding

    async def set(self, at_ms: int) -> None:
        await self._storage.setAlarm(at_ms)

    async def get(self) -> int | None:
        at_ms = await self._storage.getAlarm()
        return int(at_ms) if isinstance(at_ms, int | float) else None
