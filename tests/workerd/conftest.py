"""The test Worker and the server that it fetches from, both started once per session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.host.echo_server import echo_server
from tests.workerd.server import TestWorker, serving


@pytest.fixture(scope="session")
def worker(migrated_state: Callable[[], Path]) -> Iterator[TestWorker]:
    """The running test Worker."""
    with serving(migrated_state()) as running:
        yield running


@pytest.fixture(scope="session")
def origin() -> Iterator[str]:
    """The address of the echo server."""
    with echo_server() as server:
        yield server.origin
