"""The KV audit: who changed which key of KV through Retain, written to D1 after the change.

A row has the key and a digest of the value, never the value. `AuditedKv` notes what it changes; where the notes go is for
the deployment to decide: an instance's outbox, or a batch that is written when the request has its answer.
"""

from __future__ import annotations

import builtins
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass, field
from typing import Literal

from retain.errors import RetainError
from retain.identifiers import new_id
from retain.ledgers.pages import EntryPage, Look, entry_page
from retain.log import bound
from retain.ports import Clock, KeyPage, Kv, Row, Sql
from retain.roles.principals import RETAIN, agent_of_type

Operation = Literal["put", "delete"]
ROWS_PER_BATCH = 50

NOTE = """
INSERT OR IGNORE INTO kv_audit (audit_id, tenant_id, key, operation, changed_by, agent_type, instance_id, user_id, run_id,
  value_bytes, digest, ttl_s, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,
  COALESCE(?8, (SELECT user_id FROM memory_items WHERE tenant_id = ?2 AND key = ?3)), ?9, ?10, ?11, ?12, ?13)
"""
"""Notes a change. The key of an item's hot copy is the item's own, and names its user there."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KvChange:
    """A change of one key.

    changed_by: `agent:` and an agent's type, `person:` and the name from Cloudflare Access, `key:` and the id of
    an application's key, or `retain` for none of them.
    value_bytes, digest, ttl_s: of a put: the value's size in UTF-8, its SHA-256, and its time to live, None for ever.
    """

    audit_id: str
    tenant_id: str
    key: str
    operation: Operation
    changed_by: str
    agent_type: str | None
    instance_id: str | None
    user_id: str | None
    run_id: str | None
    value_bytes: int | None
    digest: str | None
    ttl_s: int | None
    at_ms: int

    @property
    def values(self) -> tuple[str | int | None, ...]:
        """The values of `NOTE`, in order."""
        return astuple(self)

    def to_json(self) -> dict[str, object]:
        """Return the change as HTTP answers have it."""
        return dict(zip(self.__slots__, astuple(self), strict=True))


@dataclass(frozen=True, slots=True)
class KvOwner:
    """Whose keys are changed."""

    tenant_id: str
    agent_type: str | None = None
    instance_id: str | None = None
    user_id: str | None = None


class AuditedKv:
    """Implements `Kv` on another one, and notes each change that succeeded. Reads cost nothing more.

    owner: called for each change. note: must not wait and must not fail.
    """

    def __init__(self, kv: Kv, owner: Callable[[], KvOwner], clock: Clock, note: Callable[[KvChange], None]) -> None:
        self._kv = kv
        self._owner = owner
        self._clock = clock
        self._note = note

    async def get(self, key: str) -> str | None:
        """See the port."""
        return await self._kv.get(key)

    async def get_many(self, keys: Sequence[str]) -> builtins.list[str | None]:
        """See the port."""
        return await self._kv.get_many(keys)

    async def put(self, key: str, value: str, *, ttl_s: int | None = None) -> None:
        """See the port."""
        await self._kv.put(key, value, ttl_s=ttl_s)
        content = value.encode()
        self._changed(key, "put", len(content), hashlib.sha256(content).hexdigest(), ttl_s)

    async def delete(self, key: str) -> None:
        """See the port."""
        await self._kv.delete(key)
        self._changed(key, "delete")

    async def list(self, prefix: str, *, cursor: str | None = None, limit: int = 1000) -> KeyPage:
        """See the port."""
        return await self._kv.list(prefix, cursor=cursor, limit=limit)

    def _changed(
        self,
        key: str,
        operation: Operation,
        value_bytes: int | None = None,
        digest: str | None = None,
        ttl_s: int | None = None,
    ) -> None:
        owner, run_id = self._owner(), bound("run_id")
        self._note(
            KvChange(
                new_id(),
                owner.tenant_id,
                key,
                operation,
                _principal(owner),
                owner.agent_type,
                owner.instance_id,
                owner.user_id,
                run_id if isinstance(run_id, str) else None,
                value_bytes,
                digest,
                ttl_s,
                self._clock(),
            )
        )


Write = Callable[[Sequence[KvChange]], None]
"""Writes changes in the background. Must not wait and must not fail."""


@dataclass(slots=True)
class _Batch:
    principal: str
    changes: list[KvChange] = field(default_factory=list)
    open: bool = True


_batch: ContextVar[_Batch | None] = ContextVar("retain_kv_changes", default=None)


def _principal(owner: KvOwner) -> str:
    batch = _batch.get()
    if batch is not None:
        return batch.principal
    return RETAIN if owner.agent_type is None else agent_of_type(owner.agent_type)


@contextmanager
def changes_of(principal: str, write: Write) -> Iterator[None]:
    """Collect the changes that a request makes, and write them together when it has its answer.

    principal: who sent it, as `changed_by` has it.
    """
    batch = _Batch(principal)
    token = _batch.set(batch)
    try:
        yield
    finally:
        _batch.reset(token)
        batch.open = False
        if batch.changes:
            write(batch.changes)


def noting(write: Write) -> Callable[[KvChange], None]:
    """Return what notes changes: in the batch of the request that makes them, or, outside of one, at once."""

    def note(change: KvChange) -> None:
        batch = _batch.get()
        if batch is not None and batch.open:
            batch.changes.append(change)
        else:
            write([change])

    return note


async def write_changes(sql: Sql, changes: Sequence[KvChange]) -> None:
    """Write changes to D1. Idempotent. Raises nothing: if D1 does not take them, that is logged."""
    try:
        for start in range(0, len(changes), ROWS_PER_BATCH):
            await sql.batch([(NOTE, change.values) for change in changes[start : start + ROWS_PER_BATCH]])
    except RetainError as error:
        _log.warning("changes in KV were not audited", extra={"changes": len(changes), "code": error.code})


async def list_changes(
    sql: Sql,
    tenant_id: str,
    *,
    prefix: str | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> EntryPage[KvChange]:
    """Return a page of a tenant's changes: newest first; with a prefix, of the keys that begin with it, by key, then time.

    Raises: InvalidInput (code `invalid_cursor`).
    """
    if prefix is None:
        look = Look("kv_audit", ("at_ms", "audit_id"), newest_first=True).where("tenant_id = ?", tenant_id)
    else:
        look = Look("kv_audit", ("key", "at_ms", "audit_id")).where("tenant_id = ?", tenant_id)
        look = look.where("key >= ? AND key < ?", prefix, f"{prefix}\U0010ffff")
    return await entry_page(sql, look.between("at_ms", since_ms, until_ms), limit, cursor, _change)


def _change(row: Row) -> KvChange:
    return KvChange(**{name: row[name] for name in KvChange.__slots__})
