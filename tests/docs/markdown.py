"""What the tests read of a Markdown page: fenced blocks, code spans, links, anchors, and the rows of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.paths import ROOT, project_files

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        """The path below the root of the checkout."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text()

    @cached_property
    def prose(self) -> str:
        """The text without fenced blocks."""
        return _FENCE.sub("", self.text)

    def fences(self) -> list[tuple[str, str]]:
        """Return the fenced blocks in order, each with its language or ""."""
        return _FENCE.findall(self.text)

    def blocks(self, *languages: str) -> list[str]:
        """Return the fenced blocks in these languages, in order; all of them when none is named."""
        return [body for language, body in self.fences() if not languages or language in languages]

    def code(self) -> list[str]:
        """Return the fenced blocks and the code spans."""
        return [*self.blocks(), *_SPAN.findall(self.prose)]

    def links(self) -> list[str]:
        """Return the targets of the links."""
        return _LINK.findall(_SPAN.sub("", self.prose))

    def anchors(self) -> set[str]:
        """Return the anchors of the headings, as GitHub makes them."""
        found: set[str] = set()
        for heading in _HEADING.findall(self.prose):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
            base = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
            repeated = (f"{base}-{number}" for number in range(1, 100))
            found.add(base if base not in found else next(anchor for anchor in repeated if anchor not in found))
        return found

    def rows(self) -> Iterator[list[str]]:
        """Return the cells of the rows of every table, without header rows and rules."""
        lines = self.prose.splitlines()
        for number, line in enumerate(lines):
            follows_head = number + 1 < len(lines) and re.fullmatch(r"\|[-| :]+\|", lines[number + 1])
            if line.startswith("|") and not follows_head and not re.fullmatch(r"\|[-| :]+\|", line):
                yield [cell.strip() for cell in line.strip("|").split("|")]


def spans(text: str) -> list[str]:
    """Return the code spans of a text."""
    return _SPAN.findall(text)


def pages() -> list[Page]:
    """Return every Markdown file of the project."""
    return [Page(path) for path in project_files() if path.suffix == ".md"]


def page(name: str) -> Page:
    """Return a page by its path below the root."""
    return Page(ROOT / name)
