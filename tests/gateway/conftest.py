from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from retain.host.clock import ManualClock
from retain.host.fetch import HostFetch
from tests.gateway.setting import CREDENTIALS_KEY, CountingKv, Setting
from tests.gateway.upstream_server import Upstream, serve


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with serve() as upstream:
        yield upstream


@pytest.fixture
async def setting(server: Upstream) -> AsyncIterator[Setting]:
    """A gateway, its KV and an upstream that records what it receives."""
    server.received.clear()
    fetch = HostFetch()
    clock = ManualClock()
    yield Setting(CountingKv(clock), fetch, clock, server, CREDENTIALS_KEY)
    await fetch.close()
