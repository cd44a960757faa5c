"""The conformance suite of `Embedder`: E1 to E3, and what else Retain's recall relies on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

from retain.identifiers import new_id
from retain.models.embedding import Embedder
from retain.testing.suite import Suite, cancelled, check, invariant, short

TEXTS = ("Refund approved for sara@example.com", "It rained in Oslo all week.", "", "Refund declined", "   \n")
_NEARER = "money back for the customer"
_MANY = 300
_PROBED = (0, 31, 32, 63, 64, 99, 100, 127, 128, 255, 256, _MANY - 1)
_CALLS = 60
_BEGINNING = "This is how every letter of the company begins, whatever it is about, and however long it is. " * 3


class EmbedderSuite(Suite):
    """The tests of an `Embedder`. Name the subclass `Test…`, override `open` and `open_failing`, and pytest runs them."""

    async def open(self) -> Embedder:
        """Return the embedder."""
        raise NotImplementedError("override this to return your embedder")

    async def open_failing(self) -> Embedder:
        """Return one that cannot answer: its server is down, or its table cannot be read. E3 says what it must do."""
        raise NotImplementedError("override this to return an embedder that fails")

    async def open_interrupted(self) -> Embedder | None:
        """Return one whose server answers one request and then fails, or None if `embed` never makes a second request."""
        return None

    @classmethod
    def of(
        cls,
        open_embedder: Callable[[], Awaitable[Embedder]],
        open_failing: Callable[[], Awaitable[Embedder]],
        open_interrupted: Callable[[], Awaitable[Embedder]] | None = None,
    ) -> Self:
        """Return the suite of the embedders that these functions open, for `cases`."""
        suite = cls()
        setattr(suite, "open", open_embedder)  # noqa: B010 -- the type checker sees a method
        setattr(suite, "open_failing", open_failing)  # noqa: B010
        if open_interrupted is not None:
            setattr(suite, "open_interrupted", open_interrupted)  # noqa: B010
        return suite

    @invariant
    async def test_e1_equal_input_gives_equal_output(self) -> None:
        """A vector depends only on its text and the model: not on the call, its neighbours, its position, or the object."""
        embedder = await self.open()
        together = _copied(await embedder.embed(TEXTS))
        check(_copied(await embedder.embed(TEXTS)) == together, "E1", "the same call gave other vectors")
        check(_copied(await embedder.embed(TEXTS[::-1])) == together[::-1], "E1", "a vector depends on its position")
        alone = [await _one(embedder, text) for text in TEXTS]
        check(alone == together, "E1", "a vector depends on its neighbours")
        check(_copied(await (await self.open()).embed(TEXTS)) == together, "E1", "another embedder gave other vectors")
        for call in range(_CALLS):
            again = _copied(await embedder.embed(TEXTS[:1]))
            check(again == together[:1], "E1", f"after {call} more calls the same text got another vector")

    @invariant
    async def test_a_vector_depends_on_its_text_alone(self) -> None:
        """Two texts get the vectors that each gets alone, whatever case, spaces or beginning they have in common."""
        name = new_id()
        for texts in (
            (f"Refund of {name}", f"REFUND OF {name}", f"refund of {name}"),
            (f"{name}: caf\u00e9", f"{name}: cafe\u0301", f"  {name}: caf\u00e9 ", f"{name}: cafe"),
            (f"{_BEGINNING}It rained in Oslo.", f"{_BEGINNING}Refund approved.", _BEGINNING),
        ):
            first, second = await self.open(), await self.open()
            forwards = [await _one(first, text) for text in texts]
            backwards = [await _one(second, text) for text in texts[::-1]]
            check(
                forwards == backwards[::-1],
                "E1",
                f"which vector a text gets depends on what was embedded before: {texts}",
            )
        check(forwards[0] != forwards[1], "E1", "texts that begin alike get one vector")

    @invariant
    async def test_calls_at_once_do_not_mix(self) -> None:
        """Each of several calls at the same time gets its own texts' vectors, also when one of them is cancelled."""
        embedder = await self.open()
        calls = [[TEXTS[0]], [TEXTS[1], TEXTS[3]], list(TEXTS), [TEXTS[3], TEXTS[0]]]
        expected = [_copied(await embedder.embed(texts)) for texts in calls]
        for turns in range(4):
            answers = await asyncio.gather(*(embedder.embed(texts) for texts in calls))
            check([_copied(answer) for answer in answers] == expected, "E1", "calls at the same time were mixed")
            await cancelled(_embedded(embedder, [_NEARER, *TEXTS]), turns)
            alone = _copied(await embedder.embed(calls[1]))
            check(alone == expected[1], "E1", "a call after a cancelled one got other vectors")

    @invariant
    async def test_e2_embedding_has_no_side_effect(self) -> None:
        """Neither the input nor the answer is shared: the caller may change both, and nothing else changes."""
        embedder = await self.open()
        known = (embedder.model, embedder.dimensions)
        given = list(TEXTS)
        answered = await embedder.embed(given)
        check(given == list(TEXTS), "E2", "the texts that were given were changed")
        kept = _copied(answered)
        given.reverse()
        await embedder.embed([_NEARER, *TEXTS])
        check(_copied(answered) == kept, "E2", "a later call changed vectors that were returned before")
        for vector in answered:
            vector[:] = [2.0 for _ in vector]
        afterwards = await embedder.embed(TEXTS)
        check(_alike(afterwards, kept), "E2", "changing an answer changed the next answer")
        check((embedder.model, embedder.dimensions) == known, "E2", "embedding changed the model's name or dimensions")

    @invariant
    async def test_e3_failure_is_an_error(self) -> None:
        """An embedder that cannot answer raises: it returns neither an empty result nor an invented one."""
        for texts in (TEXTS[:1], TEXTS[:2]):
            failing = await self.open_failing()
            try:
                answered = str(await failing.embed(texts))[:200]
            except Exception:  # noqa: BLE001 -- the embedder chooses the error
                answered = ""
            check(not answered, "E3", f"it cannot answer, but answered {answered}")
        values = [value for vector in await (await self.open()).embed(TEXTS) for value in vector]
        check(
            all(isinstance(value, float) and math.isfinite(value) for value in values),
            "E3",
            "not all numbers are finite",
        )
        await self._an_interruption_is_an_error()

    @invariant
    async def test_each_text_gets_one_vector_of_the_stated_length(self) -> None:
        """Each text gets one vector of `dimensions` numbers, in order; no texts get no vectors."""
        embedder = await self.open()
        lengths = [len(vector) for vector in await embedder.embed(TEXTS)]
        check(lengths == [embedder.dimensions] * len(TEXTS), "Texts", f"the vectors have the lengths {lengths}")
        check(await embedder.embed([]) == [], "Texts", "an empty list of texts has vectors")
        repeated = [TEXTS[0], TEXTS[1], TEXTS[0], "", TEXTS[0], ""]
        vectors = _copied(await embedder.embed(repeated))
        check(len(vectors) == len(repeated), "Texts", f"{len(repeated)} texts, some equal, got {len(vectors)} vectors")
        first = vectors[0]
        check(vectors[2] == vectors[4] == first != vectors[1], "Texts", "equal texts of one call got other vectors")
        many = _numbered(_MANY)
        vectors = _copied(await embedder.embed(many))
        check(len(vectors) == _MANY, "Texts", f"{_MANY} texts in one call got {len(vectors)} vectors")
        for place in _PROBED:
            alone = await _one(embedder, many[place])
            check(vectors[place] == alone, "Texts", f"of {_MANY} texts, number {place} got another one's vector")

    async def _an_interruption_is_an_error(self) -> None:
        calls = [_numbered(_MANY), _numbered(_MANY, of="return")]
        expected = [_copied(await (await self.open()).embed(texts)) for texts in calls]
        interrupted = await self.open_interrupted()
        if interrupted is None:
            return
        refused = 0
        for texts, vectors in zip(calls, expected, strict=True):
            try:
                answered = await interrupted.embed(texts)
            except Exception:  # noqa: BLE001 -- the embedder chooses the error
                refused += 1
                continue
            whole = len(answered) == _MANY and _alike(answered, vectors)
            check(whole, "E3", f"its server failed after one request, and it answered {short(answered)}")
        check(refused, "E3", "the server of `open_interrupted` did not fail")

    @invariant
    async def test_vectors_have_length_one_and_blank_texts_are_all_zeros(self) -> None:
        """Vectors are normalised, so that a dot product is a cosine."""
        embedder = await self.open()
        for text, vector in zip(TEXTS, await embedder.embed(TEXTS), strict=True):
            norm = math.hypot(*vector)
            expected = 1.0 if text.strip() else 0.0
            check(math.isclose(norm, expected, abs_tol=1e-6), "Length", f"the vector of {text!r} has length {norm}")

    @invariant
    async def test_nearer_meaning_gives_a_nearer_vector(self) -> None:
        """Texts of similar meaning are nearer than unrelated ones."""
        query, near, far = await (await self.open()).embed([_NEARER, *TEXTS[:2]])
        check(_product(query, near) > _product(query, far), "Meaning", "the nearer text is not nearer")


def _numbered(count: int, *, of: str = "refund") -> list[str]:
    return [f"Text number {number} is about {of} {number * 7919}." for number in range(count)]


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> None:
    await embedder.embed(texts)


async def _one(embedder: Embedder, text: str) -> list[float]:
    vectors = await embedder.embed([text])
    check(len(vectors) == 1, "Texts", f"the text {text!r} alone got {len(vectors)} vectors")
    return list(vectors[0])


def _copied(vectors: list[list[float]]) -> list[list[float]]:
    return [list(vector) for vector in vectors]


def _alike(vectors: list[list[float]], others: list[list[float]]) -> bool:
    """Return whether the vectors are nearly equal. E1 tests exact equality."""
    pairs = [pair for both in zip(vectors, others, strict=True) for pair in zip(*both, strict=True)]
    return all(math.isclose(a, b, abs_tol=1e-3) for a, b in pairs)


def _product(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
