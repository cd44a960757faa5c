"""Whose data a request, a call of an object or a scheduled work is about: it decides which database is asked.

D1 knows no sessions, and the parts of Retain know one `Sql`. So the place is a context, as the name to which writes are
attributed is (`retain.tenants.attribution`): set once, where the tenant becomes known. Where there is one database, nothing
reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

HOME: Final = "DB"
"""The first database: it also has what belongs to the deployment, and the directory of tenants."""


@dataclass(slots=True)
class OfTenant:
    """One tenant. vectors_on: the shard whose index got vectors that are to be committed to its database next."""

    tenant_id: str
    vectors_on: str | None = None


@dataclass(frozen=True, slots=True)
class OnShard:
    """One database. waits: whether what is done is about all of its tenants, and waits while one of them comes or goes."""

    shard: str
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Everywhere:
    """All databases. Only reads are possible: their rows are those of each, one database after the other."""


Place = OfTenant | OnShard | Everywhere
_place: ContextVar[Place | None] = ContextVar("retain_place", default=None)


def current_place() -> Place | None:
    """Return the place, None where none was set."""
    return _place.get()


@contextmanager
def at(place: Place) -> Iterator[None]:
    """Let what is done meanwhile, and work that is started meanwhile, be at a place."""
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def in_tenant(tenant_id: str) -> AbstractContextManager[None]:
    """Be where a tenant lives, meanwhile. It follows the tenant if it moves."""
    return at(OfTenant(tenant_id))


def at_home() -> AbstractContextManager[None]:
    """Be on the first database, meanwhile: with what belongs to the deployment."""
    return at(OnShard(HOME))


def everywhere() -> AbstractContextManager[None]:
    """Read on all databases, meanwhile."""
    return at(Everywhere())


def without_waiting() -> AbstractContextManager[None]:
    """Be on the same database, meanwhile, even while a tenant comes or goes: for what belongs to none."""
    place = current_place()
    return at(OnShard(place.shard)) if isinstance(place, OnShard) else nullcontext()


def shard_here() -> str:
    """Return the database of the work that is done now, `HOME` where there is one."""
    place = current_place()
    return place.shard if isinstance(place, OnShard) else HOME
