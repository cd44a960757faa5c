"""Runs of evaluations in D1: the dataset of each, its progress, and one result per case.

A run is `running` until every case is scored, `cleaning` until every scratch tenant is erased, then `completed`. The
worker on it holds its lease. A lease that ends too early harms nothing: every step can be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from retain.errors import Conflict, NotFound
from retain.evaluation.dataset import MAX_CASES, Definition
from retain.evaluation.datasets import DatasetInfo
from retain.evaluation.results import Outcome, Result, result_of, summary
from retain.evaluation.scoring.scores import Observation, Score
from retain.identifiers import check_id, new_id
from retain.jobs import Leases
from retain.json_text import JsonObject
from retain.limits.pages import cut, sized
from retain.ports import Clock, Row, Sql, Statement

State = Literal["running", "cleaning", "completed"]
MAX_OUTPUT_BYTES = 64 * 1024
"""Longest output that a result keeps; the scorers read all of it."""
MAX_OBSERVED_BYTES = 256 * 1024
"""Largest record of what a case did that a result keeps; beyond it, arguments are left out."""

_START = """
INSERT INTO eval_runs (run_id, tenant_id, dataset, version, definition, state, request_key, created_at_ms, updated_at_ms)
SELECT ?1, tenant_id, name, version, definition, 'running', ?4, ?5, ?5 FROM eval_datasets
WHERE tenant_id = ?2 AND name = ?3 AND version = ?6
"""
_START_CASES = """
INSERT INTO eval_results (run_id, position, tenant_id, case_id, state)
SELECT ?1, position, tenant_id, COALESCE(json_extract(content, '$.id'), 'erased'), 'pending' FROM eval_cases
WHERE tenant_id = ?2 AND name = ?3 AND version = ?4
"""
_BY_KEY = "SELECT run_id, dataset FROM eval_runs WHERE tenant_id = ? AND request_key = ?"
_RUN = "SELECT * FROM eval_runs WHERE run_id = ? AND tenant_id = ?"
_RESULTS = """
SELECT position, case_id, state, outcome, scores, error, started_at_ms, scored_at_ms FROM eval_results
WHERE run_id = ? ORDER BY position
"""
_TEXTS = sized(
    "SELECT position, output, observed FROM eval_results WHERE run_id = ? AND position > ? ORDER BY position LIMIT ?",
    "position",
    "output",
    "observed",
)
_LIST = """
SELECT r.*, (SELECT COUNT(*) FROM eval_results c WHERE c.run_id = r.run_id) AS total,
  (SELECT COUNT(*) FROM eval_results c WHERE c.run_id = r.run_id AND c.outcome = 'passed') AS passed,
  (SELECT COUNT(*) FROM eval_results c WHERE c.run_id = r.run_id AND c.outcome = 'failed') AS failed,
  (SELECT COUNT(*) FROM eval_results c WHERE c.run_id = r.run_id AND c.outcome = 'errored') AS errored
FROM eval_runs r WHERE r.tenant_id = ?1 AND r.run_id < ?2 AND (?3 IS NULL OR r.dataset = ?3)
ORDER BY r.run_id DESC LIMIT ?4
"""
LEASE_MS = 30_000
"""How long a run stays reserved for a worker that has died. One that lives renews it, however long a case takes."""
_LEASES = Leases("eval_runs", "run_id", ms=LEASE_MS)
_PICK = """
UPDATE eval_results SET state = 'running', attempts = attempts + 1, started_at_ms = COALESCE(started_at_ms, ?1)
WHERE run_id = ?2 AND state <> 'scored'
  AND position = (SELECT MIN(position) FROM eval_results WHERE run_id = ?2 AND state <> 'scored')
RETURNING position, case_id, attempts, started_at_ms
"""
_SCORE = """
UPDATE eval_results SET state = 'scored', outcome = ?, output = ?, observed = ?, scores = ?, error = ?, scored_at_ms = ?
WHERE run_id = ? AND position = ? AND state = 'running'
"""
# What a worker still executes finds its case scored, so that its own result is not written.
_CANCEL = """
UPDATE eval_results SET state = 'scored', outcome = 'errored', error = ?1, scored_at_ms = ?2,
  scores = COALESCE((SELECT value FROM json_each(?3) WHERE key = eval_results.position), '[]')
WHERE run_id = ?4 AND state <> 'scored'
"""
_DISCOUNT = "UPDATE eval_results SET attempts = attempts - 1 WHERE run_id = ? AND position = ? AND state = 'running'"
# One statement, so that no other worker can interleave: a run never appears further than it is.
_SETTLE = """
UPDATE eval_runs SET updated_at_ms = ?1, lease_until_ms = 0,
  state = CASE WHEN EXISTS (SELECT 1 FROM eval_results WHERE run_id = ?2 AND state <> 'scored') THEN 'running'
    WHEN EXISTS (SELECT 1 FROM eval_scratches WHERE run_id = ?2) THEN 'cleaning' ELSE 'completed' END
WHERE run_id = ?2 AND state <> 'completed'
"""
_TIMES = """
UPDATE eval_runs SET scored_at_ms = CASE WHEN state = 'running' THEN NULL ELSE COALESCE(scored_at_ms, ?1) END,
  completed_at_ms = CASE WHEN state = 'completed' THEN COALESCE(completed_at_ms, ?1) END WHERE run_id = ?2
"""
_OPEN = """
SELECT run_id, tenant_id FROM eval_runs WHERE state <> 'completed' AND lease_until_ms <= ?
ORDER BY updated_at_ms, run_id LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Picked:
    """A case that a worker took. attempts: how often it was taken, this time included."""

    position: int
    case_id: str
    attempts: int
    started_at_ms: int


@dataclass(frozen=True, slots=True)
class EvalRun:
    """A run with its results, in the order of the cases.

    shown: the positions of the results on the page, the only ones with what the case answered and did; None for all.
    cursor: the position after which the next page begins; None on the last.
    """

    run_id: str
    tenant_id: str
    dataset: str
    version: str
    definition: Definition
    state: State
    results: tuple[Result, ...]
    created_at_ms: int
    scored_at_ms: int | None
    completed_at_ms: int | None
    shown: range | None = None
    cursor: int | None = None

    def to_json(self) -> Mapping[str, object]:
        """Return the run as shown, with a page of its results."""
        shown = [one for one in self.results if self.shown is None or one.position in self.shown]
        return {
            "run_id": self.run_id,
            "dataset": self.dataset,
            "version": self.version,
            "target": self.definition.target.model_dump(mode="json", exclude_unset=True),
            "thresholds": dict(self.definition.thresholds),
            "state": self.state,
            "summary": summary(self.results, self.definition.thresholds).to_json(),
            "results": [result.to_json() for result in shown],
            "cursor": None if self.cursor is None else str(self.cursor),
            "created_at_ms": self.created_at_ms,
            "scored_at_ms": self.scored_at_ms,
            "completed_at_ms": self.completed_at_ms,
        }


class EvalRuns:
    """The runs of all tenants; calls that show or change a run name its tenant."""

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock

    async def start(self, tenant_id: str, dataset: DatasetInfo, key: str | None) -> tuple[str, bool]:
        """Record a run over a dataset's current version; return its id, and whether it is new.

        key: an earlier run with the same key is returned. Raises: Conflict (code `idempotency_key_reused`) when that run
            is over another dataset, (code `dataset_changed`) when the dataset changed meanwhile.
        """
        known = await self._known(tenant_id, dataset, key)
        if known is not None:
            return known, False
        run_id = new_id()
        try:
            await self._sql.batch(
                [
                    (_START, (run_id, tenant_id, dataset.name, key, self._clock(), dataset.version)),
                    (_START_CASES, (run_id, tenant_id, dataset.name, dataset.version)),
                ]
            )
        except Conflict:  # a run with the key was started meanwhile, or the tenant is being erased
            known = await self._known(tenant_id, dataset, key)
            if known is None:
                raise
            return known, False
        if not (await self._sql.run(_RUN, run_id, tenant_id)).rows:
            raise Conflict("the dataset was changed meanwhile; start again", code="dataset_changed")
        return run_id, True

    async def get(self, tenant_id: str, run_id: str, *, after: int = -1) -> EvalRun:
        """Return a run with its results, those of the page after a position with their texts.

        Raises: InvalidInput; NotFound (code `no_such_evaluation`).
        """
        runs, results, page = await self._sql.batch(
            [
                (_RUN, (check_id(run_id), tenant_id)),
                (_RESULTS, (run_id,)),
                (_TEXTS, (run_id, after, MAX_CASES + 1)),
            ]
        )
        if not runs.rows:
            raise NotFound("there is no such evaluation", code="no_such_evaluation")
        row = runs.rows[0]
        rows, more = cut(page.rows, MAX_CASES)
        texts = {int(one["position"]): one for one in rows}
        last = max(texts, default=after)
        return EvalRun(
            row["run_id"],
            row["tenant_id"],
            row["dataset"],
            row["version"],
            Definition.model_validate_json(row["definition"]),
            row["state"],
            tuple(result_of(result, texts.get(int(result["position"]))) for result in results.rows),
            int(row["created_at_ms"]),
            row["scored_at_ms"],
            row["completed_at_ms"],
            range(after + 1, last + 1),
            last if more else None,
        )

    async def page(self, tenant_id: str, *, dataset: str | None, before: str, limit: int) -> list[JsonObject]:
        """Return runs before an id, as a list shows them, newest first."""
        rows = (await self._sql.run(_LIST, tenant_id, before, dataset, limit)).rows
        return [_listed(row) for row in rows]

    async def delete(self, tenant_id: str, run_id: str) -> None:
        """Delete a run with its results. Raises: as `get`; Conflict (code `evaluation_running`) until it is completed."""
        if (await self.get(tenant_id, run_id)).state != "completed":
            raise Conflict("the evaluation is under way", code="evaluation_running")
        gone: Statement = ("DELETE FROM eval_results WHERE run_id = ?", (run_id,))
        await self._sql.batch([gone, ("DELETE FROM eval_runs WHERE run_id = ?", (run_id,))])

    async def lease(self, tenant_id: str, run_id: str) -> bool:
        """Take the lease of a run; return False if another worker holds it or the run is completed."""
        return await _LEASES.take(self._sql, tenant_id, run_id, self._clock())

    async def renew(self, run_id: str) -> None:
        """Renew the lease of a run, unless it was released. Raises: Unavailable."""
        await self._sql.batch([_LEASES.renewed(run_id, self._clock())])

    async def pick(self, run_id: str) -> Picked | None:
        """Take the first case that is not scored, None when all are; renew the lease."""
        now = self._clock()
        _, picked = await self._sql.batch([_LEASES.extended(run_id, now), (_PICK, (now, run_id))])
        if not picked.rows:
            return None
        row = picked.rows[0]
        return Picked(int(row["position"]), row["case_id"], int(row["attempts"]), int(row["started_at_ms"]))

    async def discount_attempt(self, run_id: str, position: int) -> None:
        """Do not count the last attempt: the case is under way."""
        await self._sql.run(_DISCOUNT, run_id, position)

    async def score(
        self,
        run_id: str,
        position: int,
        outcome: Outcome,
        scores: Sequence[Score],
        *,
        observed: Observation | None = None,
        error: Mapping[str, str] | None = None,
    ) -> None:
        """Write the result of a case. The first call decides."""
        await self._sql.run(
            _SCORE,
            outcome,
            None if observed is None else _cut(observed.output),
            None if observed is None else _kept(observed),
            json.dumps([score.to_json() for score in scores]),
            None if error is None else json.dumps(error),
            self._clock(),
            run_id,
            position,
        )

    async def cancel(self, run_id: str, scores: Sequence[Sequence[Score]]) -> None:
        """Write the result of every open case: `errored`, with the code `cancelled`. scores: of each case, by position."""
        error = json.dumps({"code": "cancelled", "message": "the evaluation was cancelled"})
        zeros = json.dumps([[score.to_json() for score in of_case] for of_case in scores])
        await self._sql.run(_CANCEL, error, self._clock(), zeros, run_id)

    async def settle(self, run_id: str) -> None:
        """Set the run's state from its cases and scratch tenants, and release the lease."""
        now = self._clock()
        await self._sql.batch([(_SETTLE, (now, run_id)), (_TIMES, (now, run_id))])

    async def open(self, limit: int) -> list[tuple[str, str]]:
        """Return runs that are not completed and whose lease is free, as tenant and id, longest untouched first."""
        rows = (await self._sql.run(_OPEN, self._clock(), limit)).rows
        return [(row["tenant_id"], row["run_id"]) for row in rows]

    async def _known(self, tenant_id: str, dataset: DatasetInfo, key: str | None) -> str | None:
        if key is None:
            return None
        rows = (await self._sql.run(_BY_KEY, tenant_id, key)).rows
        if not rows:
            return None
        if rows[0]["dataset"] != dataset.name:
            raise Conflict("the idempotency key was used for another request", code="idempotency_key_reused")
        return str(rows[0]["run_id"])


def _listed(row: Row) -> JsonObject:
    names = ("run_id", "dataset", "version", "state", "created_at_ms", "scored_at_ms", "completed_at_ms")
    counts = {name: int(row[name]) for name in ("total", "passed", "failed", "errored")}
    return {**{name: row[name] for name in names}, **counts}


def _cut(output: str) -> str:
    encoded = output.encode("utf-8", "replace")
    return encoded[:MAX_OUTPUT_BYTES].decode("utf-8", "ignore")


def _kept(observed: Observation) -> str:
    calls = [
        {"agent": call.agent, "tool": call.tool, "arguments": dict(call.arguments), "failed": call.failed}
        for call in observed.calls
    ]
    kept = {**observed.details, "calls": calls, "retrieved": list(observed.retrieved)}
    text = json.dumps(kept)
    if len(text) > MAX_OBSERVED_BYTES:
        kept["calls"] = [{**call, "arguments": None} for call in calls[:1000]]
        text = json.dumps(kept)
    return text
