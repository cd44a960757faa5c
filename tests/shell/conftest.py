"""A Worker for each test that asks for one, open or behind Cloudflare Access."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.admin.access_team import Team
from tests.shell.access import guarded_worker
from tests.shell.worker import Worker, serving


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    async with serving() as served:
        yield served


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    """The team whose tokens a deployment behind Access accepts."""
    served = Team()
    served.keys = {"current": rsa.generate_private_key(65537, 2048)}
    yield served
    served.close()


@pytest.fixture
async def guarded(team: Team, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    """A deployment behind Access, without tenants."""
    async with guarded_worker(team, monkeypatch) as served:
        yield served
