"""The datasets of a tenant in D1. A name has one current version; a version stays while a run over it is under way."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from retain.errors import Conflict, NotFound, QuotaExceeded
from retain.evaluation.dataset import Case, Dataset, Definition, Target, check_dataset_name
from retain.json_text import JsonObject, read_own_json
from retain.ports import Clock, Row, Sql, Statement

MAX_DATASETS = 100
"""Datasets of one tenant."""

_SHOWN = "tenant_id, name, version, definition, cases, created_at_ms, updated_at_ms"
_CURRENT = f"SELECT {_SHOWN} FROM eval_datasets WHERE tenant_id = ? AND name = ? AND current = 1"  # noqa: S608
_LIST = f"""
SELECT {_SHOWN} FROM eval_datasets WHERE tenant_id = ? AND name > ? AND current = 1 ORDER BY name LIMIT ?
"""  # noqa: S608
_OTHERS = "SELECT COUNT(DISTINCT name) AS n FROM eval_datasets WHERE tenant_id = ? AND name <> ?"
_STEP_DOWN = "UPDATE eval_datasets SET current = 0 WHERE tenant_id = ? AND name = ? AND version <> ?"
_PUT = """
INSERT INTO eval_datasets (tenant_id, name, version, definition, cases, current, created_at_ms, updated_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?6)
ON CONFLICT (tenant_id, name, version) DO UPDATE SET updated_at_ms = excluded.updated_at_ms, current = 1 WHERE current = 0
"""
_PUT_CASES = """
INSERT INTO eval_cases (tenant_id, name, version, position, content)
SELECT ?1, ?2, ?3, key, value FROM json_each(?4) WHERE true
ON CONFLICT (tenant_id, name, version, position) DO UPDATE SET content = excluded.content WHERE content IS NULL
"""
_UNUSED = """
tenant_id = ?1 AND name = ?2 AND version NOT IN
  (SELECT version FROM eval_datasets WHERE tenant_id = ?1 AND name = ?2 AND current = 1)
AND version NOT IN (SELECT version FROM eval_runs WHERE tenant_id = ?1 AND dataset = ?2 AND state = 'running')
"""
_CASES = "SELECT content FROM eval_cases WHERE tenant_id = ? AND name = ? AND version = ? ORDER BY position"
_CASE = "SELECT content FROM eval_cases WHERE tenant_id = ? AND name = ? AND version = ? AND position = ?"
_RUNNING = "SELECT run_id FROM eval_runs WHERE tenant_id = ? AND dataset = ? AND state = 'running' LIMIT 1"


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A dataset without its cases. version: hash of its content. cases: how many."""

    name: str
    version: str
    description: str
    target: Target
    thresholds: dict[str, float]
    cases: int
    created_at_ms: int
    updated_at_ms: int

    def to_json(self) -> JsonObject:
        """Return it as shown."""
        return {**asdict(self), "target": self.target.model_dump(mode="json", exclude_unset=True)}


class Datasets:
    """Datasets of all tenants; every call names one."""

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock

    async def put(self, tenant_id: str, name: str, dataset: Dataset) -> tuple[DatasetInfo, bool]:
        """Make this content the name's current version; return it, and whether it is new. Idempotent.

        Versions that are no longer needed are deleted.
        Raises: InvalidInput; LimitExceeded; QuotaExceeded (code `too_many_datasets`); Conflict.
        """
        check_dataset_name(name)
        dataset.check_memories()
        others, before = await self._sql.batch([(_OTHERS, (tenant_id, name)), (_CURRENT, (tenant_id, name))])
        if int(others.rows[0]["n"]) >= MAX_DATASETS:
            raise QuotaExceeded(
                "the tenant has as many datasets as it may", code="too_many_datasets", limit=MAX_DATASETS
            )
        version, now = dataset.version, self._clock()
        contents = f"[{','.join(dataset.content())}]"
        await self._sql.batch(
            [
                (_STEP_DOWN, (tenant_id, name, version)),
                (_PUT, (tenant_id, name, version, dataset.definition(), len(dataset.cases), now)),
                (_PUT_CASES, (tenant_id, name, version, contents)),
                *_forgotten(tenant_id, name),
            ]
        )
        same = bool(before.rows) and before.rows[0]["version"] == version
        return await self.info(tenant_id, name), not same

    async def info(self, tenant_id: str, name: str) -> DatasetInfo:
        """Return a dataset without its cases. Raises: InvalidInput; NotFound (code `no_such_dataset`)."""
        rows = (await self._sql.run(_CURRENT, tenant_id, check_dataset_name(name))).rows
        if not rows:
            raise NotFound("there is no such dataset", code="no_such_dataset")
        return _info(rows[0])

    async def cases(self, tenant_id: str, name: str, version: str) -> list[JsonObject | None]:
        """Return the cases of a version as they were put; None for one that was erased."""
        rows = (await self._sql.run(_CASES, tenant_id, name, version)).rows
        return [None if row["content"] is None else read_own_json(row["content"]) for row in rows]

    async def case(self, tenant_id: str, name: str, version: str, position: int) -> Case:
        """Return one case. Raises: NotFound (code `case_erased`) for one that no longer exists."""
        rows = (await self._sql.run(_CASE, tenant_id, name, version, position)).rows
        if not rows or rows[0]["content"] is None:
            raise NotFound("the case was erased", code="case_erased")
        return Case.model_validate_json(rows[0]["content"])

    async def page(self, tenant_id: str, *, after: str, limit: int) -> list[DatasetInfo]:
        """Return the datasets after a name, by name."""
        return [_info(row) for row in (await self._sql.run(_LIST, tenant_id, after, limit)).rows]

    async def delete(self, tenant_id: str, name: str) -> None:
        """Delete a dataset with all its versions; the results of its runs stay.

        Raises: NotFound (code `no_such_dataset`); Conflict (code `evaluation_running`) while a run needs it.
        """
        await self.info(tenant_id, name)
        if (await self._sql.run(_RUNNING, tenant_id, name)).rows:
            raise Conflict("a run over the dataset is under way", code="evaluation_running")
        gone: Statement = ("DELETE FROM eval_datasets WHERE tenant_id = ? AND name = ?", (tenant_id, name))
        await self._sql.batch([gone, ("DELETE FROM eval_cases WHERE tenant_id = ? AND name = ?", (tenant_id, name))])


def _forgotten(tenant_id: str, name: str) -> list[Statement]:
    """Return the statements that delete the versions that are neither current nor under evaluation."""
    return [
        (f"DELETE FROM {table} WHERE {_UNUSED}", (tenant_id, name))  # noqa: S608
        for table in ("eval_cases", "eval_datasets")
    ]


def _info(row: Row) -> DatasetInfo:
    definition = Definition.model_validate_json(row["definition"])
    return DatasetInfo(
        row["name"],
        row["version"],
        definition.description,
        definition.target,
        {str(metric): bound for metric, bound in definition.thresholds.items()},
        int(row["cases"]),
        int(row["created_at_ms"]),
        int(row["updated_at_ms"]),
    )
