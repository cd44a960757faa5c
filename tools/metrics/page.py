"""The page that shows the measures of two states of the project side by side, and its picture."""

from __future__ import annotations

import re

from tools.metrics.drawing import as_svg, as_text
from tools.metrics.imports import package_graph
from tools.metrics.measures import measures_of
from tools.metrics.source import SourceTree, at_commit, working_tree
from tools.metrics.testing import contract_cases, counted_tests
from tools.paths import ROOT

BEFORE = "6d0f9d5"
"""The commit before the code got its present packages."""

PAGE = ROOT / "docs" / "metrics.md"
PICTURE = ROOT / "docs" / "imports.svg"
TESTING = ROOT / "docs" / "testing.md"

_COUNTS = re.compile(r"(?<=<!-- counts -->\n).*?(?=<!-- end of counts -->)", re.DOTALL)

_TEXT = """# Measures of the code

`make metrics-page` wrote this page with `tools/metrics/`; `make metrics` prints the same for the checkout, and
`make metrics AT=v0.1.0` for any commit. Measured are `workers/` and `durable_objects/`, the code that runs in production;
`__init__.py` files do not count as files. The laws that these figures must keep are in `tests/metrics/test_laws.py`.

| | `{before}` | now |
|---|---:|---:|
{rows}

A way through a function is a branch, a loop, a handler, an `assert`, a condition in a comprehension, or an operand of `and`
or `or`. A class name has two meanings when two modules define a class of that name.

## Imports between packages

![The packages by floor, with arrows for imports](imports.svg)

Every import runs down. An arrow is left out when a longer path implies it.

```text
{graph}
```
"""


def table(columns: list[SourceTree]) -> list[list[str]]:
    """Return a row for each measure: its name, then its value in each tree."""
    measured = [measures_of(tree) for tree in columns]
    return [[row[0].name, *(measure.value for measure in row)] for row in zip(*measured, strict=True)]


def write_page() -> None:
    """Rewrite the page, its picture and the counts of tests, from the commit `BEFORE` and the working tree."""
    now = working_tree()
    rows = "\n".join(f"| {' | '.join(row)} |" for row in table([at_commit(BEFORE), now]))
    graph = package_graph(now)
    PAGE.write_text(_TEXT.format(before=BEFORE, rows=rows, graph=as_text(graph)))
    PICTURE.write_text(as_svg(graph))
    TESTING.write_text(_COUNTS.sub(counts_of(now), TESTING.read_text()))


def counts_of(tree: SourceTree) -> str:
    """Return the table of tests, and a sentence that counts the cases of the ports' contracts."""
    rows = "".join(f"| {' | '.join(row)} |\n" for row in counted_tests(tree))
    head = (
        "| tests in | files | functions | properties | state machines | on workerd |\n|---|---:|---:|---:|---:|---:|\n"
    )
    cases = f"\nThe ports' contract suites have {contract_cases(tree)} cases, run on the host and inside workerd.\n"
    return head + rows + cases
