"""Which indexes find the records that meet a filter, and the SQL that asks them for a bounded number.

Equality, `$in` and ranges on names at the top of the metadata are found in `memory_postings`, and equality and `$in` on some
of a record's own fields in indexes of their own. `$and` needs one of its members found, `$or` all of them. An index may find
more than what meets the filter, never less, unless its answer is full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from retain.memory.filters import FIELDS, is_long, spellings
from retain.ports import SqlValue

POSTED_CHARACTERS = 100
"""Characters of a text in the metadata by which it is found (migrations/0040_postings.sql)."""
_RARE_KINDS = ("task", "instruction")
_INDEXES = {
    "subject": "memory_records_by_subject",
    "object": "memory_records_by_object",
    "conversation": "memory_records_by_conversation",
    "predicate": "memory_records_by_predicate",
    "kind": "memory_records_by_rare_kind",
}
"""The indexes of fields, those first of which a value has the fewest records."""
_PREFIX = "metadata."
_FEW = 4
_LOWER, _UPPER = ("$gt", "$gte"), ("$lt", "$lte")


@dataclass(frozen=True, slots=True)
class Lookup:
    """What one index is asked for: records that have one of some values, or a value in a range.

    name: of a field, or of metadata. index: the index of a field; None for metadata. values: those of which a record has
    one; of a range both ends, None for an open one.
    """

    name: str
    index: str | None
    values: tuple[SqlValue, ...]
    in_range: bool = False

    @property
    def source(self) -> str:
        """SQL for the part FROM, with the table `p`."""
        return "memory_postings p" if self.index is None else f"memory_records p INDEXED BY {self.index}"

    @property
    def condition(self) -> str:
        """SQL of what rows of `p` are of the name, besides their tenant and value.

        Names are letters, digits, `_` and `-`, so they are written into it.
        """
        if self.index is None:
            return f"p.field = '{self.name}'"
        return f"p.kind IN {_RARE_KINDS}" if self.name == "kind" else f"p.{self.name} IS NOT NULL"

    @property
    def value(self) -> str:
        """SQL of the value of a row of `p`."""
        return "p.value" if self.index is None else f"p.{self.name}"

    @property
    def parts(self) -> int:
        """How many parts the answer has: one for each value, or one of a range."""
        return 1 if self.in_range else len(self.values)

    def rows(self, tenant: str, given: str, most: int, first: int) -> str:
        """Return SQL for rows of `part` and `number`: at most so many records of each part, the newest.

        Those of a range are the ones with the greatest values. tenant, given: SQL of the tenant, and of `values` as a JSON
        array. first: the first part's number.
        """
        of_name = f"SELECT p.number FROM {self.source} WHERE p.tenant_id = {tenant} AND {self.condition}"
        if self.in_range:
            own = f"{of_name} AND {' AND '.join(self._ends(given))} ORDER BY {self.value} DESC LIMIT {most}"
            return f"SELECT {first} AS part, number FROM ({own})"
        newest = f"{of_name} AND {self.value} = {{value}} ORDER BY p.number DESC LIMIT {most}"
        if len(self.values) == 1:
            return f"SELECT {first} AS part, number FROM ({newest.format(value=f'{given} ->> 0')})"
        array = f"(SELECT json_group_array(number) FROM ({newest.format(value='one.value')}))"
        each = f"json_each({given}) one CROSS JOIN json_each({array}) n"
        return f"SELECT {first} + one.key AS part, n.value AS number FROM {each}"

    def _ends(self, given: str) -> Iterator[str]:
        """Yield the conditions of a range. Every number is less than the empty text, which is the least text."""
        lower, upper = self.values
        if lower is not None:
            yield f"{self.value} >= {given} ->> 0"
        elif isinstance(upper, str):
            yield f"{self.value} >= ''"
        if upper is not None:
            yield f"{self.value} <= {given} ->> 1"
        elif not isinstance(lower, str):
            yield f"{self.value} < ''"


def lookups(wanted: Mapping[str, object]) -> tuple[Lookup, ...]:
    """Return look-ups that together find what meets a filter, none if no index does. wanted: as `compile_filter` took it."""
    found = []
    for name, criterion in wanted.items():
        if name == "$and":
            found += [lookups(one) for one in _members(criterion)]
        elif name == "$or":
            each = [lookups(one) for one in _members(criterion)]
            found.append(tuple(one for some in each for one in some) if all(each) else ())
        else:
            found.append(_of(name, criterion))
    return min(filter(None, found), key=_width, default=())


def single(wanted: Mapping[str, object]) -> Lookup | None:
    """Return the look-up of one value that finds what meets a filter, in the order of the records; None if none does.

    Its value is bound as itself, so it is not a number that cannot be.
    """
    found = lookups(wanted)
    one = found[0] if len(found) == 1 else None
    return one if one is not None and one.parts == 1 and not one.in_range and not is_long(one.values[0]) else None


def _width(found: Sequence[Lookup]) -> tuple[bool, int, int]:
    """Return what orders look-ups: those first that find fewer records, as far as that can be guessed."""
    fields = list(_INDEXES)
    place = max(fields.index(one.name) if one.index else len(fields) for one in found)
    return any(one.in_range for one in found), sum(one.parts for one in found), place


def _of(name: str, criterion: object) -> tuple[Lookup, ...]:
    path = name.removeprefix(_PREFIX)
    own = path == name and name in FIELDS
    if "." in path or (own and name not in _INDEXES):
        return ()
    operators = criterion if isinstance(criterion, Mapping) else {"$eq": criterion}
    listed = [operators["$eq"]] if "$eq" in operators else operators.get("$in")
    if isinstance(listed, Sequence):
        values = [_value(one) for one in listed]
        if None in values:
            return ()
        if not own:
            return _each(path, None, tuple(dict.fromkeys(values)))
        each = [spellings(name, one) for one in values if isinstance(one, str)]  # the columns are texts
        texts = tuple(dict.fromkeys(one for some in each for one in some))
        found = texts and (name != "kind" or set(texts) <= set(_RARE_KINDS))
        return _each(name, _INDEXES[name], texts) if found else ()
    ends = [next((_value(operators[one]) for one in side if one in operators), None) for side in (_LOWER, _UPPER)]
    return () if own or ends == [None, None] else (Lookup(path, None, tuple(ends), in_range=True),)


def _each(name: str, index: str | None, values: tuple[SqlValue, ...]) -> tuple[Lookup, ...]:
    """Return look-ups of the values: one of each if these are few, because an element of a list costs a row."""
    own = [(value,) for value in values] if len(values) <= _FEW else [values]
    return tuple(Lookup(name, index, one) for one in own)


def _value(given: object) -> SqlValue:
    """Return a value as it is indexed; None for null."""
    if isinstance(given, str):
        return given[:POSTED_CHARACTERS]
    return int(given) if isinstance(given, bool) else given if isinstance(given, int | float) else None


def _members(criterion: object) -> Sequence[Mapping[str, object]]:
    """Return the filters that `$and` or `$or` joins."""
    return [one for one in criterion if isinstance(one, Mapping)] if isinstance(criterion, Sequence) else []
