"""Fixtures of semantic memory's tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.memory.semantic.substrate import Substrate
from tests.support.instances import shipped_embedder

pytest.register_assert_rewrite("tests.memory.semantic.agreement")


@pytest.fixture(scope="session", autouse=True)
def _table() -> None:
    """Read the embedding model's table before the first test, so that no test's deadline includes it."""
    shipped_embedder().table()


@pytest.fixture
def substrate() -> Iterator[Substrate]:
    """Return a new substrate for the test."""
    with closing(Substrate()) as made:
        yield made
