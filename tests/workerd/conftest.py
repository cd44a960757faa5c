"""The test Worker and the server that it fetches from, both started once a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.host.echo_server import echo_server
from tests.workerd.server import TestWorker, serving


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorker]:
    """The running test Worker."""
    with serving(tmp_path_factory.mktemp("workerd")) as running:
        yield running


@pytest.fixture(scope="session")
def origin() -> Iterator[str]:
    """The address of the echo server."""
    with echo_server() as server:
        yield server.origin
