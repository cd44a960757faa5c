"""Faults that are planted in the product one at a time, to prove that the attacker finds each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from retain.application_keys.scope import OwnTenant
from retain.host.sql import SqliteSql
from retain.host.vectors import SqliteVectorIndex
from retain.memory.filters import Compiled, compile_filter
from retain.memory.recall import recall
from retain.memory.records import listing
from retain.ports import SqlResult, SqlValue, Statement
from retain.roles.role import Role
from retain.routing import router
from retain.routing.permission import Permission
from tests.attack.tenants import ATTACKER, VICTIM

Plant = Callable[[pytest.MonkeyPatch], None]
Rewrite = Callable[[str, Sequence[SqlValue]], str]
_TENANT = re.compile(r"\b(?:\w+\.)?tenant_id = (\?\d*)")
_INDEX = re.compile(r" INDEXED BY \w+")
"""An index of the tenant's rows cannot answer without the tenant."""
_WRITES = ("UPDATE", "DELETE")
_NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1600000) SELECT n FROM c"


def _rewritten(rewrite: Rewrite) -> Plant:
    """Change the statements that reach D1."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        run, batch = SqliteSql.run, SqliteSql.batch

        async def run_other(self: SqliteSql, sql: str, *values: SqlValue) -> SqlResult:
            return await run(self, rewrite(sql, values), *values)

        async def batch_other(self: SqliteSql, statements: Sequence[Statement]) -> list[SqlResult]:
            return await batch(self, [(rewrite(sql, values), values) for sql, values in statements])

        patch.setattr(SqliteSql, "run", run_other)
        patch.setattr(SqliteSql, "batch", batch_other)

    return plant


def without_tenant(table: str, *, writes: bool = False) -> Plant:
    """Let statements on a table forget the tenant: those that read, or those that change and delete rows."""
    named = re.compile(rf"\b(FROM|JOIN|UPDATE)\s+{table}\b")

    def rewrite(sql: str, _: Sequence[SqlValue]) -> str:
        concerned = named.search(sql) is not None and sql.lstrip().upper().startswith(_WRITES) == writes
        return _INDEX.sub("", _TENANT.sub(r"\1 IS NOT NULL", sql)) if concerned else sql

    return _rewritten(rewrite)


def _next_page_without_tenant(sql: str, values: Sequence[SqlValue]) -> str:
    """The first page of a list has the tenant's own; whoever comes with a cursor gets what follows, of everybody."""
    continued = "r.number > ?3" in sql and values[2] != 0
    return _TENANT.sub(r"\1 IS NOT NULL", sql) if continued else sql


def _expensive(sql: str, values: Sequence[SqlValue]) -> str:
    """Work that grows with something else than the answer."""
    concerned = sql.startswith("SELECT") and "FROM eval_runs" in sql and "LIMIT" in sql and ATTACKER in values
    return sql.replace("LIMIT ", f"LIMIT (SELECT MAX(n) * 0 FROM ({_NUMBERS})) + ", 1) if concerned else sql


def _vectors_of_everybody(patch: pytest.MonkeyPatch) -> None:
    """A query of the vector index has no filter, and its namespace is a beginning of others."""
    query = SqliteVectorIndex.query

    async def everywhere(self: SqliteVectorIndex, vector: Any, *, namespace: str, **more: Any) -> Any:
        more["filter"] = {}
        mine = await query(self, vector, namespace=namespace, **more)
        theirs = await query(self, vector, namespace=namespace.replace(ATTACKER, VICTIM), **more)
        return sorted([*mine, *theirs], key=lambda match: -match.score)[: more["top_k"]]

    patch.setattr(SqliteVectorIndex, "query", everywhere)


def _roles_not_asked(patch: pytest.MonkeyPatch) -> None:
    """Whoever Access lets in may do everything to every tenant."""

    async def everything(*_: object) -> Permission:
        return Permission("owner", None)

    patch.setattr(router, "permission", everything)


def _keys_of_every_tenant(patch: pytest.MonkeyPatch) -> None:
    """An application's key owns every tenant."""

    async def owner(*_: object) -> Role:
        return "owner"

    patch.setattr(OwnTenant, "role", owner)


def _filters_without_brackets(patch: pytest.MonkeyPatch) -> None:
    """A filter of alternatives ends the conditions before it."""

    def bare(wanted: Mapping[str, object]) -> Compiled:
        condition, values = compile_filter(wanted)
        return condition[1:-1], values

    patch.setattr(listing, "compile_filter", bare)
    patch.setattr(recall, "compile_filter", bare)


def _together(*plants: Plant) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        for one in plants:
            one(patch)

    return plant


PLANTS: Mapping[str, Plant] = {
    "roles are not asked": _roles_not_asked,
    "keys of every tenant": _keys_of_every_tenant,
    "runs of every tenant": without_tenant("agent_runs"),
    "messages of every tenant": without_tenant("conversation_messages"),
    "datasets of every tenant": without_tenant("eval_datasets"),
    "messages to webhooks of every tenant": without_tenant("webhook_deliveries"),
    "agents of every tenant": without_tenant("agent_versions"),
    "decisions of every tenant": without_tenant("decision_log"),
    "mutations of every tenant": without_tenant("mutation_log"),
    "records of every tenant": without_tenant("memory_records"),
    "cases of every tenant deleted": without_tenant("eval_cases", writes=True),
    "filters without brackets": _filters_without_brackets,
    "a cursor that leaves the tenant": _rewritten(_next_page_without_tenant),
    "vectors without filter, and records without tenant": _together(
        _vectors_of_everybody, without_tenant("memory_records")
    ),
    "work without bound": _rewritten(_expensive),
}
"""The faults. The vectors' own would not show: the records that they name are read with the tenant once more."""
