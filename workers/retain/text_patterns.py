"""Regular expressions from outside: searched in linear time, by the engine that pydantic-core has from Rust.

Python's own engine backtracks: `^(a+)+$` takes longer than the universe in a text of a hundred letters. Rust's has no
look-around and no back-references, and refuses patterns that have them; its time grows with the size of the pattern times
the length of the text. A counted repetition is a copy for each time, so the size counts copies, and the product is bounded.
Source: https://docs.rs/regex/latest/regex/#untrusted-input
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

MAX_CHARACTERS = 500
"""Longest regular expression, in characters."""
MAX_COPIES = 1_000
"""Largest size of a regular expression: its characters, classes, groups and marks, each as often as it is repeated."""
MAX_STEPS = 10_000_000
"""The most that the size of a pattern times the length of a text may be."""

_PART = re.compile(r"\\.|\(\?[^()|:<>]*[:)]|\(\?P?<[^>]*>|\{(?P<low>\d+)(?:,(?P<high>\d*))?\}|.", re.DOTALL)
_SPACED = re.compile(r"\(\?[a-zA-Z-]*x")


class TextPattern:
    """A regular expression in the syntax of Rust's `regex`, which Python's `re` must understand as well.

    Unlike in Python, `$` matches at the end alone, not before a line break there.
    """

    def __init__(self, pattern: str) -> None:
        """Raises: ValueError when it is not such an expression, or too large."""
        if len(pattern) > MAX_CHARACTERS:
            raise ValueError(f"a pattern has at most {MAX_CHARACTERS} characters")
        if _SPACED.search(pattern) is not None:
            raise ValueError("a pattern cannot have the flag x")  # its comments hide brackets
        self.size = _size(pattern)
        if self.size > MAX_COPIES:
            raise ValueError(f"'{pattern[:50]}' repeats too much: it has {self.size} parts, at most {MAX_COPIES}")
        self._validator = _compiled(pattern)

    def found_in(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in the text. Raises: ValueError when the text is too long for it."""
        if self.size * len(text) > MAX_STEPS:
            raise ValueError(f"at most {MAX_STEPS // self.size} characters are searched for this pattern")
        return self._validator.isinstance_python(text)


def _compiled(pattern: str) -> SchemaValidator:
    # Imported here because most requests need no pattern, and the library is slow to import.
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        re.compile(pattern)
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True, regex_engine="rust-regex"))
    except (re.error, OverflowError, RecursionError, SchemaError) as error:
        raise ValueError(
            f"'{pattern[:50]}' is not a regular expression without look-around and back-references"
        ) from error


def _size(pattern: str) -> int:
    """Return how many parts the pattern has when each repetition is written out. Never less than it is compiled to."""
    groups = [0]
    last = 0
    in_class = False
    for match in _PART.finditer(pattern):
        part = match[0]
        if in_class:
            in_class = part != "]"
            continue
        if part.startswith("(") and not part.endswith(")"):
            groups.append(1)
            last = 0
        elif part == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif match["low"] is not None:
            times = max(1, int(match["high"] or match["low"]))
            groups[-1] += last * (times - 1)
            last *= times
        else:
            in_class = part == "["
            last = last + 1 if part in "*+?" else 1
            groups[-1] += 1
    return max(1, sum(groups))
