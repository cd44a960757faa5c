"""Embedders that skip, merge or mix texts, drift, share, or hide failures."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any
from unicodedata import normalize

from retain.errors import Unavailable
from retain.models.embedding import Embedder
from tests.contracts.broken.kinds import Broken, Table
from tests.contracts.broken.sound import SoundEmbedder

E1 = "test_e1_equal_input_gives_equal_output"
ALONE = "test_a_vector_depends_on_its_text_alone"
AT_ONCE = "test_calls_at_once_do_not_mix"
E2 = "test_e2_embedding_has_no_side_effect"
E3 = "test_e3_failure_is_an_error"
EACH = "test_each_text_gets_one_vector_of_the_stated_length"
LENGTH = "test_vectors_have_length_one_and_blank_texts_are_all_zeros"
NEARER = "test_nearer_meaning_gives_a_nearer_vector"

Vectors = list[list[float]]
BROKEN = Table()


def changing(what: str, caught_by: str, change: Callable[[Sequence[str], Vectors], Any]) -> None:
    """Add an embedder whose answers are changed."""

    class Changing(SoundEmbedder):
        async def embed(self, texts: Sequence[str]) -> Any:
            return change(texts, await super().embed(texts))

    BROKEN.append(Broken(what, caught_by, Changing))


class Cased(SoundEmbedder):
    """A model for which every character counts."""

    async def ask(self, texts: Sequence[str]) -> Vectors:
        vectors = await super().ask(texts)
        return [_mixed(vector, _digested(text)) for text, vector in zip(texts, vectors, strict=True)]


def caching(what: str, key: Callable[[str], str]) -> None:
    """Add an embedder with a cache by this key."""

    class Caching(Cased):
        def __init__(self, inner: Embedder) -> None:
            super().__init__(inner)
            self.cache: dict[str, list[float]] = {}

        async def embed(self, texts: Sequence[str]) -> Vectors:
            for text, vector in zip(texts, await super().embed(texts), strict=True):
                self.cache.setdefault(key(text), vector)
            return [list(self.cache[key(text)]) for text in texts]

    BROKEN.append(Broken(what, ALONE, Caching))


def _scaled(vectors: Vectors, by: float) -> Vectors:
    return [[value * by for value in vector] for vector in vectors]


def _nothing(vector: list[float], value: float) -> list[float]:
    return [value, *vector[1:]]


def _of_text(change: Callable[[str, list[float]], Any]) -> Callable[[Sequence[str], Vectors], Any]:
    return lambda texts, vectors: [change(text, each) for text, each in zip(texts, vectors, strict=True)]


def _first_scaled(_: Sequence[str], vectors: Vectors) -> Vectors:
    return [*_scaled(vectors[:1], 1 + 1e-8), *vectors[1:]]


def _by_length(texts: Sequence[str], vectors: Vectors) -> Vectors:
    return [vectors[place] for place in sorted(range(len(texts)), key=lambda place: len(texts[place]))]


def _once(texts: Sequence[str], vectors: Vectors) -> Vectors:
    return list(dict(zip(texts, vectors, strict=True)).values())


def _zeros_for_repeated(texts: Sequence[str], vectors: Vectors) -> Vectors:
    return [
        each if text not in texts[:place] else [0.0] * 256
        for place, (text, each) in enumerate(zip(texts, vectors, strict=True))
    ]


def _without_blank(texts: Sequence[str], vectors: Vectors) -> Vectors:
    return [each for text, each in zip(texts, vectors, strict=True) if text.strip()]


def _zeros_after(_: Sequence[str], vectors: Vectors) -> Vectors:
    return [each if place < 99 else [0.0] * 256 for place, each in enumerate(vectors)]


changing("The first text of a call gets a slightly different vector.", E1, _first_scaled)
changing("A vector depends on how many are embedded.", E1, lambda _, vectors: _scaled(vectors, 1 + len(vectors) * 1e-9))
changing("The vectors are in the order of the texts' lengths.", E1, _by_length)
changing("Equal texts of a call get one vector.", EACH, _once)
changing("A text that is repeated in a call gets zeros.", EACH, _zeros_for_repeated)
changing(
    "A text alone gets its vector without a list around it.",
    EACH,
    lambda _, vectors: vectors[0] if len(vectors) == 1 else vectors,
)
changing("Only the first 64 texts of a call get a vector.", EACH, lambda _, vectors: vectors[:64])
changing("Blank texts get no vector.", EACH, _without_blank)
changing("No texts get None.", EACH, lambda texts, vectors: vectors if texts else None)
changing("Vectors are one longer than stated.", EACH, _of_text(lambda _, each: [*each, 0.0]))
changing("The hundredth text of a call and those after it get zeros.", EACH, _zeros_after)
changing("Vectors are not normalised.", LENGTH, lambda _, vectors: _scaled(vectors, 3.0))
changing(
    "A blank text gets a vector of length one.",
    LENGTH,
    _of_text(lambda text, each: each if text.strip() else _nothing(each, 1.0)),
)
changing("A blank text gets NaN.", E3, _of_text(lambda text, each: each if text.strip() else _nothing(each, math.nan)))
caching("A cache has no case.", str.lower)
caching("A cache drops the outer spaces of its texts.", str.strip)
caching("A cache has its texts in Unicode's composed form.", lambda text: normalize("NFC", text))
caching("A cache knows texts by their first hundred characters.", lambda text: text[:100])


@BROKEN.holds("Every call returns slightly different vectors.", E1)
class Drifts(SoundEmbedder):
    calls = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        Drifts.calls += 1
        return _scaled(await super().embed(texts), 1 + Drifts.calls * 1e-9)


@BROKEN.holds("Every object has vectors of its own.", E1)
class HasItsOwn(SoundEmbedder):
    objects = 0

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        HasItsOwn.objects += 1
        self.by = 1 + HasItsOwn.objects * 1e-9

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return _scaled(await super().embed(texts), self.by)


@BROKEN.holds("Vectors change after forty calls.", E1)
class DriftsLater(SoundEmbedder):
    calls = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        return _scaled(await super().embed(texts), 1 + 1e-9 if self.calls > 40 else 1.0)


@BROKEN.holds("A vector changes with what was embedded before it.", ALONE)
class Remembers(SoundEmbedder):
    last = ""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = await super().embed(texts)
        if len(texts) == 1 and self.last.lower() == texts[0].lower() and self.last != texts[0]:
            vectors = _scaled(vectors, 1 + 1e-9)
        self.last = texts[-1] if texts else ""
        return vectors


@BROKEN.holds("Texts that begin alike get one vector: only the first 200 characters are read.", ALONE)
class ReadsTheBeginning(SoundEmbedder):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await super().embed([text[:200] for text in texts])


@BROKEN.holds("Calls at the same time share their texts.", AT_ONCE)
class SharesItsTexts(SoundEmbedder):
    texts: Sequence[str] = ()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts = texts
        await asyncio.sleep(0)
        return await super().embed(self.texts)


@BROKEN.holds("Calls at the same time are sent together, and answered in the wrong order.", AT_ONCE)
class SendsTogether(SoundEmbedder):
    waiting: tuple[str, ...] = ()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.waiting = (*self.waiting, *texts)
        await asyncio.sleep(0)
        together, self.waiting = self.waiting or tuple(texts), ()
        return (await super().embed(together))[: len(texts)]


@BROKEN.holds("The answer to a cancelled call is given to the next one.", AT_ONCE)
class AnswersTheLastCall(SoundEmbedder):
    owed: Sequence[str] | None = None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        asked = texts if self.owed is None else [*self.owed, *texts]
        self.owed = texts if len(texts) == 6 else None
        answer = (await super().embed(asked))[: len(texts)]
        self.owed = None
        return answer


@BROKEN.holds("The cached vectors themselves are returned.", E2)
class SharesItsCache(SoundEmbedder):
    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self.cache: dict[str, list[float]] = {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        for text, vector in zip(texts, await super().embed(texts), strict=True):
            self.cache.setdefault(text, vector)
        return [self.cache[text] for text in texts]


@BROKEN.holds("One buffer is returned by every call.", E2)
class SharesItsBuffer(SoundEmbedder):
    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self.buffer: Vectors = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.buffer[:] = await super().embed(texts)
        return self.buffer


@BROKEN.holds("The caller's texts are tidied.", E2)
class TidiesUp(SoundEmbedder):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = await super().embed(list(texts))
        if isinstance(texts, list):
            texts[:] = [text.strip() for text in texts]
        return vectors


@BROKEN.holds("The model's name is known only after a call.", E2)
class NamesItselfLater(SoundEmbedder):
    used = False

    @property
    def model(self) -> str:
        return self.inner.model if self.used else "unknown"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = await super().embed(texts)
        self.used = True
        return vectors


def hiding(what: str, answer: Callable[[Sequence[str]], Vectors]) -> None:
    """Add an embedder that answers a failed batch in this way."""

    class Hiding(SoundEmbedder):
        async def ask(self, texts: Sequence[str]) -> Vectors:
            try:
                return await super().ask(texts)
            except Unavailable:
                return answer(texts)

    BROKEN.append(Broken(what, E3, Hiding))


def hiding_later(what: str, answer: Callable[[Sequence[str]], Vectors]) -> None:
    """Add an embedder that answers in this way if a batch after the first one failed."""

    class HidingLater(SoundEmbedder):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            first, rest = texts[:50], texts[50:]
            vectors = await self.ask(first) if first else []
            try:
                return [*vectors, *(await super().embed(rest))]
            except Unavailable:
                return [*vectors, *answer(rest)]

    BROKEN.append(Broken(what, E3, HidingLater))


hiding("A failure gives zeros.", lambda texts: [[0.0] * 256 for _ in texts])
hiding("A failure gives no vectors.", lambda _: [])
hiding_later("A failure after the first batch gives only the first batch's vectors.", lambda _: [])
hiding_later("A failure after the first batch gives zeros.", lambda texts: [[0.0] * 256 for _ in texts])


@BROKEN.holds("A vector is a digest of its text.", NEARER)
class Digests(SoundEmbedder):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = await super().embed(texts)
        return [_digested(f"3{text}") if any(vector) else vector for text, vector in zip(texts, vectors, strict=True)]


def _mixed(vector: list[float], other: list[float]) -> list[float]:
    """Return the vector moved a little towards the other one; zeros stay zeros."""
    if not any(vector):
        return vector
    values = [value + other_value / 50 for value, other_value in zip(vector, other, strict=True)]
    norm = math.hypot(*values)
    return [value / norm for value in values]


def _digested(text: str) -> list[float]:
    digits = hashlib.shake_128(text.encode()).digest(256)
    values = [digit - 127.5 for digit in digits]
    norm = math.hypot(*values)
    return [value / norm for value in values]
