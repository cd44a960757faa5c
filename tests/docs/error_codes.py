"""The error codes of the Worker, each with the HTTP statuses of the classes that are raised with it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from retain import errors
from retain.errors import codes
from retain.http import problem


@cache
def error_codes() -> dict[str, set[int]]:
    """Return the statuses of every code; none for a code that only an answer or a run's event names."""
    statuses: dict[str, set[int]] = {code: set() for code in literals(codes.Code)}
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.RetainError):
            raised = {kind.code} if kind is errors.RetainError else {kind.code, *literals(_hints(kind)["code"])}
            for code in raised if "__init__" in vars(kind) else {kind.code}:
                statuses[code].add(problem(kind("x"), "x").status)
    return statuses


def literals(hint: Any) -> Iterator[str]:
    """Yield the texts of a type's Literals."""
    for part in get_args(hint):
        if get_origin(hint) is Literal:
            yield part
        else:
            yield from literals(part)


def _hints(kind: type[errors.RetainError]) -> dict[str, Any]:
    return get_type_hints(kind.__init__)
