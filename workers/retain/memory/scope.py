"""Where a record belongs: tenant > house > agent > user > instance. The runtime makes scopes; no tool, prompt or model can.

A user of the tenant's application has two kinds of scopes: one inside each agent, for what this agent alone knows of the
user, and one inside the tenant, for what every agent may know that shares its users.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from retain.errors import InvalidInput, UnknownScope
from retain.identifiers import check_agent_type, check_instance_id, check_tenant, check_user_id
from retain.ports import MetadataValue, Row, SqlValue, Statement

ScopeKind = Literal["tenant", "house", "agent", "user", "instance"]
_HOUSE = re.compile(r"[a-z][a-z0-9_]{0,31}")


@dataclass(frozen=True, slots=True)
class Scope:
    """One node of a tenant's tree of scopes, named by the innermost part that is given.

    agent_type: None for a house or the whole tenant. house: the group the agent belongs to, if any. user_id: the user of
    the agent, or of the whole tenant. instance_id: only with an agent; with a user, the instance serves that user.

    Raises: InvalidInput when a part is not a valid identifier, so a scope cannot be empty or a wildcard.
    """

    tenant_id: str
    agent_type: str | None = None
    house: str | None = None
    instance_id: str | None = None
    user_id: str | None = None

    def __post_init__(self) -> None:
        check_tenant(self.tenant_id)
        if self.agent_type is not None:
            check_agent_type(self.agent_type)
        if self.house is not None and _HOUSE.fullmatch(self.house) is None:
            raise InvalidInput(f"a house must match {_HOUSE.pattern}", code="invalid_house")
        if self.instance_id is not None:
            check_instance_id(self.instance_id)
            if self.agent_type is None:
                raise InvalidInput("an instance belongs to an agent", code="invalid_scope")
        if self.user_id is not None:
            check_user_id(self.user_id)
            if self.house is not None and self.agent_type is None:
                raise InvalidInput("a user belongs to an agent or to the whole tenant", code="invalid_scope")

    @property
    def kind(self) -> ScopeKind:
        """What the scope names."""
        if self.instance_id is not None:
            return "instance"
        if self.user_id is not None:
            return "user"
        if self.agent_type is not None:
            return "agent"
        return "house" if self.house is not None else "tenant"

    @property
    def scope_id(self) -> str:
        """The scope's id within its tenant, at most 64 bytes. An instance's and a user's have a digest: names are longer."""
        match self.kind:
            case "instance":
                return f"instance.{_digest(self.agent_type, self.instance_id)}"
            case "user":
                return f"user.{_digest(self.agent_type, self.user_id)}"
            case "agent":
                return f"agent.{self.agent_type}"
            case "house":
                return f"house.{self.house}"
            case "tenant":
                return "tenant"

    @property
    def parent(self) -> Scope | None:
        """The enclosing scope, None for the tenant."""
        match self.kind:
            case "instance":
                return replace(self, instance_id=None)
            case "user":
                return replace(self, user_id=None)
            case "agent":
                return replace(self, agent_type=None)
            case "house":
                return replace(self, house=None)
            case "tenant":
                return None

    def path(self) -> list[Scope]:
        """Return this scope and its ancestors, innermost first: what is visible from here."""
        found, scope = [self], self.parent
        while scope is not None:
            found.append(scope)
            scope = scope.parent
        return found

    def around(self, kind: ScopeKind) -> Scope:
        """Return the scope of this kind on the path. Raises: InvalidInput (code `invalid_scope`) if there is none."""
        for node in self.path():
            if node.kind == kind:
                return node
        raise InvalidInput(f"the scope is not in any {kind}", code="invalid_scope")


def user_scope_id(parent_id: str | None, user_id: str) -> str:
    """Return the id of the scope of a user within a parent, an agent's scope or the tenant's. Raises: InvalidInput."""
    kind, _, name = (parent_id or "").partition(".")
    return f"user.{_digest(name if kind == 'agent' else None, check_user_id(user_id))}"


def _digest(agent_type: str | None, name: str | None) -> str:
    """Return 40 hexadecimal digits for a name within an agent, or within the tenant when there is no agent."""
    return sha256(f"{agent_type or ''}:{name}".encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class View:
    """What is visible: the paths of one scope and of others.

    scope: the innermost. also: further scopes of the tenant, such as what all agents may know of the user.

    Raises: InvalidInput (code `invalid_scope`) for scopes of several tenants or of several users.
    """

    scope: Scope
    also: tuple[Scope, ...] = ()

    def __post_init__(self) -> None:
        users = {scope.user_id for scope in self.starts if scope.user_id is not None}
        if len({scope.tenant_id for scope in self.starts}) > 1 or len(users) > 1:
            raise InvalidInput("a view has one tenant and at most one user", code="invalid_scope")

    @property
    def tenant_id(self) -> str:
        """The tenant."""
        return self.scope.tenant_id

    @property
    def nodes(self) -> tuple[Scope, ...]:
        """The visible scopes, each once: the path of `scope`, innermost first, then those of the others."""
        return tuple({node.scope_id: node for start in self.starts for node in start.path()}.values())

    @property
    def starts(self) -> tuple[Scope, ...]:
        """The scopes whose paths are visible."""
        return (self.scope, *self.also)


@dataclass(frozen=True, slots=True)
class Reach:
    """The scopes of one tenant that a query may touch, from which both the SQL predicate and the vector filter are made.

    scope_ids: as D1 has them, innermost first for what is visible from a scope. When empty, nothing is reached.
    whole: every scope of the tenant is reached, so no condition lists them; `scope_ids` are those with word statistics.
    """

    tenant_id: str
    scope_ids: tuple[str, ...]
    whole: bool = False

    def predicate(self, table: str) -> tuple[str, tuple[SqlValue, ...]]:
        """Return the condition on a row of `table`, which has `tenant_id` and `scope_id`, and its values.

        The plus signs keep SQLite from scanning all of the tenant's rows by an index: rows are found by id or number.
        """
        if self.whole:
            return f"+{table}.tenant_id = ?", (self.tenant_id,)
        return (
            f"+{table}.tenant_id = ? AND +{table}.scope_id IN (SELECT value FROM json_each(?))",
            (self.tenant_id, json.dumps(self.scope_ids)),
        )

    def vector_filter(self) -> dict[str, MetadataValue | Mapping[str, Sequence[MetadataValue]]]:
        """Return the vector index's filter. Do not query with an empty reach: it finds nothing."""
        if self.whole:
            return {"tenant_id": self.tenant_id}
        return {"tenant_id": self.tenant_id, "scope_id": {"$in": list(self.scope_ids)}}


CHAIN = """
WITH RECURSIVE chain (scope_id, parent_id, kind, records, words) AS (
  SELECT scope_id, parent_id, kind, records, words FROM scopes
  WHERE tenant_id = ?1 AND scope_id IN (SELECT value FROM json_each(?2))
  UNION
  SELECT s.scope_id, s.parent_id, s.kind, s.records, s.words
  FROM chain c JOIN scopes s ON s.tenant_id = ?1 AND s.scope_id = c.parent_id
)
SELECT scope_id, parent_id, kind, records, words FROM chain
"""
"""Scopes and their ancestors. Parameters: tenant, ids of scopes as a JSON array. The recursion ends, since the table's
constraints make a parent's kind wider than its child's."""

_DESCENT = """
WITH RECURSIVE below (scope_id) AS (
  SELECT scope_id FROM scopes WHERE tenant_id = ?1 AND {start} = ?2
  UNION
  SELECT s.scope_id FROM scopes s JOIN below b ON s.tenant_id = ?1 AND s.parent_id = b.scope_id
)
SELECT scope_id FROM below
"""
BELOW = _DESCENT.format(start="scope_id")
"""The ids of a scope and its descendants: what may be changed from the scope. Parameters: tenant, scope."""
OF_USER = _DESCENT.format(start="user_id")
"""The ids of a user's scopes, in every agent and in the tenant, and of those below. Parameters: tenant, user."""


@dataclass(frozen=True, slots=True)
class UserPlace:
    """All scopes of one user in a tenant: in each agent and in the whole tenant, with those of instances below.

    Raises: InvalidInput.
    """

    tenant_id: str
    user_id: str

    def __post_init__(self) -> None:
        check_tenant(self.tenant_id)
        check_user_id(self.user_id)


def holding(place: Scope | UserPlace, column: str) -> tuple[str, tuple[SqlValue, SqlValue]]:
    """Return the condition that a scope's id is at or below a place, and the values of ?1 and ?2 (?1 is the tenant)."""
    if isinstance(place, UserPlace):
        return f"{column} IN ({scopes_of(place)})", (place.tenant_id, place.user_id)
    if place.kind == "tenant":
        return "?2 = 'tenant'", (place.tenant_id, place.scope_id)
    return f"{column} IN ({scopes_of(place)})", (place.tenant_id, place.scope_id)


def scopes_of(place: Scope | UserPlace) -> str:
    """Return the query for the ids of the scopes at and below a place that is not a tenant; ?1 and ?2 as in `holding`."""
    return OF_USER if isinstance(place, UserPlace) else BELOW


def reach_of(view: View, chain: Sequence[Row]) -> Reach:
    """Return what is visible: the chain that `CHAIN` found in D1 from the view's scopes.

    Users and instances without a row have no records, and are left out.
    Raises: NotFound (code `unknown_scope`) when another scope of the view has no row, or when D1 and the runtime disagree
        on a scope's parent: after its agent moved to another house, or its instance began to serve a user.
    """
    found = {str(row["scope_id"]): row["parent_id"] for row in chain}
    nodes = view.nodes
    reached: list[str] = []
    for node in nodes:
        if node.scope_id not in found and node.kind in ("user", "instance"):
            continue
        parent = node.parent
        if found.pop(node.scope_id, "") != (None if parent is None else parent.scope_id):
            raise UnknownScope("the scope is unknown, or has other ancestors")
        reached.append(node.scope_id)
    if found:
        raise UnknownScope("the scope is unknown, or has other ancestors")
    return Reach(view.tenant_id, tuple(reached))


def registration(scope: Scope, condition: str = "true", *values: SqlValue) -> list[Statement]:
    """Return the statements that register the scope and its ancestors, or move it to the house it is in now.

    The widest comes first, and a scope that is registered unchanged costs no write. condition: of SQL, without which they
    do nothing, with its own values from `?6`.
    """
    return [
        (
            "INSERT INTO scopes (tenant_id, scope_id, parent_id, kind, user_id) SELECT ?1, ?2, ?3, ?4, ?5"
            f" WHERE {condition} ON CONFLICT (tenant_id, scope_id) DO UPDATE SET parent_id = excluded.parent_id"
            " WHERE parent_id IS NOT excluded.parent_id",
            (
                node.tenant_id,
                node.scope_id,
                node.parent.scope_id if node.parent else None,
                node.kind,
                node.user_id if node.kind == "user" else None,
                *values,
            ),
        )
        for node in reversed(scope.path())
    ]
