"""Faults that are planted in the product one at a time, to prove that the attacker finds each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.ports import SqlResult, SqlValue, Statement
from tests.attack.tenants import ATTACKER, VICTIM
from tests.shell.platform.objects import Namespace

Plant = Callable[[pytest.MonkeyPatch], None]
_TENANT = re.compile(r"\b(?:\w+\.)?tenant_id = (\?\d*)")
_WRITES = ("UPDATE", "DELETE")


def without_tenant(table: str, *, writes: bool = False) -> Plant:
    """Plant statements on a table that forget the tenant: those that read, or those that change rows."""
    named = re.compile(rf"\b(FROM|JOIN|UPDATE)\s+{table}\b")

    def forgotten(sql: str) -> str:
        if named.search(sql) is None or (sql.lstrip().upper().startswith(_WRITES)) != writes:
            return sql
        return _TENANT.sub(r"\1 IS NOT NULL", sql)

    def plant(patch: pytest.MonkeyPatch) -> None:
        run, batch = SqliteSql.run, SqliteSql.batch

        async def run_forgetful(self: SqliteSql, sql: str, *values: SqlValue) -> SqlResult:
            return await run(self, forgotten(sql), *values)

        async def batch_forgetful(self: SqliteSql, statements: Sequence[Statement]) -> list[SqlResult]:
            return await batch(self, [(forgotten(sql), values) for sql, values in statements])

        patch.setattr(SqliteSql, "run", run_forgetful)
        patch.setattr(SqliteSql, "batch", batch_forgetful)

    plant.__doc__ = f"{'Changes' if writes else 'Reads'} of {table} forget the tenant."
    return plant


def objects_without_tenant(patch: pytest.MonkeyPatch) -> None:
    """An instance's object is found by agent and instance alone."""
    by_name = Namespace.getByName

    def found(self: Namespace, name: str) -> Any:
        return by_name(self, name.replace(f":{ATTACKER}:", f":{VICTIM}:"))

    patch.setattr(Namespace, "getByName", found)


def every(*plants: Plant) -> Plant:
    """Plant several faults that only together show."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        for one in plants:
            one(patch)

    return plant


def vectors_of_everybody(patch: pytest.MonkeyPatch) -> None:
    """A query of the vector index has neither namespace nor filter."""
    query = SqliteVectorIndex.query

    async def everywhere(self: SqliteVectorIndex, vector: Any, *, namespace: str, **more: Any) -> Any:
        more["filter"] = {}
        mine = await query(self, vector, namespace=namespace, **more)
        theirs = await query(self, vector, namespace=namespace.replace(ATTACKER, VICTIM), **more)
        return sorted([*mine, *theirs], key=lambda match: -match.score)[: more["top_k"]]

    patch.setattr(SqliteVectorIndex, "query", everywhere)
