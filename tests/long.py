"""Which tests take long: `make test` leaves them to CI and to `make test LONG=1`, which give them the mark `long`.

`long.txt` names them, a line each. It is written from the durations of a whole run, which say how long a test takes next to
two others:

    make test LONG=1 REPORT=.cache/durations.xml
    PYTHONPATH=workers:. .venv/bin/python -m tests.long .cache/durations.xml
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from tools.paths import ROOT

LISTED = ROOT / "tests" / "long.txt"
SECONDS = 0.3
"""A test that took longer is listed."""


def long_tests() -> frozenset[str]:
    """Return the ids of the tests that take long, as pytest writes them."""
    return frozenset(LISTED.read_text("utf-8").splitlines())


def ids_in(report: Path, seconds: float = SECONDS) -> Iterator[str]:
    """Yield the ids of the tests that took longer, from a report in JUnit's format."""
    for case in ET.parse(report).iter("testcase"):
        if float(case.get("time", 0)) > seconds:
            yield f"{_place(str(case.get('classname')))}::{case.get('name')}"


def _place(name: str) -> str:
    """Return the file of a dotted name, with the class in it that the name ends with, if it does."""
    parts = name.split(".")
    of_file = max(count for count in range(1, len(parts) + 1) if (ROOT / f"{'/'.join(parts[:count])}.py").exists())
    return "::".join([f"{'/'.join(parts[:of_file])}.py", *parts[of_file:]])


def main(arguments: Sequence[str]) -> int:
    """Write the list from a report."""
    [report] = arguments
    LISTED.write_text("".join(f"{one}\n" for one in sorted(ids_in(Path(report)))), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
