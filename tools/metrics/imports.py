"""The imports between packages: which exist, how many floors they form, and which run back."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tools.metrics.source import SourceFile, SourceTree

LIBRARY = "retain"


@dataclass(frozen=True)
class ImportGraph:
    """Nodes with their sizes in lines, and for each arrow the number of its import statements."""

    sizes: dict[str, int]
    arrows: dict[tuple[str, str], int]

    @cached_property
    def below(self) -> dict[str, frozenset[str]]:
        """For each node, every node that it imports, directly or through others."""
        direct: dict[str, set[str]] = {name: set() for name in self.sizes}
        for importer, imported in self.arrows:
            direct[importer].add(imported)

        def reached(start: str) -> frozenset[str]:
            found: set[str] = set()
            ahead = list(direct[start])
            while ahead:
                if (name := ahead.pop()) not in found:
                    found.add(name)
                    ahead += direct[name]
            return frozenset(found)

        return {name: reached(name) for name in direct}

    def back(self) -> list[tuple[str, str]]:
        """Return the arrows that close a cycle: their target imports their source."""
        return sorted((start, end) for start, end in self.arrows if start in self.below[end])

    def essential(self) -> list[tuple[str, str]]:
        """Return the arrows that no longer path implies: enough to show all dependencies when no arrow runs back."""
        return sorted(
            (start, end)
            for start, end in self.arrows
            if not any(end in self.below[via] for via in self.below[start] - {end} if (start, via) in self.arrows)
        )

    def floors(self) -> list[list[str]]:
        """Return the nodes by floor, lowest first: a node is one floor above the highest node that it imports.

        Raises:
            ValueError: an arrow runs back, so that there are no floors.
        """
        if back := self.back():
            raise ValueError(f"imports run back: {back}")
        height: dict[str, int] = {}
        for name in sorted(self.sizes, key=lambda name: len(self.below[name])):
            height[name] = 1 + max((height[lower] for lower in self.below[name]), default=-1)
        return [
            sorted(name for name in height if height[name] == floor)
            for floor in range(max(height.values(), default=-1) + 1)
        ]


def package_graph(tree: SourceTree) -> ImportGraph:
    """Return the graph of the packages: the folders and modules directly inside the library, and those around it."""
    return _graph(tree, "")


def graphs_within(tree: SourceTree) -> dict[str, ImportGraph]:
    """Return, for each folder of the library, the graph of its direct children."""
    folders = {file.module for file in tree.code if file.path.name == "__init__.py"}
    return {folder: _graph(tree, folder) for folder in sorted(folders) if folder.startswith(f"{LIBRARY}.")}


def packages_of(tree: SourceTree) -> dict[str, int]:
    """Return the lines of each package: the nodes of `package_graph`."""
    sizes: Counter[str] = Counter()
    for file in tree.code:
        if (name := _node(file.module, "")) is not None:
            sizes[name] += file.lines
    return dict(sizes)


def _graph(tree: SourceTree, folder: str) -> ImportGraph:
    known = {file.module for file in tree.code}
    sizes: Counter[str] = Counter()
    arrows: dict[tuple[str, str], int] = defaultdict(int)
    for file in tree.code:
        if (start := _node(file.module, folder)) is None:
            continue
        sizes[start] += file.lines
        for module in _imported(file, known):
            end = _node(module, folder)
            if end is not None and end != start:
                arrows[start, end] += 1
    return ImportGraph(dict(sizes), dict(arrows))


def _node(module: str, folder: str) -> str | None:
    """Return the child of a folder that contains a module; without a folder, the package."""
    if folder:
        inner = module.removeprefix(f"{folder}.")
        return inner.partition(".")[0] if inner != module else None
    first, _, inner = module.partition(".")
    return inner.partition(".")[0] or None if first == LIBRARY else first


def _imported(file: SourceFile, known: set[str]) -> Iterator[str]:
    """Return the modules of the tree that a file imports, including imports in functions and for types."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            names = [f"{node.module}.{name.name}" for name in node.names]
            yield from (name if name in known else node.module for name in names)
