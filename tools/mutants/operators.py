"""What is changed in a wire: operators for Cosmic Ray, besides its own.

Cosmic Ray changes operators, comparisons, numbers and conditions. What breaks a wire is something else: a call that is
missing or made twice, an argument that is not passed, an entry that is left out, a name that differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cosmic_ray.operators.operator import Operator
from parso.python.tree import Name

Position = tuple[tuple[int, int], tuple[int, int]]
_MARK = "XX"
"""What a changed text begins and ends with."""


class _Replacing(Operator):  # type: ignore[misc]  # Cosmic Ray has no types
    """Replaces nodes by text. A subclass yields, for a node, the children to replace and what replaces each."""

    def choices(self, node: Any) -> Iterator[tuple[Any, Sequence[Any], str]]:
        """Yield, for each mutation of the node: the list of siblings, those of them to replace, and the new text."""
        raise NotImplementedError

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Yield the position of each mutation."""
        for _, replaced, _ in self.choices(node):
            yield replaced[0].start_pos, replaced[-1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Return the node with one mutation."""
        siblings, replaced, text = list(self.choices(node))[index]
        first = siblings.index(replaced[0])
        prefix = replaced[0].get_first_leaf().prefix
        leaf = Name(text, replaced[0].start_pos, prefix)
        leaf.parent = node
        siblings[first : first + len(replaced)] = [leaf]
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        """Return none: `tests/tools/test_mutants.py` has them."""
        return ()


class CutStatement(_Replacing):
    """Leaves out a call, an assignment to an attribute or an item, a raise or a deletion."""

    def choices(self, node: Any) -> Iterator[tuple[Any, Sequence[Any], str]]:
        """Yield each such statement."""
        if node.type != "simple_stmt":
            return
        statement = node.children[0]
        if _is_effect(statement):
            yield node.children, [statement], "pass"


class CutArgument(_Replacing):
    """Leaves out a keyword argument. A positional one is seldom optional, and a call without it fails at once."""

    def choices(self, node: Any) -> Iterator[tuple[Any, Sequence[Any], str]]:
        """Yield each keyword argument of a call."""
        if node.type == "trailer" and node.children[0] == "(" and _is_keyword(node.children[1]):
            yield node.children, [node.children[1]], ""
        if node.type == "arglist":
            for argument in node.children:
                if _is_keyword(argument):
                    yield node.children, _with_comma(node.children, argument), ""


class CutEntry(_Replacing):
    """Leaves out an entry of a dictionary, or an item of a list, a tuple or a set of several."""

    def choices(self, node: Any) -> Iterator[tuple[Any, Sequence[Any], str]]:
        """Yield each entry."""
        if node.type == "dictorsetmaker" and not _has_loop(node):
            for entry in _entries(node.children):
                yield node.children, _with_comma(node.children, entry[0], entry[-1]), ""
        elif node.type == "testlist_comp" and not _has_loop(node):
            items = [child for child in node.children if child != ","]
            for item in items if len(items) > 2 else ():
                yield node.children, _with_comma(node.children, item), ""


class CallTwice(_Replacing):
    """Makes an awaited call twice, one after the other."""

    def choices(self, node: Any) -> Iterator[tuple[Any, Sequence[Any], str]]:
        """Yield each awaited call."""
        for child in getattr(node, "children", ()):
            if child.type == "atom_expr" and child.children[0] == "await" and child.children[-1].type == "trailer":
                code = child.get_code(include_prefix=False)
                yield node.children, [child], f"({code}, {code})[1]"


class ReturnNothing(_Replacing):
    """Returns None instead of a value."""

    def choices(self, node: Any) -> Iterator[tuple[Any, Sequence[Any], str]]:
        """Yield a returned value."""
        if node.type == "return_stmt" and len(node.children) > 1 and node.children[1] != "None":
            yield node.children, [node.children[1]], "None"


class ChangeText(_Replacing):
    """Changes a text: a name of a binding, a column, a code."""

    def choices(self, node: Any) -> Iterator[tuple[Any, Sequence[Any], str]]:
        """Yield each text that is not a docstring."""
        for child in getattr(node, "children", ()):
            if child.type == "string" and node.type != "simple_stmt" and not _in_prose(child):
                quote = child.value[-3:] if child.value.endswith(('"""', "'''")) else child.value[-1]
                start = child.value.index(quote) + len(quote)
                inner = child.value[start : -len(quote)]
                yield node.children, [child], f"{child.value[:start]}{_MARK}{inner}{_MARK}{quote}"


OPERATORS = {
    operator.__name__: operator
    for operator in (CutStatement, CutArgument, CutEntry, CallTwice, ReturnNothing, ChangeText)
}


class Provider:
    """Gives Cosmic Ray the operators by their names."""

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(OPERATORS)

    def __getitem__(self, name: str) -> type[Operator]:
        """Return an operator."""
        return OPERATORS[name]


def _is_effect(statement: Any) -> bool:
    if statement.type in ("raise_stmt", "del_stmt"):
        return True
    if statement.type in ("atom_expr", "power"):
        return bool(statement.children[-1].type == "trailer" and statement.children[-1].children[0] == "(")
    if statement.type != "expr_stmt":
        return False
    target = statement.children[0]
    augmented = statement.children[1].type == "operator" and statement.children[1] != "="
    return bool(target.type in ("atom_expr", "power")) or augmented


def _is_keyword(argument: Any) -> bool:
    return bool(argument.type == "argument" and argument.children[0].type == "name" and argument.children[1] == "=")


def _has_loop(node: Any) -> bool:
    return any(child.type in ("sync_comp_for", "comp_for") for child in node.children)


def _entries(children: Sequence[Any]) -> list[list[Any]]:
    found: list[list[Any]] = [[]]
    for child in children:
        if child == ",":
            found.append([])
        else:
            found[-1].append(child)
    return [entry for entry in found if entry]


def _with_comma(siblings: Sequence[Any], first: Any, last: Any = None) -> list[Any]:
    """Return the nodes from `first` to `last` with the comma after them, or else the one before."""
    start, end = siblings.index(first), siblings.index(last or first) + 1
    if end < len(siblings):
        end += 1
    elif start:
        start -= 1
    return list(siblings[start:end])


def _in_prose(string: Any) -> bool:
    """Return whether a text is for people: the message of an error, or of a line of the log."""
    node = string
    while node.parent is not None and node.parent.type not in ("suite", "file_input", "argument", "dictorsetmaker"):
        node = node.parent
        if node.type == "trailer":
            called: str = node.parent.get_code(include_prefix=False).partition("(")[0]
            return called.startswith(("_log.", "errors.", "Misconfigured", "Conflict", "NotFound", "Unavailable")) or (
                called.endswith(("InvalidInput", "UnknownScope", "LimitExceeded", "ConstraintViolated", "RetainError"))
            )
    return False
