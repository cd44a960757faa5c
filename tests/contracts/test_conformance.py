"""Every backend on the host passes the published suite of its contract."""

from __future__ import annotations

import pytest

from retain.contracts.chat import ChatMemory, ClearableChatMemory
from retain.contracts.vectors import DeletableVectorMemory, VectorMemory
from retain.testing import ChatMemorySuite, EmbedderSuite, VectorMemorySuite
from tests.contracts.backends import CHATS, DIMENSIONS, VECTORS, namespace


@pytest.mark.parametrize("name", ChatMemorySuite.names())
@pytest.mark.parametrize("backend", CHATS)
async def test_chat_memories_conform(backend: str, name: str) -> None:
    memory_of = CHATS[backend]()

    async def open_session(session: str) -> ChatMemory:
        return memory_of(namespace(session))

    await ChatMemorySuite.of(open_session).cases()[name]()


@pytest.mark.parametrize("name", VectorMemorySuite.names())
@pytest.mark.parametrize("backend", VECTORS)
async def test_vector_memories_conform(backend: str, name: str) -> None:
    memory_of = VECTORS[backend]()

    async def open_collection(collection: str) -> VectorMemory:
        return memory_of(namespace(collection))

    async def open_of_model(collection: str, model: str) -> VectorMemory:
        return memory_of(namespace(collection), model)

    suite = VectorMemorySuite.of(open_collection, dimensions=DIMENSIONS, open_of_model=open_of_model)
    await suite.cases()[name]()


def test_every_backend_can_clear_and_delete() -> None:
    place = namespace("any")
    assert all(isinstance(make()(place), ClearableChatMemory) for make in CHATS.values())
    assert all(isinstance(make()(place), DeletableVectorMemory) for make in VECTORS.values())


@pytest.mark.parametrize(
    ("suite", "prefix", "count"),
    [(ChatMemorySuite, "cm", 6), (VectorMemorySuite, "vm", 8), (EmbedderSuite, "e", 3)],
    ids=["chat", "vectors", "embedder"],
)
def test_each_invariant_has_one_test_named_after_its_number(
    suite: type[ChatMemorySuite | VectorMemorySuite | EmbedderSuite], prefix: str, count: int
) -> None:
    numbered = [name.split("_")[1] for name in suite.names() if name.split("_")[1][-1].isdigit()]
    assert numbered == [f"{prefix}{number}" for number in range(1, count + 1)]
