"""The suites detect every broken backend, by the test that is made for it."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
from pathlib import Path
from traceback import extract_tb

import pytest

import retain.testing
from retain.contracts.chat import ChatMemory
from retain.contracts.vectors import VectorMemory
from retain.models.embedding import Embedder
from retain.testing import ChatMemorySuite, EmbedderSuite, Suite, VectorMemorySuite
from tests.contracts.backends import DIMENSIONS
from tests.contracts.broken import BROKEN, Broken
from tests.contracts.broken.kinds import Sound
from tests.contracts.broken.sound import ChatStore, Failing, SoundChat, SoundEmbedder, SoundVectors, VectorStore
from tests.support.instances import shipped_embedder

SUITES = (ChatMemorySuite, VectorMemorySuite, EmbedderSuite)
SUITES_FOLDER = Path(retain.testing.__file__).parent


def chat_suite(kind: type[SoundChat]) -> ChatMemorySuite:
    store: ChatStore = {}

    async def open_session(session: str) -> ChatMemory:
        return kind(store, session)

    return ChatMemorySuite.of(open_session)


def vector_suite(kind: type[SoundVectors]) -> VectorMemorySuite:
    store: VectorStore = {}

    async def open_collection(collection: str) -> VectorMemory:
        return kind(store, collection)

    async def open_of_model(collection: str, model: str) -> VectorMemory:
        return kind(store, collection, model)

    return VectorMemorySuite.of(open_collection, dimensions=DIMENSIONS, open_of_model=open_of_model)


def embedder_suite(kind: type[SoundEmbedder]) -> EmbedderSuite:
    async def opened() -> Embedder:
        return kind(shipped_embedder())

    async def failing() -> Embedder:
        return kind(Failing(shipped_embedder()))

    async def interrupted() -> Embedder:
        return kind(Failing(shipped_embedder(), answered=1))

    return EmbedderSuite.of(opened, failing, interrupted)


def suite_of(kind: Sound) -> Suite:
    """Return the suite of a backend, with a new store."""
    if issubclass(kind, SoundChat):
        return chat_suite(kind)
    if issubclass(kind, SoundVectors):
        return vector_suite(kind)
    return embedder_suite(kind)


async def failure(kind: Sound, name: str) -> str | None:
    """Return what a test says that fails, run with a store of its own; None if it passes."""
    try:
        await suite_of(kind).cases()[name]()
    except AssertionError as error:
        return str(error)
    return None


async def failures(kind: Sound) -> AsyncIterator[str]:
    """Yield the tests that fail, each run with a store of its own."""
    for name in suite_of(kind).cases():
        if await failure(kind, name) is not None:
            yield name


@pytest.mark.parametrize("broken", BROKEN, ids=[broken.name for broken in BROKEN])
async def test_a_broken_backend_fails_the_test_that_is_made_for_it(broken: Broken) -> None:
    shown = await failure(broken.kind, broken.caught_by)
    assert shown is not None
    number = broken.caught_by.split("_")[1]
    if number[-1].isdigit():
        assert shown.lower().startswith((f"{number}:", f"{broken.caught_by}:"))


@pytest.mark.parametrize("sound", [SoundChat, SoundVectors, SoundEmbedder])
async def test_the_bases_of_the_broken_backends_are_sound(sound: Sound) -> None:
    assert [name async for name in failures(sound)] == []


@pytest.mark.parametrize("name", [name for suite in SUITES for name in suite.names()])
async def test_without_this_test_of_the_suites_some_backend_would_pass(name: str) -> None:
    made_for_it = [broken for broken in BROKEN if broken.caught_by == name]
    for broken in made_for_it:
        async for failed in failures(broken.kind):
            if failed != name:
                break
        else:
            if await failure(broken.kind, name) is not None:
                return
    pytest.fail(f"{len(made_for_it)} backends are made for it, and other tests catch each of them")


async def test_an_interrupted_server_that_is_not_interrupted_is_noticed() -> None:
    async def opened() -> Embedder:
        return SoundEmbedder(shipped_embedder())

    async def failing() -> Embedder:
        return SoundEmbedder(Failing(shipped_embedder()))

    with pytest.raises(AssertionError, match=r"E3: the server of `open_interrupted` did not fail"):
        await EmbedderSuite.of(opened, failing, opened).cases()["test_e3_failure_is_an_error"]()


async def test_every_check_of_the_suites_fails_for_the_backend_that_is_made_for_it() -> None:
    failed = set[tuple[str, int]]()
    for broken in BROKEN:
        try:
            await suite_of(broken.kind).cases()[broken.caught_by]()
        except AssertionError as error:
            failed |= {(Path(frame.filename).name, frame.lineno or 0) for frame in extract_tb(error.__traceback__)}
    never = [
        f"{path.name}:{call.lineno}: {ast.unparse(call.args[-1])}"
        for path in sorted(SUITES_FOLDER.glob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "check"
        if not failed & {(path.name, line) for line in range(call.lineno, (call.end_lineno or 0) + 1)}
    ]
    assert "\n".join(each for each in never if "open_interrupted" not in each) == ""
