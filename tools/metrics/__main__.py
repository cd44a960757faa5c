"""Print the measures of the code and the graph of its imports, or write the page that shows them."""

from __future__ import annotations

import argparse

from tools.metrics.drawing import as_text
from tools.metrics.imports import package_graph
from tools.metrics.page import PAGE, PICTURE, TESTING, table, write_page
from tools.metrics.source import at_commit, working_tree
from tools.paths import ROOT


def main() -> None:
    """Read the arguments and print or write."""
    parser = argparse.ArgumentParser(prog="python -m tools.metrics", description=__doc__)
    parser.add_argument("--at", metavar="COMMIT", help="measure this commit, not the working tree")
    parser.add_argument(
        "--write", action="store_true", help="write docs/metrics.md, docs/imports.svg and the counts in docs/testing.md"
    )
    arguments = parser.parse_args()
    if arguments.write:
        write_page()
        print(*(path.relative_to(ROOT) for path in (PAGE, PICTURE, TESTING)), sep="\n")
        return
    tree = at_commit(arguments.at) if arguments.at else working_tree()
    rows = table([tree])
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    print(f"\n{as_text(package_graph(tree))}")


if __name__ == "__main__":
    main()
