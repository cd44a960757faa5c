"""Declarations of the tables that have tenants' rows, and of what an erasure removes from each.

Each area lists its own in a `tenant_tables.py`; `retain.tenant_tables` collects them for the eraser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Erased = Literal["rows", "step", "never"]
"""How a tenant's erasure empties a table: page by page, in a step of its own that also empties other stores, or not at
all, because the table is the proof of the erasure."""


OfUsers = Literal[
    "user",
    "instance",
    "instance and user",
    "served",
    "owed",
    "part",
    "follows",
    "scope",
    "arriving",
    "step",
    "kept",
    "nobody",
]
"""How the rows of one user are found, for the erasure of that user.

user: by the column `user_id`. instance: by `agent_type` and `instance_id`, of the instances that serve the user. instance
and user: by the three columns; a row that names nobody belongs to the user whom its instance serves. served: the same, in a
table whose rows do not say whom an instance serves. owed: by
`instance_key`, or by the user's id among `parameters`, a JSON array. part: with the row that has it as a part. follows:
triggers remove them with the rows of another table. scope: by `scope_id`. arriving: they cannot be told apart yet; the
erasure waits until those from before it, by `created_at_ms`, are gone. step: in a step of its own. kept: not at all, because
they keep the user erased. nobody: they belong to no user.
"""


@dataclass(frozen=True, slots=True)
class Texts:
    """The columns of a table that may mention a person or a thing, and how a row that does is erased.

    emptied: the assignments that remove the content of a row that has to stay; without them the row is deleted.
    marked: the column that then gets the id of the erasure, as JSON. whole: columns besides the keys; a row whose key or
    `whole` columns mention the term is deleted in any case. searched: by column, a function from its parsed JSON to the
    parts in which the term is searched: field names are not.
    """

    columns: tuple[str, ...] = ()
    emptied: str | None = None
    marked: str | None = None
    whole: tuple[str, ...] = ()
    searched: Mapping[str, Callable[[object], object]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TenantTable:
    """A table whose column `tenant_id` names the tenant of each row.

    keys: the columns that identify a row. texts: what an erasure by mention searches; empty where another step erases.
    parts: tables whose rows belong to the row with the same single key, and are erased by mention with it.
    instances: whether the columns `agent_type` and `instance_id` name Durable Objects to erase.
    tenants: the column with the ids of other tenants that belong to this one and are erased before it.
    users: how one user's rows are found; None for a table without a column that could name a user, directly or not.
    unnamed: the condition on rows that name no user and belong to one all the same, with places `{tenant}` and `{theirs}`:
    the query for `agent_type` and `instance_id` of the user's instances. They are erased before all others.
    begun: the condition on rows that say whom their instance serves; None if all do, in a table that says so at all.
    listed: the table that lists, by `tenant_id`, the values of the first key; for a table without an index by tenant.
    parted: conditions of which each row meets one, where an index by tenant has only the rows that meet it.
    lease: the column with the time until which a worker has the row; the erasure of a user waits for it.
    """

    name: str
    keys: tuple[str, ...] = ()
    erased: Erased = "rows"
    texts: Texts = Texts()
    parts: Mapping[str, Texts] = field(default_factory=dict)
    instances: bool = False
    tenants: str | None = None
    users: OfUsers | None = None
    unnamed: str | None = None
    lease: str | None = None
    begun: str | None = None
    listed: str | None = None
    parted: tuple[str, ...] = ()

    def rows_of(self, tenant: str) -> str:
        """Return SQL for a tenant's rows, or for those that list them. tenant: the place of the tenant's id."""
        own = f"SELECT * FROM {self.listed or self.name} WHERE tenant_id = {tenant}"
        return " UNION ALL ".join(f"{own} AND {condition}" for condition in self.parted) or own

    def page_through_list(self, tenant: str, limit: int) -> str:
        """Return SQL for the keys of a tenant's first rows by what lists them. tenant: the place of the tenant's id."""
        first, *_ = self.keys
        keys = ", ".join(f"own.{key}" for key in self.keys)
        order = ", ".join((f"listed.{first}", *(f"own.{key}" for key in self.keys[1:])))
        return (
            f"SELECT {keys} FROM {self.listed} listed CROSS JOIN {self.name} own ON own.{first} = listed.{first}"
            f" WHERE listed.tenant_id = {tenant} ORDER BY {order} LIMIT {limit}"
        )
