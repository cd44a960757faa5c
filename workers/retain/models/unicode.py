"""Valid Unicode: JSON can contain one half of a surrogate pair, which is not text and which servers and databases refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from retain.json_text import Json

_Value = TypeVar("_Value", bound=Json)

REPLACEMENT = "\ufffd"


def valid_text(text: str) -> str:
    """Return the text with pairs of surrogates joined, and each lone one replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def valid_json(value: _Value) -> _Value:
    """Return the value with every text in it valid, names included."""
    return cast("_Value", _valid(value))


def _valid(value: Json) -> Json:
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, Mapping):
        return {valid_text(name): _valid(inner) for name, inner in value.items()}
    if isinstance(value, Sequence):
        return [_valid(inner) for inner in value]
    return value


def is_high_surrogate(character: str) -> bool:
    """Return whether the character is the first half of a pair."""
    return "\ud800" <= character <= "\udbff"
