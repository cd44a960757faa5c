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
    """Read the embedding model's table before the first test, so that no test's deadline pays for it."""
    shipped_embedder().table()


@pytest.fixture
def substrate() -> Iterator[Substrate]:
    """A substrate of the test's own."""
    with closing(Substrate()) as made:
        yield made
