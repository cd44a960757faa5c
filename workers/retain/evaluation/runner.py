"""The runner: advances evaluations, one case at a time and a bounded number per call.

The state of a run is only in D1. Each call continues it: the request that started it, a later one, the daily cron.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from retain.errors import RetainError, TenantMoving, Unavailable
from retain.errors.codes import Code, ForeignCode
from retain.evaluation.case_run import CasePorts, CaseRun
from retain.evaluation.dataset import Case
from retain.evaluation.datasets import Datasets
from retain.evaluation.results import Outcome
from retain.evaluation.runs import EvalRun, EvalRuns, Picked
from retain.evaluation.scoring.judge import Judge
from retain.evaluation.scoring.scorer import passes, scored, unscored
from retain.evaluation.scoring.scores import Observation, Score
from retain.evaluation.scratch import Scratches
from retain.json_text import JsonObject
from retain.ledgers.errors import Trouble, park, settle
from retain.lifecycle.stores import Stores
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from retain.models.retry import Sleep

CASES_PER_CALL = 4
"""Cases that one call executes: each costs some dozens of subrequests, of which a request has 1,000.

Source: https://developers.cloudflare.com/workers/platform/limits/#subrequests
"""
SCRATCHES_PER_CALL = 6
"""Scratch tenants whose erasure one call advances."""
WORK_MS = 20_000
"""How long after its start a call still begins cases."""
MAX_ATTEMPTS = 3
"""How often a case is begun before it counts as errored."""
CASE_MS = 15 * 60_000
"""How long a case may take."""
RENEW_MS = 10_000
"""How often a worker renews its lease while a case is under way."""
MOVING_S = 60
"""When to call again while the tenant moves to another database."""
RETRY_MS = 1_000
"""When to call again if a case is under way, or another call works on the run."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EvaluationPorts:
    """What evaluations work with. house_of: the house of a tenant's agent, raising NotFound for one that does not exist.

    judge: returns the configured judge, called when a case needs it, with the tenant and the agent ("" for a recall).
    """

    stores: Stores
    semantic: Callable[[Scope], SemanticMemory]
    house_of: Callable[[str, str], Awaitable[str | None]]
    judge: Callable[[str, str], Judge]
    sleep: Sleep = asyncio.sleep


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come. retry_after_ms: when to continue, 0 for at once; None when it is completed."""

    run: EvalRun
    retry_after_ms: int | None


class Runner:
    """Advances runs."""

    def __init__(self, ports: EvaluationPorts) -> None:
        stores = ports.stores
        self._ports = ports
        self._clock = stores.clock
        self._runs = EvalRuns(stores.sql, stores.clock)
        self._datasets = Datasets(stores.sql, stores.clock)
        self._scratches = Scratches(stores)
        self._cases = CasePorts(stores.sql, stores.instances, ports.semantic, ports.house_of, ports.sleep)

    async def advance(self, tenant_id: str, run_id: str) -> Progress:
        """Continue a run; return its progress. Does nothing while another call works on it.

        Raises: InvalidInput; NotFound (code `no_such_evaluation`); TenantMoving, while the tenant moves, because its scratch
        tenants would stay where it was; Unavailable; then the run can be continued again.
        """
        run = await self._runs.get(tenant_id, run_id)
        if run.state == "completed":
            return Progress(run, None)
        if run.state == "running" and await self._ports.stores.places.moving(tenant_id):
            raise TenantMoving(
                "the tenant moves to another database; its evaluations continue there", retry_after_s=MOVING_S
            )
        if not await self._runs.lease(tenant_id, run_id):
            return Progress(run, RETRY_MS)
        sql = self._ports.stores.sql
        try:
            async with self._holding(run_id):
                waits = await self._execute(run)
                left = await self._clean(run_id)
        except RetainError as error:
            await park(sql, Trouble("evaluation", run_id, error.code, self._clock(), tenant_id))
            raise
        finally:
            await self._runs.settle(run_id)
        run = await self._runs.get(tenant_id, run_id)
        match run.state:
            case "completed":
                await settle(sql, self._clock(), (tenant_id, "evaluation", run_id))
                return Progress(run, None)
            case "cleaning":
                return Progress(run, left)
            case "running":
                return Progress(run, RETRY_MS if waits else 0)

    async def cancel(self, tenant_id: str, run_id: str) -> Progress:
        """End a run: its open cases are errored (`cancelled`), and no further one begins. Idempotent.

        A case that another call executes meanwhile is not interrupted, and its result is not kept. Returns and raises: as
        `advance`, which erases the scratch tenants.
        """
        run = await self._runs.get(tenant_id, run_id)
        if run.state == "running":
            cases = await self._datasets.cases(tenant_id, run.dataset, run.version)
            await self._runs.cancel(run_id, [[] if one is None else _zeros(one) for one in cases])
        return await self.advance(tenant_id, run_id)

    async def open(self, limit: int) -> list[tuple[str, str]]:
        """Return runs that should be continued, as tenant and id."""
        return await self._runs.open(limit)

    async def _execute(self, run: EvalRun) -> bool:
        """Execute some cases; return whether one of them is still under way."""
        began = self._clock()
        for _ in range(CASES_PER_CALL):
            if self._clock() - began > WORK_MS:
                return False
            picked = await self._runs.pick(run.run_id)
            if picked is None:
                return False
            if not await self._case(run, picked):
                return True
        return False

    @asynccontextmanager
    async def _holding(self, run_id: str) -> AsyncIterator[None]:
        """Keep the lease of a run meanwhile, for as long as this worker lives."""
        renewing = asyncio.ensure_future(self._renew(run_id))
        try:
            yield
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing

    async def _renew(self, run_id: str) -> None:
        """Renew the lease of a run again and again, until cancelled."""
        due_ms = self._clock() + RENEW_MS
        while True:
            await self._ports.sleep(RENEW_MS / 1000)
            if self._clock() < due_ms:
                continue
            due_ms = self._clock() + RENEW_MS
            try:
                await self._runs.renew(run_id)
            except RetainError as error:
                _log.warning("a lease was not renewed", extra={"run_id": run_id, "code": error.code})

    async def _case(self, run: EvalRun, picked: Picked) -> bool:
        """Execute a case as far as possible; return whether it is scored."""
        case: Case | None = None
        try:
            case = await self._datasets.case(run.tenant_id, run.dataset, run.version, picked.position)
            if picked.attempts > MAX_ATTEMPTS:
                await self._errored(run, picked, case, "attempted_too_often", f"it was begun {MAX_ATTEMPTS} times")
                return True
            target = run.definition.target
            scratch = await self._scratches.begin(run.tenant_id, run.run_id, picked.position, case, target.agent)
            observed = await CaseRun(self._cases, self._scratches, scratch, target).observe(case)
            if observed is not None:
                await self._score(run, picked, case, observed)
                return True
        except RetainError as error:
            _log.warning("a case failed", extra={"run_id": run.run_id, "case": picked.case_id, "code": error.code})
            if isinstance(error, Unavailable) and picked.attempts < MAX_ATTEMPTS:
                return False
            await self._errored(run, picked, case, error.code, error.message)
            return True
        if self._clock() - picked.started_at_ms > CASE_MS:
            await self._errored(run, picked, case, "case_not_ended", "the case did not end in time")
            return True
        await self._runs.discount_attempt(run.run_id, picked.position)
        return False

    async def _score(self, run: EvalRun, picked: Picked, case: Case, observed: Observation) -> None:
        try:
            agent = run.definition.target.agent or ""
            found = await scored(case, observed, agent, lambda: self._ports.judge(run.tenant_id, agent))
        except Unavailable:
            raise
        except RetainError as error:
            _log.warning("a case was not scored", extra={"run_id": run.run_id, "code": error.code})
            await self._errored(run, picked, case, error.code, error.message, observed)
            return
        outcome: Outcome = "passed" if passes(found) else "failed"
        await self._runs.score(run.run_id, picked.position, outcome, found, observed=observed)

    async def _errored(
        self,
        run: EvalRun,
        picked: Picked,
        case: Case | None,
        reason: Code | ForeignCode,
        message: str,
        observed: Observation | None = None,
    ) -> None:
        found: list[Score] = [] if case is None else unscored(case.expected)
        error = {"code": reason, "message": message}
        await self._runs.score(run.run_id, picked.position, "errored", found, observed=observed, error=error)
        trouble = Trouble("case", f"{run.run_id}.{picked.position}", reason, self._clock(), run.tenant_id)
        await park(self._ports.stores.sql, trouble)

    async def _clean(self, run_id: str) -> int:
        """Continue erasing scratch tenants of scored cases; return in how many milliseconds to call again."""
        retry_ms = 0
        for name in await self._scratches.left(run_id, SCRATCHES_PER_CALL):
            try:
                retry_ms = max(retry_ms, await self._scratches.erase(name) or 0)
            except RetainError as error:
                _log.warning("a scratch tenant waits to be erased", extra={"tenant_id": name, "code": error.code})
                retry_ms = max(retry_ms, RETRY_MS)
        return retry_ms


def _zeros(content: JsonObject) -> list[Score]:
    return unscored(Case.model_validate(content).expected)
