"""Metadata filters of the vector index: which are valid, and what they match.

The rules are Vectorize's. Where its behaviour is undocumented, the safe reading is taken: a filter on a property
without a metadata index, which finds nothing there, is refused here; and an entry that lacks the property counts as
different from every value, so that only `$ne` and `$nin` match it.

Source: https://developers.cloudflare.com/vectorize/reference/metadata-filtering/
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from retain.errors import InvalidInput, LimitExceeded, Misconfigured
from retain.ports import MetadataFilter, MetadataValue, PropertyType

FILTERABLE: Final[Mapping[str, PropertyType]] = {
    "tenant_id": "string",
    "agent_id": "string",
    "scope_id": "string",
    "model": "string",
    "kind": "string",
    "created_at": "number",
    "subject": "string",
}
"""The properties with a metadata index in every deployment, and the type of their values."""

OVER_AT: Final = "over_at"
"""The property that says when a record stops being valid. Only a deployment that declares it filters by it."""

PROVISIONED: Final[Mapping[str, PropertyType]] = {**FILTERABLE, OVER_AT: "number"}
"""The properties with a metadata index in a new deployment, as `vectorize/index.toml` provisions them."""

OWN_PREFIX: Final = "meta_"
"""What precedes the name of a memory's own metadata in the name of its property."""

MAX_DECLARED: Final = 3
"""How many properties a deployment may declare: Vectorize allows ten indexes."""
_DECLARED: Final = re.compile(r"([A-Za-z0-9_-]{1,59}):(string|number|boolean)")

INDEXED_BYTES: Final = 64
"""How much of a string a metadata index keeps, in bytes of UTF-8."""

MAX_FILTER_BYTES: Final = 2047
"""Size of the largest filter as compact JSON: it must be less than 2048 bytes."""

_EXACT_INTEGER: Final = 2**53
_UPPER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"$lt": operator.lt, "$lte": operator.le}
_LOWER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"$gt": operator.gt, "$gte": operator.ge}
_RANGES: Final = {**_UPPER, **_LOWER}
_LISTS: Final = ("$in", "$nin")
_OPERATORS: Final = ("$eq", "$ne", *_LISTS, *_RANGES)


def declared(text: str) -> dict[str, PropertyType]:
    """Return the properties that a deployment declares, as `over_at, customer:string, amount:number`.

    Raises: Misconfigured (code `invalid_setting`).
    """
    found: dict[str, PropertyType] = {}
    for part in re.split(r"[,\s]+", text.strip(", \n")) if text.strip(", \n") else []:
        named = _DECLARED.fullmatch(part)
        if named is None and part != OVER_AT:
            raise Misconfigured(f"VECTOR_FILTERS: {part!r} is not name:type", code="invalid_setting")
        if named is None:
            found[OVER_AT] = "number"
        else:
            found[OWN_PREFIX + named[1]] = cast("PropertyType", named[2])
    if len(found) > MAX_DECLARED:
        raise Misconfigured(f"VECTOR_FILTERS has more than {MAX_DECLARED} names", code="invalid_setting")
    return found


def indexed_value(value: object, kind: str) -> MetadataValue | None:
    """Return what a metadata index of a type keeps of a value; None when it keeps nothing. True and 1 are the same."""
    if kind == "string":
        return indexed_text(value) if isinstance(value, str) else None
    if kind == "boolean":
        return bool(value) if isinstance(value, bool | int | float) and value in (0, 1) else None
    if not isinstance(value, int | float):
        return None
    number = int(value) if isinstance(value, bool) else value
    exact = is_json_number(number) and (isinstance(number, float) or abs(number) < _EXACT_INTEGER)
    return number if exact else None  # Python sends JavaScript larger ones as another type


def indexed_text(text: str) -> str:
    """Return what a metadata index keeps of a string: its first 64 bytes, cut at a character boundary.

    A filter cannot distinguish texts that share them.
    """
    return text.encode("utf-8", "replace")[:INDEXED_BYTES].decode("utf-8", "ignore")


def check_filter(criteria: MetadataFilter, filterable: Mapping[str, PropertyType] = FILTERABLE) -> None:
    """Check that the filter is one that every index answers in the same way.

    An empty filter sets no condition. Vectorize refuses an empty object, so its adapter leaves it out.

    Raises: InvalidInput (code `invalid_filter`) for a property without an index, an unknown operator, a value of
        another type than the property's, an empty list, or operators that cannot be combined; LimitExceeded (code
        `vector_filter_too_large`).
    """
    for name, given, operands in _conditions(criteria):
        if name not in filterable:
            raise _invalid(name, "it has no metadata index")
        if given not in _OPERATORS:
            raise _invalid(name, f"{given!r} is not an operator")
        if not operands:
            raise _invalid(name, f"{given} needs at least one value")
        if not all(_is_a(filterable[name], value) for value in operands):
            raise _invalid(name, f"{given} needs a {filterable[name]}")
        if given in _RANGES and filterable[name] == "boolean":
            raise _invalid(name, f"booleans have no order, so {given} has no meaning")
    for name, condition in criteria.items():
        names = frozenset(condition) if isinstance(condition, Mapping) else frozenset({"$eq"})
        if len(names) != 1 and not (len(names) == 2 and names & _UPPER.keys() and names & _LOWER.keys()):
            raise _invalid(name, "it takes one operator, or a lower and an upper bound")
    size = _json_bytes(criteria)
    if size > MAX_FILTER_BYTES:
        raise LimitExceeded(
            f"the filter has {size} bytes, at most {MAX_FILTER_BYTES} are allowed",
            code="vector_filter_too_large",
            limit_bytes=MAX_FILTER_BYTES,
        )


def is_json_number(value: object) -> bool:
    """Return whether the value is a number (not a boolean) that the index, which holds doubles, keeps exactly."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= _EXACT_INTEGER


def matches(criteria: MetadataFilter, metadata: Mapping[str, MetadataValue]) -> bool:
    """Return whether an entry with this metadata passes a filter that `check_filter` accepts.

    Strings are compared on their first 64 bytes and ordered by code point. Values of different types are unequal and
    unordered.
    """
    return all(_passes(metadata.get(name), given, operands) for name, given, operands in _conditions(criteria))


def _conditions(criteria: MetadataFilter) -> Iterator[tuple[str, str, Sequence[MetadataValue]]]:
    """Yield the filter's conditions, all of which must be met: property, operator, operands."""
    for name, condition in criteria.items():
        if not isinstance(condition, Mapping):
            yield name, "$eq", (condition,)
            continue
        for given, operand in condition.items():
            if given not in _LISTS:
                # If the operand is a list, `check_filter` refuses it as not of the property's type.
                yield name, given, (operand,)  # type: ignore[misc]
            elif isinstance(operand, str | int | float):
                raise _invalid(name, f"{given} needs a list")
            else:
                yield name, given, operand


def _passes(got: MetadataValue | None, given: str, operands: Sequence[MetadataValue]) -> bool:
    if given in _RANGES:
        return got is not None and _in_range(got, operands[0], _RANGES[given])
    found = any(_same(got, operand) for operand in operands)
    return found if given in ("$eq", "$in") else not found


def _same(a: MetadataValue | None, b: MetadataValue) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return indexed_text(a) == indexed_text(b)
    if isinstance(a, bool) or isinstance(b, bool):  # in Python True equals 1, in JSON it does not
        return a is b
    return a == b


def _in_range(got: MetadataValue, bound: MetadataValue, compare: Callable[[Any, Any], bool]) -> bool:
    if isinstance(got, str) and isinstance(bound, str):
        return compare(indexed_text(got), indexed_text(bound))
    if isinstance(got, str | bool) or isinstance(bound, str | bool):
        return False
    return compare(got, bound)


def _is_a(kind: PropertyType, value: object) -> bool:
    if kind == "string":
        return isinstance(value, str)
    return isinstance(value, bool) if kind == "boolean" else is_json_number(value)


def _json_bytes(criteria: MetadataFilter) -> int:
    plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in criteria.items()}
    try:
        return len(json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode())
    except UnicodeEncodeError as error:
        raise InvalidInput("the filter holds text that is not Unicode", code="invalid_filter") from error


def _invalid(name: str, reason: str) -> InvalidInput:
    return InvalidInput(f"the filter on {name!r} is not valid: {reason}", code="invalid_filter", property=name)
