"""The kinds of tests, and how many there are of each: counted in their source, which takes a second."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tools.metrics.measures import FunctionNode
from tools.metrics.source import SourceFile, SourceTree


@dataclass(frozen=True)
class TestCounts:
    """How many tests some files have.

    functions: each counts once, however many cases its parameters make. properties: the functions whose inputs
    Hypothesis generates. machines: state machines of Hypothesis. on_workerd: functions that run on the real workerd.
    """

    __test__ = False

    files: int
    functions: int
    properties: int
    machines: int
    on_workerd: int

    @classmethod
    def of(cls, files: Iterable[SourceFile]) -> TestCounts:
        """Count the tests of these files."""
        total: Counter[str] = Counter()
        for file in files:
            functions = list(_tests(file.tree))
            total["machines"] += sum(map(_is_machine, ast.walk(file.tree)))
            if not functions:
                continue
            total["files"] += 1
            total["functions"] += len(functions)
            total["properties"] += sum(map(_has_property, functions))
            total["on_workerd"] += len(functions) if "pytest.mark.workerd" in file.text else 0
        return cls(**{name: total[name] for name in ("files", "functions", "properties", "machines", "on_workerd")})


def counted_tests(tree: SourceTree) -> list[list[str]]:
    """Return a row for each folder of tests and one for all: its name, then its counts."""
    folders = sorted({_folder(file) for file in tree.tests})
    rows = [(folder, TestCounts.of(file for file in tree.tests if _folder(file) == folder)) for folder in folders]
    counted = [("all", TestCounts.of(tree.tests)), *((folder, counts) for folder, counts in rows if counts.functions)]
    return [
        [name, *(str(n) for n in (one.files, one.functions, one.properties, one.machines, one.on_workerd))]
        for name, one in counted
    ]


def contract_cases(tree: SourceTree) -> int:
    """Count the cases of the ports' contract suites."""
    ports = (file for file in tree.tests if _folder(file) == "ports")
    return sum(
        isinstance(node, FunctionNode) and node.name.startswith("check_") for file in ports for node in file.tree.body
    )


def _folder(file: SourceFile) -> str:
    return file.path.parts[1] if len(file.path.parts) > 2 else "tests"


def _tests(tree: ast.Module) -> Iterator[FunctionNode]:
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode) and node.name.startswith("test_"):
            yield node


def _has_property(function: FunctionNode) -> bool:
    return any(ast.unparse(decorator).startswith("given(") for decorator in function.decorator_list)


def _is_machine(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any("RuleBasedStateMachine" in ast.unparse(base) for base in node.bases)
