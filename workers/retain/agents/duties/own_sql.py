"""The object's SQLite as one `Instance` writes it: not any more once the object has forgotten everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retain.errors import Conflict
from retain.ports import ObjectSql, SqlRows, SqlValue


class OwnSql:
    """Implements `ObjectSql` for one `Instance`.

    A request that waited while everything was erased would otherwise write into an object that no longer knows who it is,
    or that the next `Instance` has by then.
    """

    def __init__(self, local: ObjectSql) -> None:
        self._local = local
        self.closed = False

    def close(self) -> None:
        """Refuse every further write (`instance_busy`): a repeated request finds the object as if it was never called."""
        self.closed = True

    def run(self, sql: str, *values: SqlValue) -> SqlRows:
        """Run one statement. Raises: Conflict (code `instance_busy`) for a write after `close`."""
        if self.closed and not sql.lstrip().startswith("SELECT"):
            raise _erased()
        return self._local.run(sql, *values)

    def script(self, statements: Sequence[str]) -> None:
        """Run statements. Raises: as `run`."""
        if self.closed:
            raise _erased()
        self._local.script(statements)

    def atomically(self, work: Callable[[], None]) -> None:
        """Run the work in a transaction. Raises: as `run`."""
        if self.closed:
            raise _erased()
        self._local.atomically(work)


def _erased() -> Conflict:
    return Conflict("the instance was erased meanwhile; try again", code="instance_busy")
