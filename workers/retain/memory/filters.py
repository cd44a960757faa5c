"""Metadata filters over records, with Vectorize's operators, as SQL over the record's metadata and fields.

A name is one of the record's own fields (`kind`, `subject`, `predicate`, `object`, `confidence`, `importance`,
`conversation`, `speaker`) or a path into its metadata, with dots. A record that lacks the name counts as different from
every value: only `$ne` and `$nin` let it pass. A number never equals a text; true and false are 1 and 0.
Source: https://developers.cloudflare.com/vectorize/reference/metadata-filtering/
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from retain.errors import InvalidInput, LimitExceeded
from retain.ports import SqlValue

MAX_FILTER_BYTES = 2048
MAX_CONDITIONS = 16
MAX_VALUES = 40
"""Values that a filter binds, including paths: recall binds them twice in one statement, and D1 takes 100."""
FIELDS = ("kind", "subject", "predicate", "object", "confidence", "importance", "conversation", "speaker")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,4}")
_COMPARE = {"$eq": "=", "$ne": "<>", "$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
_LISTS = {"$in": "IN", "$nin": "NOT IN"}


def compile_filter(wanted: Mapping[str, object]) -> tuple[str, list[SqlValue]]:
    """Return the filter as a condition on `memory_records r`, and its values; ("1", []) when it sets no condition.

    Raises: InvalidInput (code `invalid_filter`); LimitExceeded (code `filter_too_large`).
    """
    if len(json.dumps(wanted, default=str).encode()) > MAX_FILTER_BYTES:
        raise LimitExceeded("the filter is too large", code="filter_too_large", limit_bytes=MAX_FILTER_BYTES)
    conditions: list[str] = []
    values: list[SqlValue] = []
    for name, criterion in wanted.items():
        operators = criterion if isinstance(criterion, Mapping) else {"$eq": criterion}
        if not operators:
            raise _invalid(name, "names no operator")
        for given, operand in operators.items():
            condition, taken = _condition(name, given, operand)
            conditions.append(condition)
            values += taken
    if len(conditions) > MAX_CONDITIONS:
        raise LimitExceeded("the filter has too many conditions", code="filter_too_large", limit=MAX_CONDITIONS)
    if len(values) > MAX_VALUES:
        raise LimitExceeded("the filter has too many values", code="filter_too_large", limit=MAX_VALUES)
    return " AND ".join(conditions) or "1", values


def _condition(name: str, given: str, operand: object) -> tuple[str, list[SqlValue]]:
    if _NAME.fullmatch(name) is None:
        raise _invalid(name, "is not a name or a path of names")
    path: list[SqlValue] = []
    if name in FIELDS:
        column = f"(+r.{name})"  # without the column's affinity: the text "2" is not the number 2
    else:
        column = "json_extract(r.metadata, ?)"
        path = ["$" + "".join(f'."{part}"' for part in name.split("."))]
    if given in _LISTS:
        if isinstance(operand, str) or not isinstance(operand, Sequence) or not 1 <= len(operand) <= 20:
            raise _invalid(name, f"{given} needs a list of 1 to 20 values")
        operands = [_operand(name, value) for value in operand]
        condition = f"{column} {_LISTS[given]} ({', '.join('?' * len(operands))})"
    elif given in _COMPARE:
        operands = [_operand(name, operand)]
        condition = f"{column} {_COMPARE[given]} ?"
    else:
        raise _invalid(name, f"{given} is not an operator")
    if given in ("$ne", "$nin"):
        return f"({column} IS NULL OR {condition})", [*path, *path, *operands]
    if given in ("$lt", "$lte", "$gt", "$gte"):
        # SQLite orders every number before every text; nobody intends a comparison across types.
        kind = "text" if isinstance(operands[0], str) else "number"
        types = "('text')" if kind == "text" else "('integer', 'real')"
        return f"(typeof({column}) IN {types} AND {condition})", [*path, *path, *operands]
    return condition, [*path, *operands]


def _operand(name: str, value: object) -> SqlValue:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str | int | float):
        return value
    raise _invalid(name, "compares with text, numbers and booleans only")


def _invalid(name: str, reason: str) -> InvalidInput:
    return InvalidInput(f"the filter on '{name[:64]}' is not valid: it {reason}", code="invalid_filter")
