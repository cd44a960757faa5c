"""JSON as a type, and the one reader of JSON texts: nesting is refused before it can do harm.

In Pyodide a text nested some thousands of levels deep overflows WebAssembly's stack inside the JSON decoder. That does
not raise RecursionError: it ends the isolate, with every request in it. The linter therefore forbids `json.loads` and its
like everywhere else (`TID251` in pyproject.toml).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
else:
    # A type checker alone can resolve an alias that names itself: `get_type_hints` and pydantic find any value here.
    Json = object
"""A JSON value. A field of a pydantic model is checked when it is declared as pydantic's `JsonValue` instead."""
JsonObject: TypeAlias = Mapping[str, Json]
"""A JSON object."""
OnPairs: TypeAlias = Callable[[list[tuple[str, Any]]], object]
"""Makes what stands for an object of the fields that it has, in order, also of those with one name."""

MAX_NESTING = 64
"""Deepest nesting of lists and objects that is read."""

_SUSPECT = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]|NaN|Infinity|[eE]\+?[0-9]{3}|[0-9]{309}")
"""What every text has that Python reads as JSON although it holds no valid text or number; others may have it, too."""

# Each branch matches whatever it begins with, and gives nothing back: the time is linear in the text, also for a string
# that never ends.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_NOT_BRACKETS = re.compile(rf'{_STRING}|[^\[\]{{}}"]++', re.DOTALL)
_STRING_OR_BRACKET = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)


class NestedTooDeeply(ValueError):
    """Lists and objects are nested deeper than is read."""

    def __init__(self, levels: int) -> None:
        super().__init__(f"nested deeper than {levels} levels")


class RepeatedName(ValueError):
    """An object has two members of one name."""

    def __init__(self) -> None:
        super().__init__("an object has two members of one name")


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these members. Raises: RepeatedName: of two of one name, some readers take the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedName
    return found


def read_json(text: str, *, levels: int = MAX_NESTING, on_pairs: OnPairs | None = None) -> object:
    """Return the value of a JSON text from outside.

    levels: of nesting that are read; more for a text around others that were checked.
    on_pairs: called for each object, innermost first, instead of making a dictionary.
    Raises: NestedTooDeeply; another ValueError when it is not JSON.
    """
    check_nesting(text, levels)
    return json.loads(text, object_pairs_hook=on_pairs)


def read_strict_json(text: str) -> object:
    """Return the value of a JSON text from outside, all of which a store can hold.

    Raises: as `read_json`, also for NaN and infinite numbers, and for a text that is not Unicode: half of a surrogate pair;
        RepeatedName. Source: https://www.rfc-editor.org/rfc/rfc7493#section-2.3
    """
    value = read_json(text, on_pairs=distinct)
    check_storable(text)
    return value


def check_storable(text: str) -> None:
    """Check that a store can hold what a JSON text has.

    Raises: ValueError for NaN and infinite numbers; UnicodeEncodeError for half of a surrogate pair.
    """
    if _SUSPECT.search(text) is not None:
        as_others_read = json.loads(text, parse_int=float)  # an integer beyond every double is infinite to them
        json.dumps(as_others_read, ensure_ascii=False, allow_nan=False).encode()


def read_json_as_written(text: str) -> object:
    """Return the value of a JSON text from outside with nothing lost: numbers as their texts, objects as lists of pairs.

    So `1.50` does not become 1.5, and of two members with one name both are there. Raises: as `read_json`.
    """
    check_nesting(text)
    return json.loads(text, object_pairs_hook=list, parse_int=str, parse_float=str, parse_constant=str)


def read_json_within(text: str, start: int) -> tuple[object, int]:
    """Return the list or object that begins at a position of a text, and the position after it.

    Raises: NestedTooDeeply; another ValueError when no list or object in JSON begins there.
    """
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text, start):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > MAX_NESTING:
            raise NestedTooDeeply(MAX_NESTING)
        if depth <= 0:
            return json.loads(text[start : match.end()]), match.end()
    raise ValueError("the text ends within a value")


def read_own_json(text: str | bytes) -> Any:
    """Return the value of a JSON text that this program wrote: a row, an envelope, a file of its own.

    Its nesting is not checked, because reading it is on the path of every request: what came from outside was checked
    when it was read, and `check_nested` checks a value before it is written. Raises: ValueError when it is not JSON.
    """
    return json.loads(text)


def check_nesting(text: str, levels: int = MAX_NESTING) -> None:
    """Refuse a JSON text that another reader would read. Raises: NestedTooDeeply."""
    # Few brackets cannot nest deeply, so most texts need no scan.
    if text.count("[") + text.count("{") <= levels:
        return
    depth = 0
    for bracket in _NOT_BRACKETS.sub("", text):
        depth += 1 if bracket in "[{" else -1
        if depth > levels:
            raise NestedTooDeeply(levels)


def check_nested(value: object, levels: int = MAX_NESTING) -> None:
    """Refuse a value of the program's own, before it is written as JSON. Raises: NestedTooDeeply, also for a circle."""
    level = _holders([value])
    for _ in range(levels):
        if not level:
            return
        level = _holders(part for held in level for part in _parts(held))
    if level:
        raise NestedTooDeeply(levels)


def _holders(values: Iterable[object]) -> Iterable[object]:
    """Return the lists and objects among the values, each once."""
    return {id(value): value for value in values if isinstance(value, Mapping | list | tuple)}.values()


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()
