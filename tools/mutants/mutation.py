"""Mutants of a file: what Cosmic Ray's operators and Retain's own make of it."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from tools.mutants.operators import OPERATORS, Provider

plugins.OPERATOR_PROVIDERS["retain"] = Provider()

_OF_COSMIC_RAY = (
    "AddNot",
    "ExceptionReplacer",
    "NumberReplacer",
    "RemoveDecorator",
    "ReplaceAndWithOr",
    "ReplaceBinaryOperator_Add_Sub",
    "ReplaceBinaryOperator_FloorDiv_Mul",
    "ReplaceBinaryOperator_Mul_Add",
    "ReplaceBinaryOperator_Sub_Add",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ReplaceComparisonOperator_Eq_NotEq",
    "ReplaceComparisonOperator_Gt_GtE",
    "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_Is_IsNot",
    "ReplaceComparisonOperator_IsNot_Is",
    "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_LtE_Lt",
    "ReplaceComparisonOperator_NotEq_Eq",
    "ReplaceFalseWithTrue",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceUnaryOperator_Delete_Not",
    "ZeroIterationForLoop",
)
"""One change of each kind. Cosmic Ray would also try every other operator as well, which finds the same tests."""
EVERYWHERE = (*(f"core/{name}" for name in _OF_COSMIC_RAY), *(f"retain/{name}" for name in OPERATORS))
DEFAULTS = ("core/NumberReplacer", "core/ReplaceFalseWithTrue", "core/ReplaceTrueWithFalse")
"""For files of which only the default values are tested here."""
_LAST = ast.dump(ast.parse("rows[-1]")).partition("slice=")[2].partition(", ctx=")[0]
"""The place of the last row, as `ast.dump` shows it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one change. line: where it begins, in the file as it is."""

    file: str
    operator: str
    line: int
    source: str

    def lines(self, original: str) -> tuple[str, str]:
        """Return what the change replaces and by what, each in one line."""
        before, after = [], []
        for line in difflib.ndiff(original.splitlines(), self.source.splitlines()):
            if line.startswith("- "):
                before.append(line[2:].strip())
            elif line.startswith("+ "):
                after.append(line[2:].strip())
        return " ".join(before), " ".join(after)

    def under(self, original: str) -> str:
        """Return the line above the change, "" when there is none."""
        return original.splitlines()[self.line - 2].strip() if self.line > 1 else ""


def mutants(file: str, source: str, operators: tuple[str, ...]) -> Iterator[Mutant]:
    """Yield the file's mutants that Python accepts, each once. What no test can see is left out (`_unseen`)."""
    tree, unseen, firsts = get_ast(source), _unseen(source), _firsts(source)
    original = ast.dump(ast.parse(source))
    made = {original}
    for name in operators:
        operator = plugins.get_operator(name)()
        positions = [start for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node)]
        for occurrence, start in enumerate(positions):
            if any(first <= start < last for first, last in unseen):
                continue
            changed = mutate_code(source, operator, occurrence)
            try:
                dumped = ast.dump(ast.parse(changed or ""))
            except SyntaxError:
                continue
            if start in firsts and dumped.count(_LAST) > original.count(_LAST):
                continue
            if changed is not None and dumped not in made:
                made.add(dumped)
                yield Mutant(file, name.partition("/")[2], start[0], changed)


def _firsts(source: str) -> set[tuple[int, int]]:
    """Return where a file says `[0]`. A row that is alone is the last as well, so `[-1]` would be the same."""
    found = [node.slice for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Subscript)]
    return {(one.lineno, one.col_offset) for one in found if isinstance(one, ast.Constant) and one.value == 0}


def _unseen(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the parts of a file that are not mutated: what only the type checker reads, lines of the log, `__all__`,
    and the arguments of `@dataclass`, which keep programmers from mistakes and change nothing at run time.
    """
    found: list[ast.AST] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                found.append(node)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="_log")))):
                found.append(node)
            case (
                ast.Assign(targets=[ast.Name(id="__all__" | "_log")])
                | ast.Assign(value=ast.Subscript(value=ast.Name(id="Literal")))
            ):
                found.append(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found += [one.annotation for one in ast.walk(node.args) if isinstance(one, ast.arg) and one.annotation]
                found += [node.returns] if node.returns else []
            case ast.AnnAssign():
                found.append(node.annotation)
            case ast.ClassDef():
                found += [one for one in node.decorator_list if isinstance(one, ast.Call)]
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0))  # type: ignore[attr-defined]
        for node in found
    ]
