"""The procedural memory of one instance: posteriors in the object's SQLite, their priors and outcomes in D1.

The object caches what can be recomputed from D1: a posterior is its prior and the outcomes since. Both go to D1 through
the instance's outbox, in the same transaction as the change of the posterior.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from retain.errors import Unavailable
from retain.memory.procedures.posterior import Posterior, check_score, choose, prior
from retain.memory.scope import Scope
from retain.outbox import Outbox, OwedStatement
from retain.ports import Clock, ObjectSql, Row, Sql

SCHEMA = """
CREATE TABLE IF NOT EXISTS procedural_workflows (
  workflow_id TEXT PRIMARY KEY,
  agent_type TEXT NOT NULL,
  task_type TEXT NOT NULL,
  spec TEXT NOT NULL,
  alpha REAL NOT NULL DEFAULT 1,
  beta REAL NOT NULL DEFAULT 1
)
"""


@dataclass(frozen=True, slots=True)
class BeginProcedure(OwedStatement):
    """An instance's prior for a workflow: its belief before its own first outcome."""

    NAME: ClassVar[str] = "begin_procedure"
    SQL: ClassVar[str] = """
        INSERT OR IGNORE INTO procedure_priors
          (tenant_id, agent_type, instance_id, workflow_id, task_type, alpha, beta, at_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    """

    tenant_id: str
    agent_type: str
    instance_id: str
    workflow_id: str
    task_type: str
    alpha: float
    beta: float
    at_ms: int


@dataclass(frozen=True, slots=True)
class RecordOutcome(OwedStatement):
    """The outcome of a run that followed a workflow. Another score for the run replaces the first."""

    NAME: ClassVar[str] = "record_outcome"
    SQL: ClassVar[str] = """
        INSERT INTO procedure_outcomes
          (run_id, tenant_id, agent_type, house, instance_id, task_type, workflow_id, score, at_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (run_id) DO UPDATE SET score = excluded.score, at_ms = excluded.at_ms
          WHERE tenant_id = excluded.tenant_id
    """

    run_id: str
    tenant_id: str
    agent_type: str
    house: str | None
    instance_id: str
    task_type: str
    workflow_id: str
    score: float
    at_ms: int


_PRIORS = """
SELECT workflow_id, alpha, beta FROM procedure_priors
WHERE tenant_id = ? AND agent_type = ? AND instance_id = ? AND task_type = ?
"""
_OWN = """
SELECT workflow_id, SUM(score) AS score, COUNT(*) AS count FROM procedure_outcomes
WHERE tenant_id = ? AND agent_type = ? AND instance_id = ? AND task_type = ? GROUP BY workflow_id
"""
_AGENTS = """
SELECT workflow_id, SUM(score) AS score, COUNT(*) AS count FROM procedure_outcomes
WHERE tenant_id = ? AND agent_type = ? AND task_type = ? GROUP BY workflow_id
"""
_HOUSES = """
SELECT workflow_id, SUM(score) AS score, COUNT(*) AS count FROM procedure_outcomes
WHERE tenant_id = ? AND house = ? AND task_type = ? GROUP BY workflow_id
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """The workflow that a run follows. spec: its instructions."""

    task_type: str
    workflow_id: str
    spec: str


class ProceduralMemory:
    """What one instance knows of its workflows. The tables of `SCHEMA` must exist.

    scope: the instance's agent. house: returns the agent's house, or None; called only when something is learned.
    """

    def __init__(
        self,
        scope: Scope,
        house: Callable[[], str | None],
        instance_id: str,
        local: ObjectSql,
        remote: Sql,
        outbox: Outbox,
        clock: Clock,
    ) -> None:
        self._scope = scope
        self._house = house
        self._instance_id = instance_id
        self._local = local
        self._remote = remote
        self._outbox = outbox
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()

    async def select_workflow(self, task_type: str, workflows: Mapping[str, str], run_id: str) -> Choice:
        """Return the workflow that this run follows.

        workflows: instructions by id, at least one; ids are unique in the agent, not only in the task type. The draw is
        seeded with the run's id, so with unchanged posteriors the same run gets the same workflow again.
        A workflow that the object does not have starts from what D1 knows of it: this instance's own past, or else,
        weakened, what the house's (without a house, the agent's) other instances learned.
        Raises: Unavailable when D1 is needed and does not answer.
        """
        async with self._one_at_a_time:
            if not workflows.keys() <= self._posteriors(task_type).keys():
                await self._begin(task_type, workflows)
            known = self._posteriors(task_type)
        chosen = choose({name: known[name] for name in workflows}, Random(f"{run_id}:{task_type}"))  # noqa: S311
        return Choice(task_type, chosen, workflows[chosen])

    async def record_outcome(self, run_id: str, task_type: str, workflow_id: str, score: float) -> Posterior | None:
        """Learn a run's outcome; return the workflow's posterior after it, None when the object does not have the workflow.

        score: 0 (failure) to 1 (success); one in between adds to both parameters. Idempotent; another score for the
        same run replaces the first. The outcome of a workflow that the object does not have is stored all the same, and
        counts when that workflow is next offered.
        Raises: InvalidInput (code `invalid_score`); Unavailable when D1 does not answer.
        """
        check_score(score)
        async with self._one_at_a_time:
            if not await self._outbox.flush():
                raise Unavailable("the instance owes D1 what it learned; try again", code="outbox_waits")
            stored = await self._remote.run(
                "SELECT score FROM procedure_outcomes WHERE run_id = ? AND tenant_id = ?", run_id, self._scope.tenant_id
            )
            before = float(stored.rows[0]["score"]) if stored.rows else None
            if before != score:
                self._local.atomically(lambda: self._write_outcome(run_id, task_type, workflow_id, score, before))
            return self._posteriors(task_type).get(workflow_id)

    def posteriors(self) -> dict[str, dict[str, Posterior]]:
        """Return the posterior of every workflow that the object has, by task type and id."""
        found: dict[str, dict[str, Posterior]] = {}
        for row in self._local.run("SELECT * FROM procedural_workflows ORDER BY task_type, workflow_id").rows:
            found.setdefault(row["task_type"], {})[row["workflow_id"]] = _posterior(row)
        return found

    def _posteriors(self, task_type: str) -> dict[str, Posterior]:
        return self.posteriors().get(task_type, {})

    async def _begin(self, task_type: str, workflows: Mapping[str, str]) -> None:
        scope = self._scope
        if not await self._outbox.flush():  # an outcome that D1 does not have yet would never be counted
            raise Unavailable("the instance owes D1 what it learned; try again", code="outbox_waits")
        me = (scope.tenant_id, scope.agent_type, self._instance_id)
        house = self._house()
        others = (_AGENTS, scope.agent_type) if house is None else (_HOUSES, house)
        priors, own, learned = await self._remote.batch(
            [
                (_PRIORS, (*me, task_type)),
                (_OWN, (*me, task_type)),
                (others[0], (scope.tenant_id, others[1], task_type)),
            ]
        )
        began = {row["workflow_id"]: _posterior(row) for row in priors.rows}
        happened = {row["workflow_id"]: row for row in own.rows}
        elsewhere = {row["workflow_id"]: row for row in learned.rows}

        def write() -> None:
            for name in sorted(workflows.keys() - self._posteriors(task_type).keys()):
                if name in began:
                    start = began[name]
                    belief = _after(start, happened.get(name))
                else:
                    start = belief = _prior(elsewhere.get(name))
                    owed = BeginProcedure(
                        tenant_id=scope.tenant_id,
                        agent_type=scope.agent_type or "",
                        instance_id=self._instance_id,
                        workflow_id=name,
                        task_type=task_type,
                        alpha=start.alpha,
                        beta=start.beta,
                        at_ms=self._clock(),
                    )
                    self._outbox.add(scope.tenant_id, owed)
                self._local.run(
                    "INSERT OR REPLACE INTO procedural_workflows VALUES (?, ?, ?, ?, ?, ?)",
                    name,
                    scope.agent_type,
                    task_type,
                    workflows[name],
                    belief.alpha,
                    belief.beta,
                )

        self._local.atomically(write)

    def _write_outcome(self, run_id: str, task_type: str, workflow_id: str, score: float, before: float | None) -> None:
        scope = self._scope
        gained = Posterior(0.0, 0.0).after(score) if before is None else Posterior(score - before, before - score)
        self._local.run(
            "UPDATE procedural_workflows SET alpha = alpha + ?, beta = beta + ? WHERE workflow_id = ? AND task_type = ?",
            gained.alpha,
            gained.beta,
            workflow_id,
            task_type,
        )
        owed = RecordOutcome(
            run_id=run_id,
            tenant_id=scope.tenant_id,
            agent_type=scope.agent_type or "",
            house=self._house(),
            instance_id=self._instance_id,
            task_type=task_type,
            workflow_id=workflow_id,
            score=score,
            at_ms=self._clock(),
        )
        self._outbox.add(scope.tenant_id, owed)


def _posterior(row: Row) -> Posterior:
    return Posterior(float(row["alpha"]), float(row["beta"]))


def _after(start: Posterior, outcomes: Row | None) -> Posterior:
    return start if outcomes is None else start.after(float(outcomes["score"]), int(outcomes["count"]))


def _prior(outcomes: Row | None) -> Posterior:
    return Posterior() if outcomes is None else prior(float(outcomes["score"]), int(outcomes["count"]))
