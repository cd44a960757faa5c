"""JSON as a type, and JSON from outside: refused before its nesting can do harm.

In Pyodide a text nested some thousands of levels deep overflows WebAssembly's stack inside the JSON decoder. That does
not raise RecursionError: it ends the isolate, with every request in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
else:
    # A type checker alone can resolve an alias that names itself: `get_type_hints` and pydantic find any value here.
    Json = object
"""A JSON value. A field of a pydantic model is checked when it is declared as pydantic's `JsonValue` instead."""
JsonObject: TypeAlias = Mapping[str, Json]
"""A JSON object."""

MAX_NESTING = 64
"""Deepest nesting of lists and objects that is read."""

_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def read_json(text: str) -> object:
    """Return the value of a JSON text.

    Raises: ValueError when it is not JSON, or nested deeper than MAX_NESTING.
    """
    # Few brackets cannot nest deeply, so most texts need no scan.
    if text.count("[") + text.count("{") > MAX_NESTING and _is_too_deep(text):
        raise ValueError(f"nested deeper than {MAX_NESTING} levels")
    return json.loads(text)


def _is_too_deep(text: str) -> bool:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth > MAX_NESTING:
                return True
        elif match[0] in "]}":
            depth -= 1
    return False
