"""The size of a page: a list ends it after so many bytes of text, even if fewer entries are on it than were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from retain.ports import Row

PAGE_BYTES: Final = 500_000
"""Bytes of text after which a page ends. The entry with which it passes them is still on it."""


def light(limit: int, *texts: str) -> str:
    """Return the columns of a page that is read once, row by row: texts, where the row has no more than its share of bytes.

    The column `page_light` says whether it has. If all rows have, they fit into a page, and need no `sized` query, which
    reads each row several times. limit: of the page. texts: as `r.content`.
    """
    is_light = f"{text_bytes(texts)} <= {PAGE_BYTES // (limit + 1)}"
    kept = [f"CASE WHEN {is_light} THEN {text} END AS {text.rpartition('.')[2]}" for text in texts]
    return ", ".join([*kept, f"{is_light} AS page_light"])


def sized(select: str, order: str, *texts: str) -> str:
    """Return a query of a page with the rows that fit. select: ends with its LIMIT, of one row more than the page has.

    order: of its rows. texts: its columns that may be large.
    """
    size = text_bytes(texts)
    return (
        f"SELECT * FROM (SELECT *, COUNT(*) OVER () AS page_rows, SUM({size}) OVER (ORDER BY {order}) - ({size})"  # noqa: S608
        f" AS page_before FROM ({select})) WHERE page_before < {PAGE_BYTES} ORDER BY {order}"
    )


def cut(rows: Sequence[Row], limit: int) -> tuple[Sequence[Row], bool]:
    """Return the rows of a page that a `sized` query answered, and whether there are more."""
    shown = rows[:limit]
    return shown, bool(rows) and int(rows[0]["page_rows"]) > len(shown)


def text_bytes(texts: Sequence[str]) -> str:
    """Return the bytes of a row's texts, as SQL."""
    return " + ".join(f"COALESCE(length(CAST({text} AS BLOB)), 0)" for text in texts)
