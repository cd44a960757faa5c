"""What remote embedding models have in common: batches of texts, and a check of each returned vector."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence

from retain.errors import Misconfigured, UpstreamFailed

_LARGEST = 1e100


def checked(values: object, dimensions: int) -> list[float]:
    """Return the values as an L2-normalised vector. A zero vector stays zero.

    Raises: Misconfigured (code `embedding_dimensions`) when the length differs from the index's; UpstreamFailed (code
        `malformed_answer`) for anything except finite numbers.
    """
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise UpstreamFailed("the model's server did not answer with vectors", code="malformed_answer")
    if len(values) != dimensions:
        raise Misconfigured(
            "the model's vectors do not have the configured length",
            code="embedding_dimensions",
            expected=dimensions,
            found=len(values),
        )
    numbers = [value for value in values if isinstance(value, int | float) and abs(value) < _LARGEST]  # NaN is not
    if len(numbers) != dimensions:
        raise UpstreamFailed("the model's server answered with a value that is not a number", code="malformed_answer")
    norm = math.hypot(*numbers)
    return [value / norm for value in numbers] if norm else [0.0] * dimensions


def batches(texts: Sequence[str], *, max_texts: int, max_characters: int) -> list[list[int]]:
    """Return the positions of all texts that are not blank, in order, in groups within both limits.

    A text that alone is over `max_characters` is a group of its own.
    """
    groups: list[list[int]] = []
    room = 0
    for place, text in enumerate(texts):
        if not text.strip():
            continue
        if not groups or len(groups[-1]) == max_texts or len(text) > room:
            groups.append([])
            room = max_characters
        groups[-1].append(place)
        room -= len(text)
    return groups


async def embed_in_batches(
    texts: Sequence[str],
    embed: Callable[[list[str]], Awaitable[list[list[float]]]],
    *,
    dimensions: int,
    max_texts: int,
    max_characters: int,
) -> list[list[float]]:
    """Return one vector per text, in order, calling `embed` once per batch.

    Servers refuse blank texts, so those are not sent: their vector is all zeros.
    """
    vectors = [[0.0] * dimensions for _ in texts]
    for group in batches(texts, max_texts=max_texts, max_characters=max_characters):
        for place, vector in zip(group, await embed([texts[place] for place in group]), strict=True):
            vectors[place] = vector
    return vectors
