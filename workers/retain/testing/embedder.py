"""The conformance suite of `Embedder`: E1 to E3, and what else Retain's recall relies on."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from retain.models.embedding import Embedder
from retain.testing.suite import Suite, check, invariant

TEXTS = ("Refund approved for sara@example.com", "It rained in Oslo all week.", "", "Refund declined", "   \n")
_NEARER = "money back for the customer"


class EmbedderSuite(Suite):
    """The tests of an `Embedder`. Name the subclass `Test…`, override `open` and `open_failing`, and pytest runs them."""

    async def open(self) -> Embedder:
        """Return the embedder."""
        raise NotImplementedError("override this to return your embedder")

    async def open_failing(self) -> Embedder:
        """Return one that cannot answer: its server is down, or its table cannot be read. E3 says what it must do."""
        raise NotImplementedError("override this to return an embedder that fails")

    @classmethod
    def of(
        cls, open_embedder: Callable[[], Awaitable[Embedder]], open_failing: Callable[[], Awaitable[Embedder]]
    ) -> EmbedderSuite:
        """Return the suite of the embedders that these functions open, for `cases`."""
        suite = cls()
        setattr(suite, "open", open_embedder)  # noqa: B010 -- the type checker sees a method
        setattr(suite, "open_failing", open_failing)  # noqa: B010
        return suite

    @invariant
    async def test_e1_equal_input_gives_equal_output(self) -> None:
        """A vector depends only on its text and the model: not on the call, its neighbours, its position, or the object."""
        embedder = await self.open()
        together = _copied(await embedder.embed(TEXTS))
        check(_copied(await embedder.embed(TEXTS)) == together, "E1", "the same call gave other vectors")
        check(_copied(await embedder.embed(TEXTS[::-1])) == together[::-1], "E1", "a vector depends on its position")
        alone = [list((await embedder.embed([text]))[0]) for text in TEXTS]
        check(alone == together, "E1", "a vector depends on its neighbours")
        check(_copied(await (await self.open()).embed(TEXTS)) == together, "E1", "another embedder gave other vectors")

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

    @invariant
    async def test_each_text_gets_one_vector_of_the_stated_length(self) -> None:
        """Each text gets one vector of `dimensions` numbers, in order; no texts get no vectors."""
        embedder = await self.open()
        lengths = [len(vector) for vector in await embedder.embed(TEXTS)]
        check(lengths == [embedder.dimensions] * len(TEXTS), "Embedder", f"the vectors have the lengths {lengths}")
        check(await embedder.embed([]) == [], "Embedder", "an empty list of texts has vectors")

    @invariant
    async def test_vectors_have_length_one_and_blank_texts_are_all_zeros(self) -> None:
        """Vectors are normalised, so that a dot product is a cosine."""
        embedder = await self.open()
        for text, vector in zip(TEXTS, await embedder.embed(TEXTS), strict=True):
            norm = math.hypot(*vector)
            expected = 1.0 if text.strip() else 0.0
            check(math.isclose(norm, expected, abs_tol=1e-6), "Embedder", f"the vector of {text!r} has length {norm}")

    @invariant
    async def test_nearer_meaning_gives_a_nearer_vector(self) -> None:
        """Texts of similar meaning are nearer than unrelated ones."""
        query, near, far = await (await self.open()).embed([_NEARER, *TEXTS[:2]])
        check(_product(query, near) > _product(query, far), "Embedder", "the nearer text is not nearer")


def _copied(vectors: list[list[float]]) -> list[list[float]]:
    return [list(vector) for vector in vectors]


def _alike(vectors: list[list[float]], others: list[list[float]]) -> bool:
    """Return whether the vectors are nearly equal. E1 tests exact equality."""
    pairs = [pair for both in zip(vectors, others, strict=True) for pair in zip(*both, strict=True)]
    return all(math.isclose(a, b, abs_tol=1e-3) for a, b in pairs)


def _product(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
