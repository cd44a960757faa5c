"""One statement for many rows: what costs a statement for each row costs one for all of them.

The rows travel as one value of JSON, which a statement reads with `json_each`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from retain.ports import SqlValue, Statement

LISTED_BYTES: Final = 1_000_000
"""Most bytes of JSON of one statement, unless one row alone has more: D1 takes 2 MB for a value."""


def listed(statements: Sequence[Statement], forms: Mapping[str, str]) -> list[Statement]:
    """Return the statements, those with the same text as one for all their rows, where the first of them was.

    forms: the text for one row, and the one for a JSON list of rows, each a list of the first one's values. Texts that are
    not in it stay as they are, so order must matter only between those that are.
    """
    rows: dict[str, list[tuple[SqlValue, ...]]] = {}
    for text, values in statements:
        if text in forms:
            rows.setdefault(text, []).append(values)
    made: list[Statement] = []
    seen: set[str] = set()
    for text, values in statements:
        if len(rows.get(text, ())) < 2:
            made.append((text, values))
        elif text not in seen:
            seen.add(text)
            made += [(forms[text], (part,)) for part in _parts(rows[text])]
    return made


def _parts(rows: Sequence[Sequence[SqlValue]]) -> list[str]:
    """Return the rows as JSON, in parts of bounded size."""
    parts: list[list[str]] = [[]]
    size = 0
    for row in rows:
        text = json.dumps(row, ensure_ascii=False)
        length = len(text.encode("utf-8", "surrogatepass")) + 1
        if parts[-1] and size + length > LISTED_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(text)
        size += length
    return [f"[{','.join(part)}]" for part in parts]
