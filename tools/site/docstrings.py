"""Docstrings as reStructuredText. They are written as plain text with code in single backticks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent, indent

_CODE = re.compile(r"(`[^`\n]+`)")
_SECTION = re.compile(r"^(Raises|Returns|Source|Yields):\s*", re.MULTILINE)
_ITEM = re.compile(r"^(- |\d+\. |[A-Z]{1,2}\d+\. )")


def as_rst(lines: list[str]) -> list[str]:
    """Return the lines of a docstring, escaped so that Sphinx shows them literally."""
    return "\n".join(_blocks("\n".join(lines))).splitlines()


def _blocks(text: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if block.startswith(("    ", "\t")):
            yield f"::\n\n{indent(dedent(block), '    ')}\n"
            continue
        for paragraph in _paragraphs(block):
            yield _escaped(paragraph) + "\n"


def _paragraphs(block: str) -> Iterator[str]:
    """Join the lines of each paragraph; a section or an item of a list begins one."""
    paragraph: list[str] = []
    for line in block.splitlines():
        if paragraph and (_SECTION.match(line.strip()) or _ITEM.match(line.strip())):
            yield " ".join(paragraph)
            paragraph = []
        paragraph.append(line.strip())
    yield " ".join(paragraph)


def _escaped(paragraph: str) -> str:
    section = _SECTION.match(paragraph)
    rest = paragraph[section.end() :] if section else paragraph
    parts = (f"`{part}`" if part.startswith("`") else re.sub(r"([\\*|_])", r"\\\1", part) for part in _CODE.split(rest))
    text = "".join(parts)
    return f"**{section[1]}:** {text}" if section else text
