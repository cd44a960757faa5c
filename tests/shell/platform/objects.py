"""Durable Objects: their storage, their alarms, and the namespace in which they are found by name."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextvars import Context
from types import SimpleNamespace
from typing import Any

from retain.errors import ConstraintViolated, RetainError
from retain.host.connection import execute, open_database
from retain.host.sql import split_statements
from tests.shell.platform.bindings import Binding
from tests.shell.platform.ffi import Buffer, JsException, PyProxy, jsnull


class Cursor:
    """Rows of a statement."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def toArray(self) -> Cursor:
        """Return all of them."""
        return self

    def to_py(self) -> list[dict[str, Any]]:
        """Return them as values of Python: null stays null, a BLOB is a view of memory."""
        return [{name: _shown(value) for name, value in row.items()} for row in self._rows]

    def one(self) -> SimpleNamespace:
        """Return the only row."""
        (row,) = self._rows
        return SimpleNamespace(**row)


class Storage:
    """The storage of one object: `ctx.storage`. down: whether it fails."""

    def __init__(self) -> None:
        self.connection = open_database()
        self.alarm_ms: int | None = None
        self.down = False
        self.sql = SimpleNamespace(_binding=self)
        self._binding = self

    def exec(self, sql: str, *values: Any) -> Cursor:
        """Run a statement."""
        if self.down:
            raise JsException("internal error")
        try:
            *before, last = split_statements(sql) if not values else [sql]
            for statement in before:  # the platform runs them all, and answers the rows of the last
                execute(self.connection, statement, [])
            return Cursor([dict(row) for row in execute(self.connection, last, [_bound(one) for one in values]).rows])
        except RetainError as error:
            why = "UNIQUE constraint failed" if isinstance(error, ConstraintViolated) else "syntax error"
            raise JsException(why) from None

    def transactionSync(self, callback: PyProxy) -> None:
        """Run a function whose statements are rolled back when it raises."""
        if self.down:
            raise JsException("internal error")
        self.connection.execute("SAVEPOINT work")
        try:
            callback()
        except JsException:
            self.connection.execute("ROLLBACK TO work")
            raise
        finally:
            self.connection.execute("RELEASE work")

    async def setAlarm(self, at_ms: int) -> None:
        """Set the alarm."""
        self.alarm_ms = at_ms

    async def getAlarm(self) -> float | None:
        """Return when it is set to ring."""
        return None if self.alarm_ms is None else float(self.alarm_ms)

    def rows(self, sql: str) -> list[Any]:
        """Return the rows of a query, for a test; none from a table that was not made."""
        try:
            return self.connection.execute(sql).fetchall()
        except sqlite3.OperationalError:
            return []


def _bound(value: Any) -> Any:
    if value is jsnull:
        return None
    if isinstance(value, Buffer):
        return value.content
    if value is None or isinstance(value, bytes):
        raise JsException("a value that JavaScript does not have", "TypeError")
    return value


def _shown(value: Any) -> Any:
    if value is None:
        return jsnull
    return memoryview(value) if isinstance(value, bytes) else value


class Namespace(Binding):
    """The objects of one class. make: makes one from its context, when it is first called or called after it slept."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self._make = make
        self.storages: dict[str, Storage] = {}
        self.living: dict[str, Any] = {}
        self.requests: list[tuple[str, str, str]] = []

    def getByName(self, name: str) -> Stub:
        """Return the object with a name. Nothing is called yet."""
        return Stub(self, name)

    async def call(self, name: str, method: str, argument: str) -> object:
        """Call a method of an object."""
        self._note(f"{name} {method}")
        self.requests.append((name, method, argument))
        await asyncio.sleep(0)
        # An object is called from the platform, not from the caller's task: it sees nothing of the caller's context.
        called = asyncio.create_task(getattr(self.object(name), method)(argument), context=Context())
        answer: object = await called
        return answer

    def object(self, name: str) -> Any:
        """Return the object with a name, awake."""
        if name not in self.living:
            storage = self.storages.setdefault(name, Storage())
            self.living[name] = self._make(SimpleNamespace(storage=storage))
        return self.living[name]

    def sleep(self) -> None:
        """Let every object fall asleep: its memory is gone, its storage stays."""
        self.living.clear()

    async def ring(self, now_ms: int) -> int:
        """Fire the alarms that are due; return how many were."""
        due = [
            (name, one) for name, one in self.storages.items() if one.alarm_ms is not None and one.alarm_ms <= now_ms
        ]
        for name, storage in due:
            storage.alarm_ms = None
            await self.object(name).alarm(None)
        return len(due)


class Stub:
    """Reaches one object."""

    def __init__(self, namespace: Namespace, name: str) -> None:
        self._namespace = namespace
        self._name = name

    def __getattr__(self, method: str) -> Callable[[str], Awaitable[object]]:
        async def call(argument: str) -> object:
            return await self._namespace.call(self._name, method, argument)

        return call
