"""What was erased in a tenant, so that an import does not bring it back unasked.

World history names every erased record, also after its tenant was erased. Erased users are known for 30 days
(migrations/0018_erased_users.sql), with their scopes; their records are named by history as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from retain.memory.records.events import LearningEvent
from retain.memory.scope import user_scope_id
from retain.ports import Row, Sql, Statement
from retain.tenants.history import HistoryEntry, digest_of

_RECORDS = """
SELECT value AS id FROM json_each(?2) WHERE EXISTS (
  SELECT 1 FROM world_history x INDEXED BY world_history_erased_records
  WHERE x.tenant_id = ?1 AND x.subject_id = value AND x.kind = 'record_erased')
UNION
SELECT subject_id FROM world_history
WHERE tenant_id = ?1 AND subject_id IN (SELECT value FROM json_each(?2)) AND seq < (
  SELECT MAX(x.seq) FROM world_history x INDEXED BY world_history_erased_tenants
  WHERE x.tenant_id = ?1 AND x.kind = 'tenant_erased')
"""
_USERS = "SELECT user_id, erased_at_ms FROM erased_users WHERE tenant_id = ?"
_TENANT = """
SELECT MAX(at_ms) AS at_ms FROM world_history INDEXED BY world_history_erased_tenants
WHERE tenant_id = ? AND kind = 'tenant_erased'
"""
_KNOWN_USERS = "SELECT user_id FROM users WHERE tenant_id = ? AND user_id IN (SELECT value FROM json_each(?))"
BROUGHT_BACK = "erased_imported"
"""The kind of the entry of world history for each record and user that an import brought back."""


@dataclass(frozen=True, slots=True)
class KnownErasures:
    """What was erased in one tenant, of what an import has.

    records: ids of erased records. users: when each was erased. known_users: those of the import that the tenant has, such
    as one who ran an agent again after the erasure.
    """

    records: frozenset[str]
    users: Mapping[str, int]
    known_users: frozenset[str]
    tenant_at_ms: int = -1
    """When all of the tenant was erased."""

    def has_record(self, stored: LearningEvent, user_id: str | None) -> bool:
        """Return whether a record was erased, or was a user's before their erasure. stored: its first event."""
        return stored.record_id in self.records or self.has_user(user_id, stored.at_ms)

    def has_user(self, user_id: str | None, at_ms: int) -> bool:
        """Return whether what was a user's at a time was erased."""
        return user_id is not None and at_ms <= self.users.get(user_id, -1)

    def has_profile(self, user_id: str, at_ms: int) -> bool:
        """Return whether the profile that a user had at a time was erased, alone or with the tenant."""
        return at_ms <= self.tenant_at_ms or self.has_user(user_id, at_ms)

    def scopes_in(self, parent: str) -> dict[str, str]:
        """Return the scopes that erased users had in an agent's scope or in the tenant's, each with its user."""
        return {user_scope_id(parent, user): user for user in self.users}


class _Owned(Protocol):
    @property
    def owner(self) -> str | None: ...
    @property
    def at_ms(self) -> int: ...


OwnedLine = TypeVar("OwnedLine", bound=_Owned)


@dataclass(frozen=True, slots=True)
class ErasedContent:
    """What was erased in a tenant, of what is not a record. users: when each was erased. tenant_at_ms: when all was."""

    users: Mapping[str, int]
    tenant_at_ms: int = -1

    def without(self, lines: Sequence[OwnedLine]) -> list[OwnedLine]:
        """Return the lines whose content was written after the erasure of their user and of the tenant, if there was one."""
        return [line for line in lines if line.at_ms > max(self.tenant_at_ms, self.users.get(line.owner or "", -1))]


NOTHING_ERASED = ErasedContent({})


async def erased_content(sql: Sql, tenant_id: str) -> ErasedContent:
    """Return what was erased in the tenant."""
    users, whole = await sql.batch([(_USERS, (tenant_id,)), (_TENANT, (tenant_id,))])
    erased = {row["user_id"]: int(row["erased_at_ms"]) for row in users.rows}
    return ErasedContent(erased, _time_of(whole.rows))


def reading(tenant_id: str, record_ids: Sequence[str], user_ids: Sequence[str]) -> list[Statement]:
    """Return the statements whose results `erased_of` reads."""
    return [
        (_RECORDS, (tenant_id, json.dumps(list(record_ids)))),
        (_USERS, (tenant_id,)),
        (_KNOWN_USERS, (tenant_id, json.dumps(list(user_ids)))),
        (_TENANT, (tenant_id,)),
    ]


def erased_of(
    records: Sequence[Row], users: Sequence[Row], known_users: Sequence[Row], tenant: Sequence[Row]
) -> KnownErasures:
    """Return what was erased, from the rows of the statements of `reading`."""
    return KnownErasures(
        frozenset(row["id"] for row in records),
        {row["user_id"]: int(row["erased_at_ms"]) for row in users},
        frozenset(row["user_id"] for row in known_users),
        _time_of(tenant),
    )


def _time_of(tenant: Sequence[Row]) -> int:
    at_ms = tenant[0]["at_ms"]
    return -1 if at_ms is None else int(at_ms)


def brought_back(subject_id: str) -> HistoryEntry:
    """Return the entry of world history for a record, or a user's scope, that an import brings back."""
    return HistoryEntry(BROUGHT_BACK, subject_id, digest_of(BROUGHT_BACK, subject_id))
