"""Fixtures of the model adapters' tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from retain.host.fetch import HostFetch
from retain.models.embedders.static import StaticEmbedder
from retain.models.openai_endpoint import OpenAiEndpoint
from retain.models.retry import Retries
from tests.support.model_server import SHIPPED_TABLE, ModelServer


@dataclass
class Waits:
    """A sleep that does not wait, but keeps what it was asked for, in seconds."""

    asked_s: list[float] = field(default_factory=list)

    async def __call__(self, delay_s: float, /) -> None:
        self.asked_s.append(delay_s)


@pytest.fixture(scope="session")
def static() -> StaticEmbedder:
    return StaticEmbedder(SHIPPED_TABLE)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def retries(waits: Waits) -> Retries:
    return Retries(waits, lambda: 0.5, attempts=3, base_ms=100, cap_ms=1_000)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest_asyncio.fixture
async def fetch() -> AsyncIterator[HostFetch]:
    client = HostFetch()
    yield client
    await client.close()


@pytest.fixture
def endpoint_of(retries: Retries, fetch: HostFetch) -> Callable[..., OpenAiEndpoint]:
    def make(server: ModelServer, *, api_key: str | None = None, timeout_ms: int = 30_000) -> OpenAiEndpoint:
        key = server.api_key if api_key is None else api_key
        return OpenAiEndpoint(server.base_url, fetch, retries, api_key=key, timeout_ms=timeout_ms)

    return make
