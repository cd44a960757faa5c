"""The suite detects each broken backend, only by the test of the invariant that it breaks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from retain.contracts.backends.vector_process import ProcessVectorMemory
from retain.contracts.chat import ChatMemory
from retain.contracts.documents import PreparedDocument
from retain.contracts.vectors import VectorMemory
from retain.models.embedding import Embedder
from retain.testing import ChatMemorySuite, EmbedderSuite, Suite, VectorMemorySuite
from tests.contracts.backends import DIMENSIONS, namespace
from tests.contracts.broken import (
    BROKEN_CHATS,
    BROKEN_EMBEDDERS,
    BROKEN_VECTORS,
    Failing,
    SoundChat,
    SoundEmbedder,
)
from tests.support.instances import shipped_embedder

INVARIANTS = [*(f"cm{n}" for n in range(1, 7)), *(f"vm{n}" for n in range(1, 9)), *(f"e{n}" for n in range(1, 4))]


def chat_suite(kind: type[SoundChat]) -> ChatMemorySuite:
    store: dict[str, list[object]] = {}

    async def open_session(session: str) -> ChatMemory:
        return kind(store, session)  # type: ignore[arg-type]

    return ChatMemorySuite.of(open_session)


def vector_suite(kind: type[ProcessVectorMemory]) -> VectorMemorySuite:
    store: dict[str, dict[str, PreparedDocument]] = {}

    async def open_collection(collection: str) -> VectorMemory:
        return kind(namespace(collection), dimensions=DIMENSIONS, store=store)

    return VectorMemorySuite.of(open_collection, dimensions=DIMENSIONS)


def embedder_suite(kind: type[SoundEmbedder]) -> EmbedderSuite:
    async def opened() -> Embedder:
        return kind(shipped_embedder())

    async def failing() -> Embedder:
        return kind(Failing())

    return EmbedderSuite.of(opened, failing)


async def failures(suite: Suite) -> list[str]:
    """Return the numbers of the tests that fail."""
    failed = []
    for name, case in suite.cases().items():
        try:
            await case()
        except AssertionError as error:
            number = name.split("_")[1]
            assert str(error).lower().startswith(f"{number}:"), f"{name} says {error}"
            failed.append(number)
    return failed


SUITES: Sequence[tuple[type, Suite]] = [
    *((kind, chat_suite(kind)) for kind in BROKEN_CHATS),
    *((kind, vector_suite(kind)) for kind in BROKEN_VECTORS),
    *((kind, embedder_suite(kind)) for kind in BROKEN_EMBEDDERS),
]


def number_of(kind: type) -> str:
    """Return the number with which a broken backend's name begins."""
    return next(number for number in INVARIANTS if kind.__name__.lower().startswith(number))


@pytest.mark.parametrize(("kind", "suite"), SUITES, ids=[kind.__name__ for kind, _ in SUITES])
async def test_a_broken_backend_fails_only_the_test_of_its_invariant(kind: type, suite: Suite) -> None:
    assert await failures(suite) == [number_of(kind)]


def test_every_invariant_is_broken_by_some_backend() -> None:
    assert {number_of(kind) for kind, _ in SUITES} == set(INVARIANTS)


@pytest.mark.parametrize(
    "suite",
    [chat_suite(SoundChat), vector_suite(ProcessVectorMemory), embedder_suite(SoundEmbedder)],
    ids=["chat", "vectors", "embedder"],
)
async def test_the_bases_of_the_broken_backends_are_sound(suite: Suite) -> None:
    assert await failures(suite) == []
