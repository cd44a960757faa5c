"""Limits of a record's fields. A field's limit is written once, in its annotation; `check` applies them all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol, get_args, get_type_hints, runtime_checkable

from retain.errors import InvalidInput, LimitExceeded
from retain.errors.codes import InvalidInputCode
from retain.json_text import check_nested, check_storable

MAX_CONTENT_BYTES = 64 * 1024
"""Largest content of one record, in bytes of UTF-8."""
MAX_METADATA_BYTES = 10 * 1024
"""Largest metadata of one record, in bytes of compact JSON in UTF-8.

Source: https://developers.cloudflare.com/vectorize/platform/limits/
"""
MAX_METADATA_NESTING = 32
"""Deepest nesting of one record's metadata: written into a line of an export, it is still read again."""
MAX_PART_BYTES = 512
"""Largest subject, predicate, object, conversation or speaker, in bytes."""
MAX_SPANS = 1024
"""The most spans of time in one field."""
END_OF_NUMBERS = 2**53
"""Whole numbers below it are exact in JSON and in D1. Times in epoch milliseconds must be below it."""
END_OF_DATES_MS = 253_402_300_800_000
"""The year 10000 in epoch milliseconds. A time that is formatted as a date must be below it."""


@runtime_checkable
class Limit(Protocol):
    """The limit of one field's values."""

    def check(self, name: str, value: object) -> None:
        """Raise InvalidInput or LimitExceeded for a value that the field `name` may not have."""
        ...


@dataclass(frozen=True, slots=True)
class ContentLimit:
    """Valid Unicode text of at most `MAX_CONTENT_BYTES` bytes, not only white space, and without NUL."""

    def check(self, name: str, value: object) -> None:
        """Raise as `check_content`, whose messages name the content instead of the field; InvalidInput if not text."""
        if not isinstance(value, str):
            raise InvalidInput(f"{name} must be text", code="invalid_content")
        check_content(value)


@dataclass(frozen=True, slots=True)
class MetadataLimit:
    """A JSON object of at most `MAX_METADATA_BYTES` bytes."""

    def check(self, name: str, value: object) -> None:
        """Raise InvalidInput (code `invalid_metadata`), LimitExceeded (code `metadata_too_large`)."""
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{name} must be a JSON object", code="invalid_metadata")
        try:
            check_nested(value, MAX_METADATA_NESTING)
            size = json_bytes(value)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{name} must be a JSON object", code="invalid_metadata") from error
        if size > MAX_METADATA_BYTES:
            raise LimitExceeded("the metadata is too large", code="metadata_too_large", limit_bytes=MAX_METADATA_BYTES)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of the given texts."""

    code: InvalidInputCode
    texts: tuple[str, ...]

    def check(self, name: str, value: object) -> None:
        """Raise InvalidInput for anything else."""
        if value not in self.texts:
            raise InvalidInput(f"{name} must be one of {', '.join(self.texts)}", code=self.code)


@dataclass(frozen=True, slots=True)
class PartLimit:
    """A text of 1 to `MAX_PART_BYTES` bytes."""

    code: InvalidInputCode

    def check(self, name: str, value: object) -> None:
        """Raise InvalidInput for anything else."""
        if not isinstance(value, str) or not 1 <= len(value.encode("utf-8", "surrogatepass")) <= MAX_PART_BYTES:
            raise InvalidInput(f"{name} must be a text of 1 to {MAX_PART_BYTES} bytes", code=self.code)


@dataclass(frozen=True, slots=True)
class WholeLimit:
    """A whole number from `first` to `end`, exclusive."""

    code: InvalidInputCode = "invalid_input"
    first: int = 0
    end: int = END_OF_NUMBERS

    def check(self, name: str, value: object) -> None:
        """Raise InvalidInput for anything else."""
        if not isinstance(value, int) or isinstance(value, bool) or not self.first <= value < self.end:
            raise InvalidInput(f"{name} must be a whole number from {self.first} to {self.end - 1}", code=self.code)


@dataclass(frozen=True, slots=True)
class ShareLimit:
    """A number in [0, 1]."""

    code: InvalidInputCode

    def check(self, name: str, value: object) -> None:
        """Raise InvalidInput for anything else."""
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 <= value <= 1.0:
            raise InvalidInput(f"{name} must be in [0, 1]", code=self.code)


@dataclass(frozen=True, slots=True)
class SpansLimit:
    """Spans of time in order: pairs of a time and a later or equal one, or None."""

    def check(self, name: str, value: object) -> None:
        """Raise InvalidInput for anything else."""
        times = WholeLimit(end=END_OF_NUMBERS)
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) > MAX_SPANS:
            raise InvalidInput(f"{name} must be at most {MAX_SPANS} spans of time")
        for span in value:
            if not isinstance(span, Sequence) or len(span) != 2:
                raise InvalidInput(f"{name} must be pairs of times")
            times.check(name, span[0])
            if span[1] is not None:
                times.check(name, span[1])


_FieldLimit = tuple[str, bool, Limit | None]
"""A field's name, whether it may be None, and its limit; None for a dataclass, whose own fields have limits."""
_LIMITS: dict[type[Any], tuple[_FieldLimit, ...]] = {}
"""The limits of each class checked so far, read from its annotations once."""


def check(instance: object) -> None:
    """Check a dataclass's fields, in order, and those of the dataclasses in them.

    None is always valid in a field that may be None. Raises: InvalidInput, LimitExceeded, for the first limit that is
    exceeded.
    """
    kind: type[Any] = type(instance)
    if kind not in _LIMITS:
        _LIMITS[kind] = _limits(kind)
    for name, optional, limit in _LIMITS[kind]:
        value = getattr(instance, name)
        if value is None and optional:
            continue
        if limit is None:
            check(value)
        else:
            limit.check(name, value)


def json_bytes(value: Mapping[str, object]) -> int:
    """Return how many bytes a JSON object has in UTF-8, without the space that JSON permits and without escapes.

    Raises: TypeError, ValueError for a value that is not JSON, or that no store can hold.
    """
    text = json.dumps(dict(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    check_storable(text)
    return len(text.encode())


def check_content(content: str) -> None:
    """Raise InvalidInput or LimitExceeded for content that cannot be remembered."""
    if not content.strip():
        raise InvalidInput("a memory needs content", code="empty_content")
    try:
        size = len(content.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput("content must be valid Unicode", code="invalid_content") from error
    if "\x00" in content:
        raise InvalidInput("content must not contain the character NUL", code="invalid_content")
    if size > MAX_CONTENT_BYTES:
        raise LimitExceeded("the content is too long", code="content_too_large", limit_bytes=MAX_CONTENT_BYTES)


def _limits(kind: type[Any]) -> tuple[_FieldLimit, ...]:
    """Return the limits of a dataclass's fields."""
    if not is_dataclass(kind):
        return ()
    hints = get_type_hints(kind, include_extras=True)
    found: list[_FieldLimit] = []
    for one in fields(kind):
        hint = hints[one.name]
        alternatives = [hint, *get_args(hint)]
        optional = type(None) in alternatives
        marks = [mark for part in alternatives for mark in getattr(part, "__metadata__", ())]
        limits: list[Limit | None] = [mark for mark in marks if isinstance(mark, Limit)]
        if any(isinstance(part, type) and is_dataclass(part) for part in alternatives):
            limits.append(None)
        found += [(one.name, optional, limit) for limit in limits]
    return tuple(found)
