"""The backend of `sqlite_vector_memory.py` against the published suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.sqlite_vector_memory import SqliteVectorMemory
from retain.namespace import Namespace
from retain.testing import VectorMemorySuite


class TestSqliteVectorMemory(VectorMemorySuite):
    """VM1 to VM8 on a SQLite file."""

    dimensions = 8

    @pytest.fixture(autouse=True)
    def in_a_file(self, tmp_path: Path) -> None:
        """Give each test a file of its own."""
        self.path = tmp_path / "documents.sqlite"

    async def open(self, collection: str) -> SqliteVectorMemory:
        """Return the documents of a collection."""
        return await self.open_of_model(collection, "model")

    async def open_of_model(self, collection: str, model: str) -> SqliteVectorMemory:
        """Return the documents of a collection, for one embedding model."""
        place = Namespace("example", "acme", collection)
        return SqliteVectorMemory(self.path, place, dimensions=self.dimensions, model=model)
