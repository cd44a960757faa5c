"""Arguments that a call repeats as headers, since 2026-07-28: intermediaries route by them, and servers compare both.

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping

_MARK = "x-mcp-header"
_PREFIX = "mcp-param-"
_KINDS = ("integer", "string", "boolean")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_ENCODED = re.compile(r"=\?base64\?.*\?=")
_DEPTH = 16


def is_valid(schema: Mapping[str, object]) -> bool:
    """Return whether each mark of a tool's schema is one that clients can follow. A tool with another is not offered."""
    named: set[str] = set()
    for path, marked in _marks(schema, ()):
        name = marked[_MARK]
        if not path or not isinstance(name, str) or _TOKEN.fullmatch(name) is None or name.lower() in named:
            return False
        if marked.get("type") not in _KINDS:
            return False
        named.add(name.lower())
    return True


def headers_of(schema: Mapping[str, object], arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the headers of a call. An argument that is missing, or not a scalar, has none."""
    headers: dict[str, str] = {}
    for path, marked in _marks(schema, ()):
        value: object = arguments
        for name in path or ():
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, str | int | float):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            headers[_PREFIX + str(marked[_MARK]).lower()] = header_value(text)
    return headers


def header_value(text: str) -> str:
    """Return a text as a header's value, encoded where a header could not hold it."""
    if _PLAIN.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _marks(
    schema: object, path: tuple[str, ...] | None
) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, object]]]:
    """Yield each part of a schema with a mark, and the names that lead to it: None where more than properties do.

    The root itself has the path of no names, which is as invalid. Nothing is read below `_DEPTH` names.
    """
    if isinstance(schema, list):
        for part in schema:
            yield from _marks(part, None)
    if not isinstance(schema, Mapping) or len(path or ()) > _DEPTH:
        return
    if _MARK in schema:
        yield path, schema
    for name, part in schema.items():
        if name == "properties" and isinstance(part, Mapping):
            for inner, deeper in part.items():
                yield from _marks(deeper, None if path is None else (*path, str(inner)))
        elif name not in ("const", "default", "enum", "examples"):
            yield from _marks(part, None)
