"""Each measure counts what it says, on code that is small enough to count by hand."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from tools.metrics.drawing import as_svg, as_text
from tools.metrics.imports import ImportGraph, package_graph
from tools.metrics.measures import Spread, complexity, functions_of, largest_package, measures_of, shared_class_names
from tools.metrics.page import table
from tools.metrics.source import SourceTree, at_commit, working_tree
from tools.metrics.testing import contract_cases, counted_tests

MARK = ".".join(("pytest", "mark", "workerd"))
"""The mark of workerd's tests; spelled out, it would be read as this file's own."""

FILES = {
    "workers/entry.py": "from retain.memory.recall import find\n",
    "workers/retain/__init__.py": "",
    "workers/retain/memory/__init__.py": '"""What is remembered."""\n',
    "workers/retain/memory/recall.py": (
        "# a comment\n"
        "from typing import Any, cast\n"
        "import retain.ports  # type: ignore[import]\n"
        "class Found: ...\n"
        "def find(row: dict[str, Any]) -> str:\n"
        '    """Find."""\n'
        "    try:\n"
        "        return cast(str, row)\n"
        "    except Exception:\n"
        "        raise\n"
    ),
    "workers/retain/ports.py": "class Found: ...\ndef ask(): return 1\ndef _own(): return 2\n",
    "tests/test_it.py": "def test_it(): ...\n" * 15,
    "tools/other.py": "x = 1\n",
}


@pytest.fixture
def tree() -> SourceTree:
    return SourceTree.of(FILES)


def test_the_measures_of_a_small_tree_are_what_is_counted_by_hand(tree: SourceTree) -> None:
    assert {measure.name: measure.value for measure in measures_of(tree)} == {
        "lines of code": "15",
        "lines per file: median / p90 / max": "3 / 3 / 10",
        "lines per function: median / p90 / max": "1 / 1 / 6",
        "functions over complexity 10": "0.0 %",
        "`dict[str, Any]` or `Mapping[str, Any]` per 1,000 lines": "66.7 (1)",
        "`cast` per 1,000 lines": "66.7 (1)",
        "`type: ignore` per 1,000 lines": "66.7 (1)",
        "`except Exception` or bare `except` per 1,000 lines": "66.7 (1)",
        "public functions with a docstring": "50 %",
        "comment lines": "1",
        "test lines per line of code": "1.0",
        "class names with two meanings": "1",
        "largest package's share of the code": "73% (`memory`)",
    }


def test_a_class_name_in_two_modules_is_found_with_both(tree: SourceTree) -> None:
    assert shared_class_names(tree) == {"Found": ["retain.memory.recall", "retain.ports"]}


def test_the_largest_package_is_named_with_its_share(tree: SourceTree) -> None:
    assert largest_package(tree) == ("memory", 11 / 15)


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        pytest.param("return 1", 1, id="one way"),
        pytest.param("if a: return 1", 2, id="a branch"),
        pytest.param("return a and b or c", 3, id="operands"),
        pytest.param("return [x for x in a if b if c]", 4, id="a comprehension with conditions"),
        pytest.param("for x in a:\n  while b: pass", 3, id="loops"),
        pytest.param("match a:\n  case 1: pass\n  case _: pass", 3, id="cases"),
        pytest.param("try: a()\n except A: pass\n except B: pass", 3, id="handlers"),
    ],
)
def test_complexity_counts_the_ways_through_a_function(body: str, ways: int) -> None:
    (function,) = functions_of(ast.parse(f"def f():\n {body}"))
    assert complexity(function) == ways


def test_a_spread_gives_middle_ninth_decile_and_largest() -> None:
    assert Spread.of(range(1, 12)) == Spread(6, 10, 11)


def test_the_graph_holds_each_import_between_packages(tree: SourceTree) -> None:
    graph = package_graph(tree)
    assert graph.sizes == {"entry": 1, "memory": 11, "ports": 3}
    assert graph.arrows == {("entry", "memory"): 1, ("memory", "ports"): 1}
    assert graph.floors() == [["ports"], ["memory"], ["entry"]]


def test_an_arrow_that_closes_a_circle_runs_back_and_there_are_no_floors() -> None:
    circle = ImportGraph({"a": 1, "b": 1, "c": 1}, {("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 2})
    assert circle.back() == [("a", "b"), ("b", "a")]
    with pytest.raises(ValueError, match="imports run back"):
        circle.floors()


def test_an_arrow_that_a_longer_path_implies_is_not_drawn() -> None:
    graph = ImportGraph({"a": 1, "b": 1, "c": 1}, {("a", "b"): 1, ("b", "c"): 1, ("a", "c"): 1})
    assert graph.essential() == [("a", "b"), ("b", "c")]


def test_the_text_and_the_picture_show_every_package(tree: SourceTree) -> None:
    graph = package_graph(tree)
    text, picture = as_text(graph), as_svg(graph)
    for name in graph.sizes:
        assert f" {name} " in text
        assert f">{name}</text>" in picture
    assert picture.count("marker-end") == len(graph.essential())


def test_a_commit_is_measured_as_it_was(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@localhost", *words], cwd=tmp_path, check=True)

    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    (tmp_path / "workers/retain/ports.py").write_text("")
    assert at_commit("HEAD", tmp_path) == SourceTree.of(FILES)
    assert working_tree(tmp_path) == SourceTree.of({**FILES, "workers/retain/ports.py": ""})


def test_tests_are_counted_by_folder_and_kind() -> None:
    tree = SourceTree.of(
        {
            "tests/test_a.py": "def test_one(): ...\n@given(x)\ndef test_two(): ...\n",
            "tests/e2e/test_b.py": f"{MARK}\nclass M(RuleBasedStateMachine): ...\ndef test_c(): ...\n",
            "tests/ports/kv.py": "def check_a(): ...\nasync def check_b(): ...\ndef other(): ...\n",
        }
    )
    assert counted_tests(tree) == [
        ["all", "2", "3", "1", "1", "1"],
        ["e2e", "1", "1", "0", "1", "1"],
        ["tests", "1", "2", "1", "0", "0"],
    ]
    assert contract_cases(tree) == 2


def test_the_table_has_a_row_for_each_measure_and_a_column_for_each_tree(tree: SourceTree) -> None:
    rows = table([tree, tree])
    assert rows[0] == ["lines of code", "15", "15"]
    assert {len(row) for row in rows} == {3}
