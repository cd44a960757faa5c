"""Write what each test of the published suites catches into docs/conformance.md, or check that the page is up to date.

    python -m tests.contracts.caught [--write]

Only the text between the two markers is generated; the prose around it is kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from retain.testing import ChatMemorySuite, EmbedderSuite, Suite, VectorMemorySuite
from tests.contracts.broken import BROKEN
from tools.paths import ROOT

PAGE = ROOT / "docs" / "conformance.md"
BEGIN = "<!-- caught: written by `python -m tests.contracts.caught --write` -->\n"
END = "<!-- end of what is caught -->\n"
SUITES: dict[str, type[Suite]] = {
    "ChatMemory": ChatMemorySuite,
    "VectorMemory": VectorMemorySuite,
    "Embedder": EmbedderSuite,
}


def written(page: str) -> str:
    """Return the page with the tests and the backends that each of them catches."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError("the page has no pair of markers")
    return f"{before}{BEGIN}\n" + "\n".join(_sections()) + f"\n{END}{after}"


def _sections() -> Iterator[str]:
    yield f"{len(BROKEN)} broken backends.\n"
    for contract, suite in SUITES.items():
        yield f"### {contract}\n"
        yield "| test | what it requires | broken backends that it catches |"
        yield "|---|---|---|"
        for name in suite.names():
            sentences = [broken.what for broken in BROKEN if broken.caught_by == name and broken.suite is suite]
            yield f"| `{name}` | {_first_line(suite, name)} | {'<br>'.join(sentences)} |"
        yield ""


def _first_line(suite: type[Suite], name: str) -> str:
    return (getattr(suite, name).__doc__ or "").splitlines()[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the page. Returns 1 when the page is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tests.contracts.caught", description="what the suites catch")
    parser.add_argument("--write", action="store_true", help="write the page instead of checking it")
    options = parser.parse_args(arguments)
    page = PAGE.read_text()
    new = written(page)
    if options.write:
        PAGE.write_text(new)
    elif new != page:
        sys.stderr.write("docs/conformance.md is out of date: run python -m tests.contracts.caught --write\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
