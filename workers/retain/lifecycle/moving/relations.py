"""What moves with a tenant: every table with its rows, in the order in which they are copied, and how each is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.json_text import Json
from retain.ports import Row, Statement
from retain.shards.fence import MOVING
from retain.tenants.tables import TenantTable
from retain.tenants.tenant_tables import OF_MOVES

DERIVED = frozenset({"episode_counts", "memory_postings", "model_use", "tenant_use"})
"""Tables that triggers write while others are copied. They are made equal in the end, as are `scopes`."""
COUNTED = ("episode_counts", "model_use", "tenant_use")
"""Those of them that have few rows for each tenant."""
AT_LAST = ("erased_tenants", "erased_users", "quotas")
"""Copied at the end alone: triggers that find them refuse rows, and the copy is not to be refused any."""
LAST = ("scopes", *AT_LAST)
"""Written after other rows. Scopes count what is in them."""
FOLLOWING = frozenset({"days_kept", "timelines"})
"""Tables that follow from others by triggers, on both sides: nothing is to be copied or removed."""
_FIRST = ("users", "scopes", "tenants")
"""What triggers look for when other rows are written."""
TEXTS: Mapping[str, str] = {"memory_search": "memory_text", "memory_earlier": "memory_earlier_text"}
"""Full texts by the table whose rows have their numbers."""

_ORDERS: Mapping[str, tuple[str, ...]] = {
    "agent_runs": ("agent_type", "instance_id", "run_id"),
    "memory_records": ("number",),
    "memory_episodes": ("agent_type", "instance_id", "created_at_ms", "episode_id"),
    "conversation_messages": ("agent_type", "instance_id", "message_id"),
    "attachment_uses": ("agent_type", "instance_id", "run_id", "attachment_id"),
    "memory_item_objects": ("key", "object_key"),
    "kv_audit": ("at_ms", "audit_id"),
    "decision_log": ("at_ms", "decision_id"),
    "decision_memories": ("memory_id", "decision_id", "kind"),
    "mutation_subjects": ("thing", "key"),
    "scopes": ("scope_id",),
    "ingest_jobs": ("created_at_ms", "job_id"),
}
"""The order in which an index has a tenant's rows of a large table, where it is not that of the keys."""
# Another state than these violates a check.
_NOBODY_LEAVES = f"UPDATE tenant_places SET state = 'recorded' WHERE {MOVING} AND state IN ('leaving', 'frozen')"
OF_PAGES = frozenset({"at_number", "at_key", "at_count", "at_bytes"})
"""What a page has besides the columns of the table."""
_SUMS = ", ".join(f"SUM(number % 999983 * {column})" for column in ("records", "words"))
"""Of what scopes count: two numbers that change places change the sums. A freeze has no time to read all scopes."""
_OF_RECORDS: Mapping[str, tuple[str, str]] = {
    "memory_search": ("number", "number"),
    "memory_likeness": ("record_id", "id"),
}
"""Tables without an index by tenant whose rows belong to records: the column, and that of the record."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table. keys: the columns that identify a row. order: those by which a tenant's rows are read, page by page.

    listed: the table that lists the first key's values of a tenant, where no index does.
    """

    name: str
    keys: tuple[str, ...]
    order: tuple[str, ...]
    listed: str | None = None

    def page(self, tenant_id: str, after: Sequence[Json] | None, limit: int, picked: str = "t.*") -> Statement:
        """Return the statement for the rows after the one with these values in the columns of the order.

        picked: what of each row `t`.
        """
        if self.name in _OF_RECORDS:
            own, of_record = _OF_RECORDS[self.name]
            return (
                f"SELECT {picked}, r.number AS at_number FROM memory_records r"
                f" CROSS JOIN {self.name} t ON t.{own} = r.{of_record}"
                " WHERE r.tenant_id = ? AND r.number > ? ORDER BY r.number LIMIT ?",
                (tenant_id, -1 if after is None else int(str(after[0])), limit),
            )
        if self.listed is not None:
            first, *others = self.keys
            order = ", ".join((f"listed.{first}", *(f"t.{key}" for key in others)))
            marks = ", ".join(f"json_extract(?2, '$[{place}]')" for place in range(len(self.keys)))
            beyond = f" AND listed.{first} >= json_extract(?2, '$[0]') AND ({order}) > ({marks})"
            return (
                f"SELECT {picked} FROM {self.listed} listed CROSS JOIN {self.name} t ON t.{first} = listed.{first}"
                f" WHERE listed.tenant_id = ?1{'' if after is None else beyond} ORDER BY {order} LIMIT ?3",
                (tenant_id, json.dumps(after), limit),
            )
        beyond = ""
        values: tuple[str, ...] = ()
        if after is not None:
            places = ", ".join(f"json_extract(?, '$[{place}]')" for place in range(len(self.order)))
            beyond = f" AND ({', '.join(self.order)}) > ({places})"
            values = (json.dumps(list(after)),) * len(self.order)
        return (
            f"SELECT {picked} FROM {self.name} t WHERE tenant_id = ?{beyond} ORDER BY {', '.join(self.order)} LIMIT ?",
            (tenant_id, *values, limit),
        )

    def bounded_page(
        self, tenant_id: str, after: Sequence[Json] | None, limit: int, columns: Sequence[str], limit_bytes: int
    ) -> Statement:
        """Return the statement for as many rows of a page as have this size together, and one more.

        columns: all of the table. Each row has in `at_count` how many the page would have.
        """
        text, values = self.page(tenant_id, after, limit)
        order = "at_number" if self.name in _OF_RECORDS else ", ".join(self.order)
        return _bounded(text, order, columns, limit_bytes), values

    def position(self, row: Row) -> list[Json]:
        """Return where the page after this row begins."""
        return [row["at_number"]] if self.name in _OF_RECORDS else [row[column] for column in self.order]

    def key(self, row: Row) -> list[Json]:
        """Return the values that identify a row."""
        return [row[column] for column in self.keys]

    def named(self, tenant_id: str, keys: Sequence[Sequence[Json]], picked: str = "t.*") -> Statement:
        """Return the statement for the rows with these keys. picked: as of `page`."""
        meet = " AND ".join(f"t.{column} = one.value ->> {place}" for place, column in enumerate(self.keys))
        return (
            f"SELECT {picked} FROM json_each(?) one CROSS JOIN {self.name} t ON {meet} WHERE t.tenant_id = ?",
            (json.dumps(keys), tenant_id),
        )

    def bounded_named(
        self, tenant_id: str, keys: Sequence[Sequence[Json]], columns: Sequence[str], limit_bytes: int
    ) -> Statement:
        """Return the statement for as many of the rows with these keys as have this size together, and one more.

        columns: all of the table. Each row has in `at_count` how many there are, and in `at_key` which of the keys it has.
        """
        text, values = self.named(tenant_id, keys, "t.*, one.key AS at_key")
        return _bounded(text, "at_key", columns, limit_bytes), values

    def foreign(self, tenant_id: str, keys: Sequence[Sequence[Json]]) -> Statement:
        """Return the statement that finds a row of another tenant with one of these keys."""
        text, values = self.named(tenant_id, keys)
        return f"{text.replace('t.tenant_id = ?', 't.tenant_id <> ?')} LIMIT 1", values

    def deleting(self, tenant_id: str, keys: Sequence[Sequence[Json]]) -> Statement:
        """Return the statement that deletes these rows. It looks for these alone, not among all of the tenant's."""
        values = ", ".join(f"value ->> {place}" for place in range(len(self.keys)))
        return (
            f"DELETE FROM {self.name} WHERE +tenant_id = ?"
            f" AND ({', '.join(self.keys)}) IN (SELECT {values} FROM json_each(?))",
            (tenant_id, json.dumps(keys)),
        )

    def writing(self, rows: Sequence[Row]) -> Statement:
        """Return the statement that writes rows over those with their keys. rows: at least one, all of one table.

        It fails (ConstraintViolated) over a row of another tenant: an import may have brought its id.
        """
        columns = [column for column in rows[0] if column not in OF_PAGES]
        listed = json.dumps([[row[column] for column in columns] for row in rows])
        values = ", ".join(f"value ->> {place}" for place in range(len(columns)))
        new = {column: f"excluded.{column}" for column in columns if column not in self.keys}
        if "tenant_id" in new:
            new["tenant_id"] = f"CASE {self.name}.tenant_id WHEN excluded.tenant_id THEN excluded.tenant_id END"
        others = [f"{column} = {value}" for column, value in new.items()]
        over = f"UPDATE SET {', '.join(others)}" if others else "NOTHING"
        return (
            f"INSERT INTO {self.name} ({', '.join(columns)}) SELECT {values} FROM json_each(?) WHERE true"
            f" ON CONFLICT ({', '.join(self.keys)}) DO {over}",
            (listed,),
        )

    def counting(self, tenant_id: str) -> Statement:
        """Return the statement that counts a tenant's rows."""
        if self.name in _OF_RECORDS:
            own, of_record = _OF_RECORDS[self.name]
            return (
                f"SELECT COUNT(*) AS n FROM memory_records r CROSS JOIN {self.name} t ON t.{own} = r.{of_record}"
                " WHERE r.tenant_id = ?",
                (tenant_id,),
            )
        if self.listed is not None:
            key = self.keys[0]
            return (
                f"SELECT COUNT(*) AS n FROM {self.listed} listed CROSS JOIN {self.name} t ON t.{key} = listed.{key}"
                " WHERE listed.tenant_id = ?",
                (tenant_id,),
            )
        return f"SELECT COUNT(*) AS n FROM {self.name} WHERE tenant_id = ?", (tenant_id,)

    def comparing(self, tenant_id: str) -> Statement:
        """Return the statement whose `n` shows whether two databases differ: the number of rows, and what scopes count."""
        text, values = self.counting(tenant_id)
        return (text.replace("COUNT(*)", f"json_array(COUNT(*), {_SUMS})") if self.name == "scopes" else text), values

    def recording(self) -> list[Statement]:
        """Return the statements that let a database note which rows of leaving tenants change."""
        statements: list[Statement] = []
        for event, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old")):
            key = ", ".join(f"{row}.{column}" for column in self.keys)
            noted = (
                "INSERT INTO tenant_changes (tenant_id, relation, key)"
                f" VALUES ({row}.tenant_id, '{self.name}', json_array({key}));"
            )
            if event == "UPDATE":
                before = ", ".join(f"old.{column}" for column in self.keys)
                noted += (
                    " INSERT INTO tenant_changes (tenant_id, relation, key)"
                    f" SELECT old.tenant_id, '{self.name}', json_array({before})"
                    f" WHERE json_array({before}) <> json_array({key});"
                )
            statements.append(
                (
                    f"CREATE TRIGGER IF NOT EXISTS {self._trigger(event)} AFTER {event} ON {self.name} WHEN EXISTS"
                    f" (SELECT 1 FROM tenant_places WHERE tenant_id = {row}.tenant_id AND state IN ('leaving', 'frozen'))"
                    f" BEGIN {noted} END",
                    (),
                )
            )
        return statements

    def not_recording(self) -> list[Statement]:
        """Return the statements that end `recording`. They fail while a tenant leaves the database."""
        dropped = [f"DROP TRIGGER IF EXISTS {self._trigger(event)}" for event in ("INSERT", "UPDATE", "DELETE")]
        return [(statement, ()) for statement in (_NOBODY_LEAVES, *dropped)]

    def _trigger(self, event: str) -> str:
        return f"moving_{self.name}_{event.lower()}"


def _bounded(text: str, order: str, columns: Sequence[str], limit_bytes: int) -> str:
    """Return the query for the first rows of another one, in an order, until they have this size together."""
    size = " + ".join(f"COALESCE(length(CAST({column} AS BLOB)), 0)" for column in columns)
    before = f"SUM({size}) OVER (ORDER BY {order}) - ({size}) AS at_bytes"
    return (
        f"SELECT * FROM (SELECT p.*, COUNT(*) OVER () AS at_count, {before} FROM ({text}) p)"
        f" WHERE at_bytes < {limit_bytes:d} ORDER BY {order}"
    )


def relations_of(tables: Sequence[TenantTable]) -> list[Relation]:
    """Return what moves, in the order of the copy: each table once. tables: every table with rows of tenants."""
    named = {table.name: table for table in tables if table.name not in OF_MOVES | FOLLOWING}
    order = [*_FIRST, *(name for name in named if name not in {*_FIRST, *LAST, *DERIVED}), *sorted(DERIVED), *AT_LAST]
    return [_relation(named[name]) for name in order]


def _relation(table: TenantTable) -> Relation:
    own = tuple(column for column in table.keys if column != "tenant_id")
    return Relation(table.name, table.keys, _ORDERS.get(table.name, own or table.keys), table.listed)
