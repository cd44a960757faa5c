"""What of a filter the vector index can apply before the search: conditions on properties that it has an index for.

D1 applies the whole filter in any case, so a condition is left out wherever the index might refuse a record that passes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from retain.limits.vector_filter import MAX_FILTER_BYTES, OVER_AT, OWN_PREFIX, indexed_value
from retain.memory.filters import FIELDS
from retain.ports import MetadataFilter, MetadataValue, PropertyType

_OWN_FIELDS = ("kind", "subject")
"""Fields of a record that are properties of the same name."""
_PREFIX = "metadata."
_BOUNDS = ("$gt", "$gte"), ("$lt", "$lte")

_Condition = MetadataValue | Mapping[str, MetadataValue | Sequence[MetadataValue]]


def pushed(
    wanted: Mapping[str, object], at_ms: int, filterable: Mapping[str, PropertyType], criteria: MetadataFilter
) -> MetadataFilter:
    """Return the criteria with what the index can apply of a filter that compiles, within the size of its filters.

    at_ms: for when records must be valid. filterable: the properties with an index.
    """
    found = dict(criteria)
    if OVER_AT in filterable:
        found[OVER_AT] = {"$gt": at_ms}
    for name, condition in _conditions(wanted, filterable):
        if name not in found and _size({**found, name: condition}) <= MAX_FILTER_BYTES:
            found[name] = condition
    return found


def _conditions(
    wanted: Mapping[str, object], filterable: Mapping[str, PropertyType]
) -> Iterator[tuple[str, _Condition]]:
    for name, criterion in wanted.items():
        if name == "$and" and isinstance(criterion, Sequence):
            for one in criterion:
                if isinstance(one, Mapping):
                    yield from _conditions(one, filterable)
            continue
        if name in FIELDS and name not in _OWN_FIELDS:
            continue
        shown = name if name in _OWN_FIELDS else OWN_PREFIX + name.removeprefix(_PREFIX)
        kind = filterable.get(shown)
        condition = None if kind is None else _condition(criterion, kind)
        if condition is not None:
            yield shown, condition


def _condition(criterion: object, kind: PropertyType) -> _Condition | None:
    """Return the condition for the index; None when it has no equal one.

    The index keeps the beginning of a text, so what differs only after it counts as equal: that refuses too little, except
    for `$ne`, `$nin` and orders of texts.
    """
    operators = criterion if isinstance(criterion, Mapping) else {"$eq": criterion}
    if len(operators) == 1 and "$eq" in operators:
        return indexed_value(operators["$eq"], kind)
    if len(operators) == 1 and "$in" in operators and isinstance(operators["$in"], Sequence):
        listed = [indexed_value(one, kind) for one in operators["$in"]]
        some = [one for one in listed if one is not None]
        return {"$in": some} if some and len(some) == len(listed) else None
    if kind != "number":
        return None
    bounds: dict[str, MetadataValue] = {}
    for either in _BOUNDS:
        for given in either:
            bound = indexed_value(operators.get(given), kind)
            if bound is not None and not any(one in bounds for one in either):
                bounds[given] = bound
    return bounds or None


def _size(criteria: MetadataFilter) -> int:
    plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in criteria.items()}
    return len(json.dumps(plain).encode())
