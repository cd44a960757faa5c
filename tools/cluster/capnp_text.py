"""Cap'n Proto's text format, in which workerd reads its configuration.

Source: https://capnproto.org/language.html#constants
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = "str | bool | int | Embedded | Mapping[str, Value] | Sequence[Value]"


@dataclass(frozen=True)
class Embedded:
    """The content of a file, which workerd reads itself. path: relative to the configuration."""

    path: str


def text_of(value: Value) -> str:
    """Return a value as text: a mapping is a struct, a sequence a list."""
    match value:
        case Embedded(path):
            return f"embed {_quoted(path)}"
        case bool():
            return str(value).lower()
        case str():
            return _quoted(value)
        case int():
            return str(value)
        case Mapping():
            return "(" + ", ".join(f"{name} = {text_of(each)}" for name, each in value.items()) + ")"
    return "[" + ",\n".join(text_of(each) for each in value) + "]"


def _quoted(text: str) -> str:
    """Return a text in quotes. Its letters stay as they are: the format has no escape of JSON's for those beyond ASCII."""
    return json.dumps(text, ensure_ascii=False)
