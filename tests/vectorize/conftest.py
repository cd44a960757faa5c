"""Stand-ins that run once per session: one as `vectorize/wrangler.toml` configures it, one for tests that steer it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from tests.vectorize.http_index import HttpBinding
from tests.vectorize.workerd import running, variables

STEERED_INDEXES = {"kind": "string", "created_at": "number", "live": "boolean", "pandas.nice": "number"}


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of the gateway to the bindings VECTORIZE and STEERED (4 dimensions)."""
    steered = variables(DIMENSIONS="4", ALLOW_CONTROL="1", METADATA_INDEXES=STEERED_INDEXES)
    with running(tmp_path_factory.mktemp("vectorize"), {"VECTORIZE": variables(), "STEERED": steered}) as url:
        yield url


@pytest.fixture
async def client(gateway: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the gateway."""
    async with httpx.AsyncClient(base_url=gateway, timeout=60) as client:
        yield client


@pytest.fixture
def configured(client: httpx.AsyncClient) -> HttpBinding:
    """Return the binding as `vectorize/wrangler.toml` configures it."""
    return HttpBinding(client, "VECTORIZE")


@pytest.fixture
async def steered(client: httpx.AsyncClient) -> AsyncIterator[HttpBinding]:
    """Yield the binding whose clock and failures a test may set; both are reset after the test."""
    binding = HttpBinding(client, "STEERED")
    yield binding
    await binding.call("control", {"nowMs": None, "reset": True})
