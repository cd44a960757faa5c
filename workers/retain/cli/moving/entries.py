"""The entries of an exported file, and the values in them that several products write alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from retain.errors import InvalidInput
from retain.errors.codes import ForeignCode
from retain.json_text import read_json

Entry = Mapping[str, Any]


def read_entries(text: str, members: Sequence[str]) -> Iterator[tuple[int, Entry]]:
    """Yield the entries of a file, numbered from 1: a JSON array, an object that has one as a member, or a line each.

    members: names that the member may have. Raises: InvalidInput for any other text.
    """
    try:
        value = read_json(text)
    except ValueError:
        found = [_line(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    else:
        found = _listed(value, members)
    for number, entry in enumerate(found, start=1):
        if not isinstance(entry, dict):
            raise invalid(number, "it is not a JSON object")
        yield number, entry


def invalid(number: int, problem: str) -> InvalidInput:
    """Return the error that names an entry of the file."""
    return InvalidInput(f"entry {number}: {problem}", code=ForeignCode("invalid_export"))


def text_in(entry: Entry, name: str) -> str | None:
    """Return a member that is a text with something in it, None for any other."""
    value = entry.get(name)
    return value if isinstance(value, str) and value.strip() else None


def moment_in(entry: Entry, name: str) -> int | None:
    """Return a time of ISO 8601 in epoch milliseconds, in UTC unless it says otherwise; None when there is none.

    None is also a time of the year 1, with which programs in Go write that there is none. One before 1970 is 0: the earliest
    that a memory can have.
    Raises: ValueError for any other text.
    """
    value = entry.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ValueError(f"its {name} is not a time of ISO 8601")
    try:
        at = datetime.fromisoformat(value)
        if at.year == 1:
            return None
        return max(0, int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"its {name} is not a time of ISO 8601") from error


def present(entry: Entry, names: Sequence[str]) -> dict[str, Any]:
    """Return the named members that say something."""
    return {name: entry[name] for name in names if entry.get(name) not in (None, "", [], {})}


def _line(number: int, line: str) -> object:
    try:
        return read_json(line)
    except ValueError as error:
        raise InvalidInput(
            f"the file is neither JSON nor JSON lines: line {number} is not JSON", code=ForeignCode("invalid_export")
        ) from error


def _listed(value: object, members: Sequence[str]) -> list[object]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for name in members:
            if isinstance(value.get(name), list):
                found: list[object] = value[name]
                return found
    if isinstance(value, dict) and not any(name in value for name in members):
        return [value]  # a file of one line
    raise InvalidInput("the file has no list of entries", code=ForeignCode("invalid_export"))
