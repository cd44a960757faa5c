"""Limits of the vector index, checked before anything is sent, so that every adapter refuses in the same words.

Source: https://developers.cloudflare.com/vectorize/platform/limits/
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from retain.errors import InvalidInput, LimitExceeded, RetainError, Unavailable
from retain.errors.codes import InvalidInputCode, LimitExceededCode
from retain.limits.vector_filter import FILTERABLE, check_filter, is_json_number
from retain.ports import MetadataFilter, MetadataValue, PropertyType, Vector, VectorEntry

MAX_DIMENSIONS: Final = 1536
MAX_VALUE: Final = 3.4028234663852886e38
"""Largest value of a vector: the largest 32-bit float."""
MAX_ID_BYTES: Final = 64
MAX_NAMESPACE_BYTES: Final = 64
MAX_METADATA_BYTES: Final = 10 * 1024
"""Largest metadata of one vector, as compact JSON."""
MAX_NAMESPACES: Final = 50_000
"""Namespaces of one index, on the paid plan; 1,000 on the free one. A tenant uses one, and another for documents."""
MAX_VECTORS: Final = 10_000_000
"""Vectors of one index."""
MAX_METADATA_INDEXES: Final = 10
"""Metadata indexes of one index. Each keeps the first 64 bytes of a value."""
MAX_UPSERT: Final = 1000
MAX_TOP_K: Final = 100
MAX_TOP_K_WITH_METADATA: Final = 20
MAX_GET_IDS: Final = 20
MAX_DELETE_IDS: Final = 1000
DELETE_IDS_PER_CALL: Final = 100
"""Most ids that Vectorize takes in one `deleteByIds`. It is not in the list of limits; the platform answers
`VECTOR_DELETE_ERROR (code = 40007): too many ids in payload; max id count is 100`."""

_PLATFORM_ERROR: Final = re.compile(r"VECTOR\w*_ERROR \(code = (\d+)\): (.*)", re.DOTALL)
_WRONG_DIMENSIONS: Final = (40006, 40012)
_TOO_MANY_REQUESTS: Final = 40041

LAG_MS = 300_000
"""For how long the platform may not show a write: it names seconds."""
GRACE_MS = 60_000
"""A vector or a debt younger than this may belong to a write that is still under way."""


def check_entries(entries: Sequence[VectorEntry], dimensions: int) -> None:
    """Check a batch to upsert into an index with these dimensions.

    Raises: LimitExceeded (codes `vector_batch_too_large`, `vector_id_too_long`, `vector_namespace_too_long`,
        `vector_metadata_too_large`); InvalidInput (codes `vector_batch_empty`, `vector_dimensions`,
        `vector_not_finite`, `vector_is_zero`, `vector_id_empty`, `vector_namespace_empty`, `invalid_metadata`,
        `unsupported_value`).
    """
    _check_count(len(entries), MAX_UPSERT, "vector_batch_too_large")
    if not entries:
        raise InvalidInput("a batch needs at least one vector", code="vector_batch_empty")
    for entry in entries:
        _check_id(entry.id)
        _check_namespace(entry.namespace)
        check_vector(entry.values, dimensions)
        _check_metadata(entry.metadata)


def check_query(
    vector: Vector,
    dimensions: int,
    *,
    namespace: str,
    criteria: MetadataFilter,
    top_k: int,
    with_metadata: bool,
    filterable: Mapping[str, PropertyType] = FILTERABLE,
) -> None:
    """Check a query of an index with these dimensions and metadata indexes.

    Raises: LimitExceeded (codes `vector_top_k_too_large`, `vector_namespace_too_long`, `vector_filter_too_large`);
        InvalidInput (codes `vector_top_k`, `vector_dimensions`, `vector_not_finite`, `vector_is_zero`,
        `vector_namespace_empty`, `unsupported_value`, `invalid_filter`).
    """
    check_vector(vector, dimensions)
    _check_namespace(namespace)
    if top_k < 1:
        raise InvalidInput("top_k must be at least 1", code="vector_top_k")
    _check_count(top_k, MAX_TOP_K_WITH_METADATA if with_metadata else MAX_TOP_K, "vector_top_k_too_large")
    check_filter(criteria, filterable)


def check_ids(ids: Sequence[str], limit: int) -> None:
    """Check ids to read (at most `MAX_GET_IDS`) or to delete (at most `MAX_DELETE_IDS`).

    Raises: LimitExceeded (codes `vector_ids_too_many`, `vector_id_too_long`); InvalidInput (codes `vector_id_empty`,
        `unsupported_value`).
    """
    _check_count(len(ids), limit, "vector_ids_too_many")
    for id_ in ids:
        _check_id(id_)


def delete_calls(ids: Sequence[str]) -> list[list[str]]:
    """Return the ids in one list per `deleteByIds` call; one empty list when there are no ids."""
    return [list(ids[at : at + DELETE_IDS_PER_CALL]) for at in range(0, max(len(ids), 1), DELETE_IDS_PER_CALL)]


def platform_error(text: str) -> RetainError:
    """Return the error that an error text of the Vectorize binding means to the caller.

    Only what the platform refuses for its content is for the caller to fix; anything else may succeed on a retry.
    Source: https://github.com/cloudflare/workerd/blob/main/src/cloudflare/internal/vectorize-api.ts (the texts' form)
    """
    found = _PLATFORM_ERROR.search(text)
    code = int(found[1]) if found else None
    if found is None or code is None or code == _TOO_MANY_REQUESTS or not 40000 <= code < 50000:
        return Unavailable("the vector index failed", code="vector_index_unavailable", platform_code=code)
    reason: InvalidInputCode = "vector_dimensions" if code in _WRONG_DIMENSIONS else "vector_index_refused"
    return InvalidInput(f"the vector index refused: {found[2]}", code=reason, platform_code=code)


def check_vector(values: Vector, dimensions: int) -> None:
    """Check a vector of an index with these dimensions.

    Raises: InvalidInput (codes `vector_dimensions`, `vector_not_finite`, `vector_is_zero`).
    """
    if len(values) != dimensions:
        raise InvalidInput(
            f"the vector has {len(values)} dimensions, the index has {dimensions}",
            code="vector_dimensions",
            expected=dimensions,
            found=len(values),
        )
    if not all(abs(value) <= MAX_VALUE for value in values):  # false for NaN
        raise InvalidInput("the vector holds a value that is not a finite 32-bit float", code="vector_not_finite")
    if not any(values):
        raise InvalidInput("a vector of zeros has no direction, and so no similarity", code="vector_is_zero")


def _check_id(id_: str) -> None:
    if not id_:
        raise InvalidInput("a vector's id must not be empty", code="vector_id_empty")
    _check_size("id", id_, MAX_ID_BYTES, "vector_id_too_long")


def _check_namespace(namespace: str) -> None:
    if not namespace:
        raise InvalidInput("a vector's namespace must not be empty", code="vector_namespace_empty")
    _check_size("namespace", namespace, MAX_NAMESPACE_BYTES, "vector_namespace_too_long")


def _check_size(what: str, text: str, limit_bytes: int, code: LimitExceededCode) -> None:
    size = _utf8_bytes(text)
    if size > limit_bytes:
        raise LimitExceeded(
            f"a vector's {what} has {size} bytes, at most {limit_bytes} are allowed", code=code, limit_bytes=limit_bytes
        )


def _check_metadata(metadata: Mapping[str, MetadataValue]) -> None:
    for key, value in metadata.items():
        # Source: https://developers.cloudflare.com/vectorize/best-practices/insert-vectors/#metadata
        if not key or key.startswith("$") or "." in key or '"' in key:
            raise InvalidInput(f"{key!r} is not allowed as a key of metadata", code="invalid_metadata", key=key)
        if not isinstance(value, str) and not is_json_number(value) and not isinstance(value, bool):
            raise InvalidInput(f"metadata {key!r} is not a text, number or boolean", code="invalid_metadata", key=key)
    size = _utf8_bytes(json.dumps(dict(metadata), separators=(",", ":"), ensure_ascii=False))
    if size > MAX_METADATA_BYTES:
        raise LimitExceeded(
            f"the metadata has {size} bytes as JSON, at most {MAX_METADATA_BYTES} are allowed",
            code="vector_metadata_too_large",
            limit_bytes=MAX_METADATA_BYTES,
        )


def _check_count(count: int, limit: int, code: LimitExceededCode) -> None:
    if count > limit:
        raise LimitExceeded(f"{count} are too many: at most {limit} are allowed", code=code, limit=limit)


def _utf8_bytes(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput("a text for the index is not Unicode", code="unsupported_value") from error
