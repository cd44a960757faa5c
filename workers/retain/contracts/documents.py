"""Documents as a vector memory stores and compares them: checked, normalised, and ranked by cosine similarity.

Embeddings are stored normalised, as 32-bit floats, so a score is one dot product.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import cast

from retain.contracts.opaque import MAX_PIECE_BYTES, opaque_text
from retain.contracts.vectors import RetrievedDocument, VectorDocument
from retain.errors import InvalidInput, LimitExceeded, Misconfigured
from retain.limits.storage import utf8_bytes
from retain.limits.vectorize import check_vector
from retain.ports import Vector

MAX_ID_BYTES = 512
"""Longest id of a document. The vector index does not see it: vectors have their own ids."""

# `math.sumprod` came with Python 3.12.
_sumprod = cast("Callable[[Iterable[float], Iterable[float]], float] | None", getattr(math, "sumprod", None))


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document ready to be stored. text: content and metadata as a JSON list. embedding: normalised, by `model`."""

    id: str
    text: str
    embedding: array[float]
    model: str = ""


def prepared(documents: Sequence[VectorDocument], dimensions: int, model: str = "") -> list[PreparedDocument]:
    """Return the documents as they are stored, each of them checked. model: kept with each, if the backend keeps it.

    Raises: InvalidInput (codes `vector_dimensions`, `vector_not_finite`, `vector_is_zero`; `invalid_document` with
        `index`; `unsupported_value`); LimitExceeded (code `vector_document_too_large`).
    """
    return [_prepared(document, index, dimensions, model) for index, document in enumerate(documents)]


def check_model(found: str, expected: str) -> None:
    """Check that a stored document is of the model whose vectors are compared. found: "" if it was stored without a name.

    Raises: Misconfigured (code `vector_model_changed`).
    """
    if found not in ("", expected):
        raise Misconfigured(
            f"the namespace holds vectors of the model {found!r}, not of {expected!r}",
            code="vector_model_changed",
            expected=expected,
            found=found,
        )


def _prepared(document: VectorDocument, index: int, dimensions: int, model: str) -> PreparedDocument:
    if (
        not isinstance(document.id, str)
        or not document.id
        or "\0" in document.id
        or not isinstance(document.content, str)
    ):
        raise InvalidInput(
            f"document {index} needs an id without NUL, and content", code="invalid_document", index=index
        )
    try:
        text = opaque_text([document.content, dict(document.metadata)])
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"document {index} cannot be stored: {error}", code="invalid_document", index=index
        ) from error
    for size, limit in ((utf8_bytes(document.id), MAX_ID_BYTES), (utf8_bytes(text), MAX_PIECE_BYTES)):
        if size > limit:
            raise LimitExceeded(
                f"document {index} has {size} bytes where at most {limit} are allowed",
                code="vector_document_too_large",
                limit_bytes=limit,
                index=index,
            )
    return PreparedDocument(document.id, text, array("f", normalised(document.embedding, dimensions)), model)


def normalised(embedding: Vector, dimensions: int) -> list[float]:
    """Return the vector scaled to length one. Raises: InvalidInput (codes as `prepared`)."""
    check_vector(embedding, dimensions)
    norm = math.hypot(*embedding)
    return [value / norm for value in embedding]


def check_top_k(top_k: int, most: int | None = None) -> None:
    """Check how many documents are wanted. Raises: InvalidInput; LimitExceeded."""
    if top_k < 1:
        raise InvalidInput("top_k must be at least 1", code="vector_top_k")
    if most is not None and top_k > most:
        raise LimitExceeded(f"top_k is {top_k}, at most {most} is allowed", code="vector_top_k_too_large", limit=most)


def similarity(query: Sequence[float], embedding: array[float]) -> float:
    """Return the cosine of two normalised vectors, within [-1, 1]."""
    product = _sumprod(query, embedding) if _sumprod else sum(map(mul, query, embedding))
    return max(-1.0, min(1.0, product))


def best(found: Iterable[RetrievedDocument], top_k: int, threshold: float | None) -> list[RetrievedDocument]:
    """Return the top_k documents with scores above the threshold: highest first, ties by id."""
    over = [one for one in found if threshold is None or one.score > threshold]
    return sorted(over, key=lambda one: (-one.score, one.id))[:top_k]
