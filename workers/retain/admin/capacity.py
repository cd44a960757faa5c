"""How much a deployment has of what the platform limits: its database, and its vector index."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from retain.errors import RetainError
from retain.limits.storage import MAX_DATABASE_BYTES
from retain.limits.vectorize import MAX_NAMESPACES, MAX_VECTORS
from retain.memory.indexer import Indexer
from retain.ports import Sql

_log = logging.getLogger(__name__)

WARN_AT: Final = 0.8
"""Part of a limit from which on the daily brief warns."""

_NAMESPACES = """
SELECT (SELECT COUNT(DISTINCT tenant_id) FROM scopes WHERE records > 0)
  + (SELECT COUNT(DISTINCT tenant_id) FROM vector_documents) AS n
"""
"""Each tenant has one for its records and one for its documents."""


@dataclass(frozen=True, slots=True)
class Used:
    """How much of a limit is used. used: None where that is not known."""

    used: int | None
    limit: int

    @property
    def is_near(self) -> bool:
        """Return whether the limit is near."""
        return self.used is not None and self.used >= WARN_AT * self.limit


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is used of each limit, which is that of the paid plan. Namespaces are counted as D1 knows them."""

    database_bytes: Used
    vectors: Used
    vector_namespaces: Used

    @classmethod
    async def measured(cls, sql: Sql, indexer: Indexer) -> Capacity:
        """Return what is used. An index that does not answer is not known. Raises: Unavailable when D1 does not answer."""
        found = await sql.run(_NAMESPACES)
        [row] = found.rows
        try:
            vectors = await indexer.vectors()
        except RetainError as error:
            _log.warning("the vectors were not counted", extra={"code": error.code})
            vectors = None
        return cls(
            Used(found.database_bytes, MAX_DATABASE_BYTES),
            Used(vectors, MAX_VECTORS),
            Used(int(row["n"]), MAX_NAMESPACES),
        )

    def to_json(self) -> dict[str, dict[str, int | None]]:
        """Return the capacity as the brief has it."""
        return {name: {"used": part.used, "limit": part.limit} for name, part in self._parts()}

    def near(self) -> dict[str, Used]:
        """Return the limits that are near, by name."""
        return {name: part for name, part in self._parts() if part.is_near}

    def _parts(self) -> Iterator[tuple[str, Used]]:
        yield "database_bytes", self.database_bytes
        yield "vectors", self.vectors
        yield "vector_namespaces", self.vector_namespaces
