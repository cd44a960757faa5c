"""Filters over records, with Vectorize's operators and `$and`, `$or`, as SQL over the record's metadata and fields.

A name is one of the record's own fields (`FIELDS`) or a path into its metadata, with dots; after the prefix `metadata.` it
is always a path. A record that lacks the name equals null, and differs from every other value: only `$ne` and `$nin` let it
pass. A list in the metadata equals each of its elements. A number never equals a text; true and false are 1 and 0. The
fields in `TIMES` are compared with epoch milliseconds, or with dates and times as ISO 8601.
Source: https://developers.cloudflare.com/vectorize/reference/metadata-filtering/
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from retain.errors import InvalidInput, LimitExceeded
from retain.limits.storage import MAX_INTEGER
from retain.ports import SqlValue

MAX_FILTER_BYTES = 2048
MAX_CONDITIONS = 16
"""Recall binds the values of each condition up to four times in one statement, and D1 takes 100."""
MAX_LISTED = 200
"""The most values of one `$in` or `$nin`."""
MAX_DEPTH = 4
"""How deep `$and` and `$or` are nested at most."""
TIMES = ("recorded_at_ms", "updated_at_ms", "valid_from_ms", "valid_to_ms", "expires_at_ms", "said_at_ms")
"""Fields that are times. `said_at_ms` is the time of the utterance."""
FIELDS = ("kind", "subject", "predicate", "object", "confidence", "importance", "conversation", "speaker", *TIMES)
"""The fields of a record that a filter compares."""
_OTHER_FIELDS = frozenset(
    {"id", "tenant_id", "scope_id", "content", "metadata", "superseded_by", "edited", "utterance", "gaps", "claims"}
)
_PREFIX = "metadata."
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,4}")
_RANGES = {"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
_LISTS = ("$in", "$nin")
_NOT = ("$ne", "$nin")
_JOINS = {"$and": " AND ", "$or": " OR "}

Compiled = tuple[str, list[SqlValue]]
UNCONDITIONAL = "(1)"
"""The condition of a filter that sets none."""


def compile_filter(wanted: Mapping[str, object]) -> Compiled:
    """Return the filter as a condition on `memory_records r` in brackets, and its values; `UNCONDITIONAL` when it sets none.

    In brackets, since it follows the conditions on the tenant and the scopes: an OR of it must end none of them.
    Raises: InvalidInput (code `invalid_filter`); LimitExceeded (code `filter_too_large`).
    """
    written = json.dumps(wanted, default=str, ensure_ascii=False, separators=(",", ":"))
    if len(written.encode("utf-8", "surrogatepass")) > MAX_FILTER_BYTES:
        raise LimitExceeded("the filter is too large", code="filter_too_large", limit_bytes=MAX_FILTER_BYTES)
    conditions = list(_conditions(wanted, MAX_DEPTH))
    if sum(count for count, _ in conditions) > MAX_CONDITIONS:
        raise LimitExceeded("the filter has too many conditions", code="filter_too_large", limit=MAX_CONDITIONS)
    condition, values = _joined([one for _, one in conditions], " AND ") or ("1", [])
    return f"({condition})", values


def spellings(name: str, text: str) -> tuple[str, ...]:
    """Return the texts that a record's own field may have where it equals this one.

    Of a subject these are its Unicode normal forms: it is stored in NFC, and earlier versions stored it as it came.
    """
    if name != "subject":
        return (text,)
    return tuple(dict.fromkeys([text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))]))


def names_of(wanted: Mapping[str, object]) -> frozenset[str]:
    """Return the names that a filter compares. Raises: InvalidInput (code `invalid_filter`) for `$and` without a list."""
    found: set[str] = set()
    for name, criterion in wanted.items():
        if name in _JOINS:
            found |= {inner for one in _members(name, criterion) for inner in names_of(one)}
        else:
            found.add(name)
    return frozenset(found)


def _conditions(wanted: Mapping[str, object], depth: int) -> Iterator[tuple[int, Compiled]]:
    """Yield each condition of a filter, all of which must be met, with the number of comparisons in it."""
    for name, criterion in wanted.items():
        if name in _JOINS:
            if not depth:
                raise _invalid(name, f"is nested more than {MAX_DEPTH} deep")
            inner = [list(_conditions(one, depth - 1)) for one in _members(name, criterion)]
            joined = [_joined([one for _, one in some], " AND ") or ("1", []) for some in inner]
            compiled = _joined(joined, _JOINS[name]) or ("1", [])
            yield sum(count for some in inner for count, _ in some), compiled
            continue
        operators = criterion if isinstance(criterion, Mapping) else {"$eq": criterion}
        if not operators:
            raise _invalid(name, "names no operator")
        column = _Column(name)
        for given, operand in operators.items():
            yield 1, column.condition(given, operand)


def _members(name: str, criterion: object) -> Sequence[Mapping[str, object]]:
    """Return the filters that `$and` or `$or` joins. Raises: InvalidInput."""
    if isinstance(criterion, str) or not isinstance(criterion, Sequence) or not criterion:
        raise _invalid(name, "needs a list of filters")
    if not all(isinstance(one, Mapping) for one in criterion):
        raise _invalid(name, "needs a list of filters")
    return criterion


def _joined(conditions: Sequence[Compiled], by: str) -> Compiled | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return by.join(f"({condition})" for condition, _ in conditions), [one for _, some in conditions for one in some]


class _Column:
    """What a name of a filter compares, as SQL. Names are letters, digits, `_` and `-`, so they are written into it."""

    def __init__(self, name: str) -> None:
        """Raises: InvalidInput for a name that is not one, or one of a field that no filter compares."""
        path = name.removeprefix(_PREFIX)
        if _NAME.fullmatch(path) is None:
            unknown = "is not an operator" if name.startswith("$") else "is not a name or a path of names"
            raise _invalid(name, f"{unknown}; filters join by {', '.join(_JOINS)}")
        self.name = name
        self.own = path == name and name in FIELDS
        if path == name and not self.own and (name in _OTHER_FIELDS or _bare(name) in map(_bare, FIELDS)):
            reason = f"compares {', '.join(FIELDS)} and metadata; metadata of this name is '{_PREFIX}{name}'"
            raise _invalid(name, reason)
        self._path = "'$" + "".join(f'."{part}"' for part in path.split(".")) + "'"
        # without the column's affinity: the text "2" is not the number 2
        self._value = f"(+r.{name})" if self.own else f"json_extract(r.metadata, {self._path})"
        self._type = f"typeof{self._value}" if self.own else f"json_type(r.metadata, {self._path})"

    def condition(self, given: str, operand: object) -> Compiled:
        """Return the condition of one operator. Raises: InvalidInput."""
        if given in _RANGES:
            return self._in_range(given, self._operand(operand))
        if given in _LISTS:
            if isinstance(operand, str) or not isinstance(operand, Sequence) or not 1 <= len(operand) <= MAX_LISTED:
                raise _invalid(self.name, f"{given} needs a list of 1 to {MAX_LISTED} values")
            operands = [self._operand(value) for value in operand]
        elif given in ("$eq", "$ne"):
            operands = [self._operand(operand)]
        else:
            raise _invalid(self.name, f"{given} is not an operator ($eq, $ne, {', '.join((*_LISTS, *_RANGES))})")
        condition, values = self._equal(operands)
        return (f"NOT COALESCE({condition}, 0)" if given in _NOT else condition), values

    def _equal(self, operands: Sequence[SqlValue]) -> Compiled:
        """Return the condition that the value, or an element of a list, is one of the operands."""
        some = [one for one in operands if one is not None]
        if self.own:
            some = [text for one in some for text in (spellings(self.name, one) if isinstance(one, str) else (one,))]
        absent = f"{self._value} IS NULL"
        if not some:
            return absent, []
        if len(some) == 1 and not is_long(some[0]):
            test, value = "= ?", some[0]
        else:
            test, value = "IN (SELECT value FROM json_each(?))", json.dumps(some)
        if self.own:
            condition = f"{self._value} {test}"
            values: list[SqlValue] = [value]
        else:
            element = (
                f"EXISTS (SELECT 1 FROM json_each(r.metadata, {self._path}) e"
                f" WHERE e.type NOT IN ('array', 'object') AND e.value {test})"
            )
            condition = f"CASE {self._type} WHEN 'array' THEN {element} ELSE {self._value} {test} END"
            values = [value, value]
        return (condition, values) if len(some) == len(operands) else (f"({absent} OR ({condition}))", values)

    def _in_range(self, given: str, operand: SqlValue) -> Compiled:
        """Return the condition of an order. Numbers and texts have none between them, and null and lists have none."""
        if operand is None:
            raise _invalid(self.name, f"{given} has no meaning for null")
        types = "('text')" if isinstance(operand, str) else "('integer', 'real', 'true', 'false')"
        bound, value = ("(? ->> 0)", json.dumps([operand])) if is_long(operand) else ("?", operand)
        return f"({self._type} IN {types} AND {self._value} {_RANGES[given]} {bound})", [value]

    def _operand(self, value: object) -> SqlValue:
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise _invalid(self.name, "compares with finite numbers only")
        if self.own and self.name in TIMES and isinstance(value, str):
            return self._time(value)
        if value is None or isinstance(value, str | int | float):
            return value
        raise _invalid(self.name, "compares with text, numbers, booleans and null only")

    def _time(self, text: str) -> int:
        """Return a time as epoch milliseconds; one without a time zone is in UTC. Raises: InvalidInput."""
        try:
            at = datetime.fromisoformat(text)
            return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError) as error:
            raise _invalid(self.name, "compares with epoch milliseconds or ISO 8601 times") from error


def is_long(value: SqlValue) -> bool:
    """Return whether it is a whole number that D1 takes as JSON alone: bound as itself it would become another one."""
    return isinstance(value, int) and abs(value) > MAX_INTEGER


def _bare(name: str) -> str:
    """Return a name as it may be misspelt: `validFrom` for `valid_from_ms`."""
    return name.lower().replace("_", "").removesuffix("ms")


def _invalid(name: str, reason: str) -> InvalidInput:
    return InvalidInput(f"the filter on '{name[:64]}' is not valid: it {reason}", code="invalid_filter")
