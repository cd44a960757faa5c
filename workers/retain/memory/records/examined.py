"""What a list with a filter looks at for a page where no index finds it by one value: a bounded number of records.

They are the first after the page before, of those that an index finds for several values, or of all of a tenant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from retain.memory.records.narrowing import Lookup, lookups
from retain.ports import SqlValue

EXAMINED = 1000
"""How many records a list looks at for a page, if none of the few that it looks at first meets the filter."""
_MOST_NAMES = 4
"""The most names of which indexes are asked at once. D1 permits five parts of a compound statement."""
_FOUND = """
SELECT {group} * 1000 + one.key AS part, n.value AS number
FROM json_each(?{given} -> '$[{group}]') one CROSS JOIN json_each((
  SELECT json_group_array(number) FROM (
    SELECT p.number FROM {source} WHERE p.tenant_id = ?1 AND {condition} AND {value} = one.value AND p.number > ?3
    ORDER BY p.number LIMIT {most}))) n
"""
_FULL = "SELECT MAX(number) AS last FROM ({numbers}) GROUP BY part HAVING COUNT(*) >= {most}"
_OF_TENANT = """
SELECT number FROM memory_records INDEXED BY memory_records_by_number
WHERE tenant_id = ?1 AND number > ?3 ORDER BY number LIMIT 1 OFFSET {most} - 1
"""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some of the records, as SQL with the parameters ?1, the tenant, ?3, the number after which they begin, and `values`.

    source: from FROM on, with the rows as `r`; its condition is to be added. last: a query for the number with which it
    ends, null if it ends with the last record. values: of the parameters from `given` on.
    """

    source: str
    last: str
    values: tuple[SqlValue, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """What an index is asked for: one look-up for each name, with all its values."""

    lookups: tuple[Lookup, ...]

    @property
    def of_metadata(self) -> bool:
        """Whether a name is of the metadata, of which an index lacks the values of records that have many."""
        return any(one.index is None for one in self.lookups)

    def part(self, most: int, given: int) -> Stretch:
        """Return the first records that are found. most: about how many. given: the number of its parameter."""
        each = most // sum(len(one.values) for one in self.lookups) + 1
        numbers = " UNION ALL ".join(
            _FOUND.format(
                group=group,
                given=given,
                source=one.source,
                condition=one.condition,
                value=one.value,
                most=each,
            )
            for group, one in enumerate(self.lookups)
        )
        source = f"FROM (SELECT DISTINCT number FROM ({numbers})) n CROSS JOIN memory_records r ON r.number = n.number"
        last = f"SELECT MIN(last) AS last FROM ({_FULL.format(numbers=numbers, most=each)})"
        return Stretch(f"{source} WHERE true", last, (json.dumps([one.values for one in self.lookups]),))


def first_of_tenant(most: int) -> Stretch:
    """Return the first records of the tenant."""
    last = f"({_OF_TENANT.format(most=most)})"
    source = f"FROM memory_records r WHERE r.number > ?3 AND r.number <= COALESCE({last}, 9e15)"
    return Stretch(source, f"SELECT {last} AS last", ())


def several(wanted: Mapping[str, object]) -> Names | None:
    """Return what to ask indexes for, for a list, in order of storage; None if they do not find what meets the filter.

    wanted: as `compile_filter` took it. What is in a range is not in the order of storage.
    """
    found = lookups(wanted)
    names: dict[tuple[str, str | None], Lookup] = {}
    for one in found:
        earlier = names.get((one.name, one.index))
        values = one.values if earlier is None else tuple(dict.fromkeys((*earlier.values, *one.values)))
        names[one.name, one.index] = replace(one, values=values)
    if not found or any(one.in_range for one in found) or len(names) > _MOST_NAMES:
        return None
    return Names(tuple(names.values()))
