"""The measures of a source tree. Each says how it counts; every published figure comes from this script."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tools.metrics.imports import packages_of
from tools.metrics.source import SourceFile, SourceTree

COMPLEX = 10
"""A function with more paths than this counts as complex."""

_UNTYPED = {"dict[str, Any]", "Mapping[str, Any]", "MutableMapping[str, Any]"}
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.ExceptHandler, ast.match_case, ast.Assert)
_IGNORE = re.compile(r"#\s*type:\s*ignore")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Measure:
    """One figure: what it counts, and its value as printed."""

    name: str
    value: str


@dataclass(frozen=True)
class Spread:
    """The median, the ninth decile and the maximum of some sizes."""

    median: int
    p90: int
    largest: int

    @classmethod
    def of(cls, sizes: Iterable[int]) -> Spread:
        """Return the spread of at least one size. A quantile is the size at its rank, rounded down."""
        ranked = sorted(sizes)
        return cls(ranked[(len(ranked) - 1) // 2], ranked[9 * (len(ranked) - 1) // 10], ranked[-1])

    def __str__(self) -> str:
        return f"{self.median} / {self.p90} / {self.largest}"


def measures_of(tree: SourceTree) -> list[Measure]:
    """Return the measures of a tree, in display order."""
    lines = sum(file.lines for file in tree.code)
    functions = [node for file in tree.code for node in functions_of(file.tree)]
    public = [node for node in functions if not node.name.startswith("_")]
    complex_ones = [node for node in functions if complexity(node) > COMPLEX]
    largest, share = largest_package(tree)

    def per_kloc(count: Callable[[SourceFile], int]) -> str:
        total = sum(count(file) for file in tree.code)
        return f"{1000 * total / lines:.1f} ({total})"

    return [
        Measure("lines of code", f"{lines:,}"),
        Measure(
            "lines per file: median / p90 / max",
            str(Spread.of(file.lines for file in tree.code if file.path.name != "__init__.py")),
        ),
        Measure(
            "lines per function: median / p90 / max",
            str(Spread.of((node.end_lineno or node.lineno) - node.lineno + 1 for node in functions)),
        ),
        Measure(f"functions over complexity {COMPLEX}", f"{100 * len(complex_ones) / len(functions):.1f} %"),
        Measure("`dict[str, Any]` or `Mapping[str, Any]` per 1,000 lines", per_kloc(untyped_mappings)),
        Measure("`cast` per 1,000 lines", per_kloc(casts)),
        Measure("`type: ignore` per 1,000 lines", per_kloc(lambda file: len(_IGNORE.findall(file.text)))),
        Measure("`except Exception` or bare `except` per 1,000 lines", per_kloc(broad_handlers)),
        Measure(
            "public functions with a docstring",
            f"{100 * sum(ast.get_docstring(node) is not None for node in public) / len(public):.0f} %",
        ),
        Measure("comment lines", f"{sum(map(comment_lines, tree.code)):,}"),
        Measure("test lines per line of code", f"{sum(file.lines for file in tree.tests) / lines:.1f}"),
        Measure("class names with two meanings", str(len(shared_class_names(tree)))),
        Measure("largest package's share of the code", f"{share:.0%} (`{largest}`)"),
    ]


def functions_of(tree: ast.AST) -> Iterator[FunctionNode]:
    """Return every function and method, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            yield node


def complexity(function: FunctionNode) -> int:
    """Return a function's complexity: one, and one more for each branch, loop, condition and operand."""
    ways = 1
    for node in ast.walk(function):
        if isinstance(node, _BRANCHES):
            ways += 1
        elif isinstance(node, ast.BoolOp):
            ways += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            ways += 1 + len(node.ifs)
    return ways


def untyped_mappings(file: SourceFile) -> int:
    """Count the mappings whose values the type checker cannot see."""
    return sum(isinstance(node, ast.Subscript) and ast.unparse(node) in _UNTYPED for node in ast.walk(file.tree))


def casts(file: SourceFile) -> int:
    """Count the calls of `typing.cast`."""
    calls = (node.func for node in ast.walk(file.tree) if isinstance(node, ast.Call))
    return sum(isinstance(function, ast.Name) and function.id == "cast" for function in calls)


def broad_handlers(file: SourceFile) -> int:
    """Count the handlers that catch everything."""
    handlers = (node for node in ast.walk(file.tree) if isinstance(node, ast.ExceptHandler))
    return sum(node.type is None or ast.unparse(node.type) in ("Exception", "BaseException") for node in handlers)


def comment_lines(file: SourceFile) -> int:
    """Count the lines that contain only a comment."""
    return sum(line.lstrip().startswith("#") for line in file.text.splitlines())


def shared_class_names(tree: SourceTree) -> dict[str, list[str]]:
    """Return the names that several top-level classes share, each with the modules of these classes."""
    modules: dict[str, list[str]] = defaultdict(list)
    for file in tree.code:
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(file.module)
    return {name: found for name, found in sorted(modules.items()) if len(found) > 1}


def largest_package(tree: SourceTree) -> tuple[str, float]:
    """Return the package with the most lines and its share of all lines, between 0 and 1."""
    sizes = packages_of(tree)
    total = sum(sizes.values())
    return max(((name, size / total) for name, size in sizes.items()), key=lambda found: found[1])
