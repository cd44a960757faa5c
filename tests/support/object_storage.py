"""The storage of one Durable Object on the host, with the platform's atomicity."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy

from retain.host.alarm import MemoryAlarm
from retain.host.connection import open_database
from retain.host.object_sql import SqliteObjectSql
from retain.ports import SqlRows, SqlValue


class ObjectStorage:
    """SQLite and the alarm of one object. Implements `ObjectSql`.

    What is written with no `await` between commits together, or not at all when the object dies first. The platform
    holds every message that leaves the object until the writes before it are on disk: `commit` is that gate.
    Source: https://developers.cloudflare.com/durable-objects/api/sqlite-storage-api/
    """

    def __init__(self, *, turns: bool = True) -> None:
        """Open an empty one. turns: False lets each statement commit on its own, as in `SqliteObjectSql`."""
        self._turns = turns
        self._connection = open_database()
        self._sql = SqliteObjectSql(self._connection)
        self._timer = MemoryAlarm()
        self._timer_before = self._timer
        self._open = True
        self.alarm = ObjectAlarm(self)

    @property
    def timer(self) -> MemoryAlarm:
        """The alarm as this turn sees it."""
        return self._timer

    def run(self, sql: str, *values: SqlValue) -> SqlRows:
        """Run one statement inside the turn's transaction."""
        self.begin()
        return self._sql.run(sql, *values)

    def script(self, statements: Sequence[str]) -> None:
        """Run statements inside the turn's transaction."""
        self.begin()
        self._sql.script(statements)

    def atomically(self, work: Callable[[], None]) -> None:
        """Run the work inside the turn's transaction, all of it or nothing."""
        self.begin()
        self._sql.atomically(work)

    def begin(self) -> None:
        """Open the turn's transaction, to be committed when the event loop turns."""
        if self._turns and not self._connection.in_transaction:
            self._timer_before = copy(self._timer)
            self._connection.execute("BEGIN")
            asyncio.get_running_loop().call_soon(self.commit)

    def commit(self) -> None:
        """Make what the turn wrote durable."""
        if self._open and self._connection.in_transaction:
            self._connection.execute("COMMIT")

    def lose_turn(self) -> None:
        """Undo what the turn wrote, as the death of the object does."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
            self._timer = self._timer_before

    def close(self) -> None:
        """Close the database; its content is lost."""
        self._open = False
        self._connection.close()


class ObjectAlarm:
    """The object's alarm: setting it is one of the turn's writes. Implements `Alarm`."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    async def set(self, at_ms: int) -> None:
        """Fire at `at_ms`, replacing the time set before."""
        self._storage.begin()
        await self._storage.timer.set(at_ms)

    async def get(self) -> int | None:
        """Return the time it is set to, or None."""
        return await self._storage.timer.get()
