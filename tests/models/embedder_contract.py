"""What every Embedder keeps to, whichever model is behind it (invariants E1 to E3 of the port)."""

from __future__ import annotations

import math

from retain.models.embedding import Embedder

TEXTS = ["Refund approved for sara@example.com", "It rained in Oslo all week.", "", "Refund declined", "   \n"]


async def check_each_text_gets_one_vector_of_the_stated_length(embedder: Embedder) -> None:
    vectors = await embedder.embed(TEXTS)
    assert [len(vector) for vector in vectors] == [embedder.dimensions] * len(TEXTS)


async def check_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert await embedder.embed([]) == []


async def check_vectors_have_length_one_and_blank_texts_are_all_zeros(embedder: Embedder) -> None:
    for text, vector in zip(TEXTS, await embedder.embed(TEXTS), strict=True):
        assert math.isclose(math.hypot(*vector), 1.0 if text.strip() else 0.0, abs_tol=1e-6), text


async def check_e1_equal_input_gives_equal_output(embedder: Embedder) -> None:
    assert await embedder.embed(TEXTS) == await embedder.embed(TEXTS)


async def check_e1_a_vector_depends_neither_on_its_neighbours_nor_on_its_place(embedder: Embedder) -> None:
    together = await embedder.embed(TEXTS)
    backwards = await embedder.embed(TEXTS[::-1])
    alone = [(await embedder.embed([text]))[0] for text in TEXTS]
    assert together == alone == backwards[::-1]


async def check_e2_the_caller_may_change_what_it_was_given(embedder: Embedder) -> None:
    first = await embedder.embed(TEXTS[:1])
    kept = [list(vector) for vector in first]
    first[0].clear()
    assert await embedder.embed(TEXTS[:1]) == kept


async def check_nearer_meaning_gives_a_nearer_vector(embedder: Embedder) -> None:
    query, near, far = await embedder.embed(["money back for the customer", *TEXTS[:2]])
    assert _dot(query, near) > _dot(query, far)


def _dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
