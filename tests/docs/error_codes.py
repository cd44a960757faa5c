"""The error codes that the Worker's sources use, read from their syntax trees.

A code stands as the keyword `code` of a call, as the class attribute `code` of an error, as the field `code` of a value
(`RunFailed`), or under the key "code" of a dictionary. Where it is not written out, it is followed to the constants that
it comes from: through local names, loops over constants, and the arguments of the callers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path

from retain import errors
from retain.http import problem
from tools.paths import ROOT

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Unreadable(Exception):
    """A code comes from somewhere that this module cannot follow. Names the place."""


@dataclass
class Code:
    """One code. statuses: with which HTTP statuses it is answered; none where it only stands inside an answer."""

    statuses: set[int] = field(default_factory=set)
    places: set[str] = field(default_factory=set)


@cache
def error_codes() -> dict[str, Code]:
    """Return every code by its name."""
    command = ROOT / "workers" / "retain" / "cli"  # not uploaded, and no request reaches it
    paths = [path for path in (ROOT / "workers").rglob("*.py") if command not in path.parents]
    sources = _Sources(sorted(paths))
    found: dict[str, Code] = {}
    for place, error, values in sources.uses():
        for value in values:
            code = found.setdefault(value, Code())
            code.places.add(place)
            if error is not None:
                code.statuses.add(problem(error("x"), "x").status)
    return found


@dataclass(frozen=True)
class _Tree:
    place: str
    functions: dict[ast.AST, _Function | None]
    """Every node, with the function that it stands in."""


class _Sources:
    def __init__(self, paths: list[Path]) -> None:
        self._trees = [_parsed(path) for path in paths]
        nodes = [node for tree in self._trees for node in tree.functions]
        self._calls = [node for node in nodes if isinstance(node, ast.Call)]
        self._fields = {
            node.name: names.index("code")
            for node in nodes
            if isinstance(node, ast.ClassDef) and "code" in (names := _fields(node))
        }
        self._home = {id(node): tree for tree in self._trees for node in tree.functions}

    def uses(self) -> Iterator[tuple[str, type[errors.RetainError] | None, set[str]]]:
        """Yield where codes are used, the error they are raised with, and what they are."""
        for tree in self._trees:
            for node in tree.functions:
                for error, value in self._sinks(node):
                    place = f"{tree.place}:{node.lineno}" if isinstance(node, ast.expr | ast.stmt) else tree.place
                    yield place, error, self._values(value, tree.functions[value], place)

    def _sinks(self, node: ast.AST) -> Iterator[tuple[type[errors.RetainError] | None, ast.expr]]:
        if isinstance(node, ast.Call):
            name = _called(node)
            error = getattr(errors, name, None)
            for keyword in node.keywords:
                if keyword.arg == "code":
                    yield error, keyword.value
            if name in self._fields and len(node.args) > self._fields[name]:
                yield None, node.args[self._fields[name]]
        elif isinstance(node, ast.ClassDef) and node.name in vars(errors):
            for item in node.body:
                if isinstance(item, ast.Assign) and _names(item.targets[0]) == ["code"]:
                    yield getattr(errors, node.name), item.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "code":
                    yield None, value

    def _values(self, node: ast.expr, function: _Function | None, place: str) -> set[str]:
        """Return what the expression can be; nothing when it is the code of another error, passed on."""
        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.IfExp(body=first, orelse=second):
                return self._values(first, function, place) | self._values(second, function, place)
            case ast.JoinedStr(values=parts):
                return {"".join(chosen) for chosen in product(*(self._values(p, function, place) for p in parts))}
            case ast.FormattedValue(value=inner):
                return self._values(inner, function, place)
            case ast.Call(func=ast.Attribute(value=inner, attr=("lower" | "replace") as method), args=arguments):
                constants = [ast.literal_eval(argument) for argument in arguments]
                return {getattr(text, method)(*constants) for text in self._values(inner, function, place)}
            case ast.Attribute(attr="code") | ast.Subscript(slice=ast.Constant(value="code")):
                return set()
            case ast.Name(id=name) if function is not None:
                return self._named(name, function, place)
        raise Unreadable(f"{place}: {ast.unparse(node)}")

    def _named(self, name: str, function: _Function, place: str) -> set[str]:
        found: set[str] = set()
        known = False
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and _names(node.targets[0]) == [name]:
                found |= self._values(node.value, function, place)
                known = True
            elif isinstance(node, ast.For) and name in _names(node.target):
                at = _names(node.target).index(name)
                for item in node.iter.elts if isinstance(node.iter, ast.Tuple) else []:
                    one = item.elts[at] if isinstance(item, ast.Tuple) else item
                    found |= self._values(one, function, place)
                    known = True
            elif isinstance(node, ast.MatchClass) and node.cls and ast.unparse(node.cls) in self._fields:
                known |= name in [ast.unparse(pattern) for pattern in node.patterns]  # taken from a value, passed on
        parameters = [argument.arg for argument in function.args.args]
        if not known and name in parameters:
            at = parameters.index(name) - (parameters[0] in ("self", "cls"))
            for call in self._calls_of(function):
                if len(call.args) > at:
                    found |= self._values(call.args[at], self._home[id(call)].functions[call], place)
                    known = True
        if not known:
            raise Unreadable(f"{place}: {name}")
        return found

    def _calls_of(self, function: _Function) -> Iterator[ast.Call]:
        """Yield the calls of a function; those of a private one stand in its own module."""
        home = self._home[id(function)]
        for call in self._calls:
            if _called(call) == function.name and (not function.name.startswith("_") or self._home[id(call)] is home):
                yield call


def _parsed(path: Path) -> _Tree:
    functions: dict[ast.AST, _Function | None] = {}

    def visit(node: ast.AST, function: _Function | None) -> None:
        functions[node] = function
        inner = node if isinstance(node, _Function) else function
        for child in ast.iter_child_nodes(node):
            visit(child, inner)

    visit(ast.parse(path.read_text()), None)
    return _Tree(path.relative_to(ROOT).as_posix(), functions)


def _called(node: ast.Call) -> str:
    """Return the last part of the name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _names(target: ast.expr) -> list[str]:
    items = target.elts if isinstance(target, ast.Tuple) else [target]
    return [item.id if isinstance(item, ast.Name) else "" for item in items]


def _fields(node: ast.ClassDef) -> list[str]:
    """Return the names that are annotated in the class's body."""
    annotated = [item.target for item in node.body if isinstance(item, ast.AnnAssign)]
    return [target.id for target in annotated if isinstance(target, ast.Name)]
