"""Every backend of the memory contracts passes the published suite on the real bindings in the real workerd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from retain.testing import ChatMemorySuite, EmbedderSuite, Suite, VectorMemorySuite
from tests.support.model_server import ModelServer
from tests.workerd.server import TestWorker

pytestmark = pytest.mark.workerd

BACKENDS: dict[str, type[Suite]] = {
    "chat-object": ChatMemorySuite,
    "chat-d1": ChatMemorySuite,
    "chat-kv": ChatMemorySuite,
    "chat-kv-sealed": ChatMemorySuite,
    "vectors-in-process": VectorMemorySuite,
    "vectors-d1": VectorMemorySuite,
    "vectors-vectorize": VectorMemorySuite,
    "embedder-static": EmbedderSuite,
    "embedder-openai": EmbedderSuite,
    "embedder-workers-ai": EmbedderSuite,
}
CASES = [(backend, name) for backend, suite in BACKENDS.items() for name in suite.names()]


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    """A model server that the Worker reaches over loopback."""
    with ModelServer() as server:
        yield server


@pytest.mark.parametrize(("backend", "name"), CASES, ids=[f"{backend}-{name}" for backend, name in CASES])
def test_conformance(worker: TestWorker, models: ModelServer, backend: str, name: str) -> None:
    asked = {"base_url": models.base_url, "api_key": models.api_key}
    outcome = worker.post(f"/conformance/{backend}/{name}", asked)
    assert outcome["passed"], outcome["error"]
