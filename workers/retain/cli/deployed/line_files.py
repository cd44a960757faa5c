"""Files of JSON lines, as an export writes them and an import reads them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TextIO

from retain.errors import InvalidInput
from retain.errors.codes import ForeignCode
from retain.json_text import read_json


def members_of(line: str) -> Mapping[str, object]:
    """Return the members of a line of an export, none of any other text."""
    try:
        value = read_json(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def kind_of(line: str) -> str:
    """Return the kind of a line of an export, "" for any other text."""
    return str(members_of(line).get("kind", ""))


def text_of(file: str, most: int = -1) -> str:
    """Return the text of a file, or of standard input for `-`. most: characters of standard input, all if below 0.

    Raises: InvalidInput (code `usage`).
    """
    try:
        return sys.stdin.read(most) if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def lines_of(file: str) -> Iterator[str]:
    """Yield the lines of a file of any size, or of standard input for `-`. Raises: InvalidInput (code `usage`)."""
    try:
        with nullcontext(sys.stdin) if file == "-" else Path(file).open(encoding="utf-8-sig") as stream:
            for line in stream:
                yield line.removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: str, error: Exception) -> InvalidInput:
    return InvalidInput(f"{file} cannot be read: {error}", code=ForeignCode("usage"))


def print_counts(counts: Mapping[str, int], stream: TextIO, *, as_json: bool) -> None:
    """Print how much there was of what."""
    if as_json:
        print(json.dumps(counts), file=stream)
    else:
        print(", ".join(f"{name} {count}" for name, count in counts.items() if count) or "nothing", file=stream)
