"""The databases of a deployment that has several, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from retain.ports import Clock, Kv, Sql, VectorIndex
from retain.shards.directory import TenantDirectory
from retain.shards.index import ShardedIndex
from retain.shards.place import OnShard
from retain.shards.placement import Placement
from retain.shards.sql import ShardedSql


@dataclass(frozen=True, slots=True)
class Shards:
    """Several databases, by the names of their bindings; the first is `HOME`. databases, indexes: each on its own.

    sql, index: those of the current place. directory: where tenants are. placement: where new ones go.
    """

    databases: Mapping[str, Sql]
    indexes: Mapping[str, VectorIndex]
    sql: ShardedSql
    index: ShardedIndex
    directory: TenantDirectory
    placement: Placement

    @classmethod
    def of(cls, shards: Mapping[str, tuple[Sql, VectorIndex]], kv: Kv, clock: Clock) -> Shards:
        """Return the shards of these databases with their indexes, the first one first."""
        databases = {name: sql for name, (sql, _) in shards.items()}
        indexes = {name: index for name, (_, index) in shards.items()}
        directory = TenantDirectory(databases, kv, clock)
        return cls(
            databases,
            indexes,
            ShardedSql(directory),
            ShardedIndex(directory, indexes),
            directory,
            Placement(databases, directory, clock),
        )

    def works(self) -> Iterator[OnShard]:
        """Yield the places of work on all tenants: each database, one after the other."""
        return (OnShard(name, waits=True) for name in self.databases)

    def each(self) -> Iterator[OnShard]:
        """Yield each database as a place, for what all of them have to know."""
        return (OnShard(name) for name in self.databases)
