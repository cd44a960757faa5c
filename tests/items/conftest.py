"""The tiers of one test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.items.world import Tiered, tiered


@pytest.fixture
def world() -> Iterator[Tiered]:
    with tiered() as world:
        yield world
