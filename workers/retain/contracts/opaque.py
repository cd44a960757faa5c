"""Values that are stored for the caller, uninterpreted: written as JSON, and refused unless they are read back equal."""

from __future__ import annotations

import json

from retain.json_text import MAX_NESTING, read_json
from retain.limits.storage import utf8_bytes

MAX_PIECE_BYTES = 900_000
"""Size of the largest message or document as JSON: quoted inside another JSON text, it still fits into one database
value, which has at most 2,000,000 bytes. Source: https://developers.cloudflare.com/d1/platform/limits/"""
_CHUNK_BYTES = 1_900_000


def opaque_text(value: object) -> str:
    """Return the value as compact JSON.

    Raises: ValueError for what would not be read back equal: types that JSON does not have, keys that are not strings,
        tuples, numbers that are not finite, nesting too deep to be read; InvalidInput (code `unsupported_value`) for text
        that is not Unicode.
    """
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    utf8_bytes(text)
    if not _same(read_json(text), value):
        raise ValueError("it would not be read back unchanged")
    return text


def _same(read: object, given: object) -> bool:
    """Return whether what was read equals what was given, types included: True is not 1, and 1.0 is not 1."""
    if type(read) is not type(given):
        return False
    if isinstance(read, dict) and isinstance(given, dict):
        return read.keys() == given.keys() and all(_same(value, given[key]) for key, value in read.items())
    if isinstance(read, list) and isinstance(given, list):
        return len(read) == len(given) and all(map(_same, read, given))
    return read == given


def chunked(texts: list[str]) -> list[tuple[int, str]]:
    """Return the texts as JSON arrays of strings, each with its first text's index and small enough for a bound value."""
    chunks: list[tuple[int, str]] = []
    first, size, pending = 0, 0, list[str]()
    for index, text in enumerate(texts):
        quoted = json.dumps(text, ensure_ascii=False)
        length = utf8_bytes(quoted) + 1
        if pending and size + length > _CHUNK_BYTES:
            chunks.append((first, f"[{','.join(pending)}]"))
            first, size, pending = index, 0, []
        pending.append(quoted)
        size += length
    if pending:
        chunks.append((first, f"[{','.join(pending)}]"))
    return chunks


__all__ = ["MAX_NESTING", "MAX_PIECE_BYTES", "chunked", "opaque_text"]
