"""Find the words in files that the word list of CONTRIBUTING.md forbids.

    python -m tests.docs.words [PATH…]

prints each offence with its file and line, and counts per file and per phrase. Without a path it reads the whole project.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.prose import Passage, names, passages
from tests.docs.word_list import NAMES, PHRASES
from tools.paths import ROOT, project_files


@dataclass(frozen=True, order=True)
class Offence:
    """A forbidden word in a file. line: from 1. excerpt: the words around it."""

    path: str
    line: int
    instead: str
    write: str
    excerpt: str

    def __str__(self) -> str:
        """Return it as a compiler would print it."""
        return f"{self.path}:{self.line}: {self.instead} → {self.write}: {self.excerpt}"


_LISTED_IN = "CONTRIBUTING.md"
"""The page whose table names the words."""


def offences(paths: Iterable[Path]) -> list[Offence]:
    """Return the forbidden words in these files, in the order of files and lines."""
    return sorted(offence for path in paths for offence in _of_file(path))


def _of_file(path: Path) -> Iterator[Offence]:
    where = path.resolve().relative_to(ROOT).as_posix()
    for passage in map(_but_the_table, passages(path)) if where == _LISTED_IN else passages(path):
        for phrase in PHRASES:
            for match in phrase.found(passage.text):
                line = passage.line + passage.text.count("\n", 0, match.start())
                around = passage.text[max(0, match.start() - 40) : match.end() + 40]
                yield Offence(where, line, phrase.instead, phrase.write, " ".join(around.split()))
    for name in names(path):
        for word, better in NAMES.items():
            if not name.text.startswith("test_") and f"_{word}_" in f"_{name.text.lower()}_":
                yield Offence(where, name.line, word, better, f"the name {name.text}")


def _but_the_table(passage: Passage) -> Passage:
    return Passage(passage.line, "\n".join("" if line.startswith("|") else line for line in passage.text.split("\n")))


def main(arguments: list[str]) -> int:
    """Print the offences of files and folders; return 1 when there are any."""
    wanted = [Path(argument).resolve() for argument in arguments] or [ROOT]
    found = offences(path for path in project_files() if any(path.is_relative_to(one) for one in wanted))
    for offence in found:
        print(offence)  # noqa: T201
    for title, counts in (
        ("per file", Counter(offence.path for offence in found)),
        ("per phrase", Counter(offence.instead for offence in found)),
    ):
        print(f"\n{len(found)} {title}")  # noqa: T201
        for name, count in counts.most_common():
            print(f"{count:6} {name}")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
