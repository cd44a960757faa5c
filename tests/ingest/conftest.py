"""Fixtures of ingest's tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.ingest.substrate import IngestSubstrate
from tests.support.instances import shipped_embedder


@pytest.fixture(scope="session", autouse=True)
def _table() -> None:
    """Read the embedding model's table before the first test, so that no test's deadline includes it."""
    shipped_embedder().table()


@pytest.fixture
def substrate() -> Iterator[IngestSubstrate]:
    """Return a new substrate for the test."""
    with closing(IngestSubstrate()) as made:
        yield made
