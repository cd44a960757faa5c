"""The project's rules that its measures must keep: sizes, one meaning per class name, imports in one direction."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.metrics.imports import ImportGraph, graphs_within, package_graph
from tools.metrics.measures import Spread, functions_of, largest_package, shared_class_names, untyped_mappings
from tools.metrics.source import SourceTree, working_tree

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_MODULES = 14
MAX_MODULES_OF = {"workers/retain": 16}
"""Folders with a limit of their own. The library's top folder holds what every package imports, one noun per module."""
MAX_SHARE = 0.2
MAX_UNTYPED = 3
"""Mappings of `Any`, per 1,000 lines."""

TWO_MEANINGS: dict[str, str] = {}
"""Class names that two modules may both define, each with the reason."""


@pytest.fixture(scope="module")
def tree() -> SourceTree:
    return working_tree()


def test_the_tree_that_is_measured_holds_the_whole_program(tree: SourceTree) -> None:
    modules = {file.module for file in tree.code}
    assert {"entry", "bindings", "retain.ports", "retain.memory.semantic", "durable_objects.agent_runtime"} <= modules
    assert len(tree.tests) > 100


def test_no_file_has_more_than_400_lines(tree: SourceTree) -> None:
    assert {file.module: file.lines for file in tree.code if file.lines > MAX_FILE_LINES} == {}


def test_no_function_is_longer_than_a_page(tree: SourceTree) -> None:
    sizes = Spread.of(
        (node.end_lineno or node.lineno) - node.lineno + 1 for file in tree.code for node in functions_of(file.tree)
    )
    assert sizes.largest <= MAX_FUNCTION_LINES


def test_no_folder_holds_more_than_14_modules(tree: SourceTree) -> None:
    modules = Counter(file.path.parent for file in tree.code if file.path.name != "__init__.py")
    limits = {folder: MAX_MODULES_OF.get(folder.as_posix(), MAX_MODULES) for folder in modules}
    assert {str(folder): count for folder, count in modules.items() if count > limits[folder]} == {}


def test_no_package_is_over_a_fifth_of_the_code(tree: SourceTree) -> None:
    name, share = largest_package(tree)
    assert share <= MAX_SHARE, f"{name} is {share:.1%} of the code"


def test_few_mappings_hide_what_they_hold(tree: SourceTree) -> None:
    counts = {file.module: untyped_mappings(file) for file in tree.code}
    per_kloc = 1_000 * sum(counts.values()) / sum(file.lines for file in tree.code)
    assert per_kloc < MAX_UNTYPED, sorted(counts, key=lambda module: -counts[module])[:5]


def test_no_two_classes_share_a_name(tree: SourceTree) -> None:
    shared = shared_class_names(tree)
    assert {name: modules for name, modules in shared.items() if name not in TWO_MEANINGS} == {}
    assert TWO_MEANINGS.keys() <= shared.keys(), "an exception that is no longer needed"


def test_no_import_between_packages_runs_back(tree: SourceTree) -> None:
    assert package_graph(tree).back() == []


def test_no_import_within_a_package_runs_back(tree: SourceTree) -> None:
    graphs: dict[str, ImportGraph] = graphs_within(tree)
    assert "retain.memory" in graphs
    assert {folder: back for folder, graph in graphs.items() if (back := graph.back())} == {}
