"""Texts of others in a terminal: what would move its cursor, change its title or reorder its line is shown as an escape."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime

from rich.cells import cell_len, set_cell_size

_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SEPARATORS = (0x2028, 0x2029)
_SURROGATES = range(0xD800, 0xE000)
_SHOWN = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (*_CONTROLS, *_DIRECTIONS, *_SEPARATORS, *_SURROGATES)
} | {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
_SHOWN_OVER_LINES = {code: shown for code, shown in _SHOWN.items() if code not in (ord("\n"), ord("\t"))}
_LEAST_WIDTH = 20


def one_line(text: str) -> str:
    """Return a text on one line, with control characters, marks of direction and lone surrogates as escapes."""
    return text.translate(_SHOWN)


def over_lines(text: str) -> str:
    """Return a text with its line feeds and tabs, and other control characters as escapes."""
    return text.translate(_SHOWN_OVER_LINES)


def width() -> int | None:
    """Return how many cells a line of the terminal has, or None when the output goes elsewhere."""
    return max(_LEAST_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def cut(line: str, cells: int | None) -> str:
    """Return a line of at most so many cells: characters of two cells count as two. None: the whole line."""
    if cells is None or cell_len(line) <= cells:
        return line
    return set_cell_size(line, cells - 1).rstrip() + "…"


def moment(at_ms: int | None) -> str:
    """Return a time in UTC, or a hyphen when there is none."""
    return "-" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"
