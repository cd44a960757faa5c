"""The outcome of each mutant of a wire, kept as it is judged: a run that is interrupted can be read, and continued."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tools.mutants.mutation import Mutant
from tools.mutants.session import Judged


class Results:
    """The results of one wire in a file, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[Judged]:
        """Return what was kept. A line that an interruption left unfinished is not among it."""
        lines = self._path.read_text().splitlines(keepends=True) if self._path.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return [Judged(**{**one, "mutant": Mutant(**one["mutant"])}) for one in found]

    def replace(self, results: Iterable[Judged]) -> None:
        """Keep these instead of what was kept before."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("".join(map(_line, results)))

    def add(self, result: Judged) -> None:
        """Keep one more, at once."""
        with self._path.open("a") as file:
            file.write(_line(result))


def _line(result: Judged) -> str:
    return json.dumps(asdict(result)) + "\n"
