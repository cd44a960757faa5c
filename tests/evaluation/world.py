"""A deployment on the host that evaluates: real agents, memory and erasure, with stubbed tools as the Worker has them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import yaml

from retain.agents.catalogue import AgentCatalogue
from retain.agents.instance_ports import InstancePorts
from retain.evaluation.dataset import Dataset
from retain.evaluation.datasets import Datasets
from retain.evaluation.runner import EvaluationPorts, Progress, Runner
from retain.evaluation.runs import EvalRun, EvalRuns
from retain.evaluation.scoring.judge import Judge, NoJudge
from retain.evaluation.stubs import stubs_of
from retain.lifecycle.stores import Stores
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from tests.lifecycle.world import World
from tools.paths import ROOT

TENANT = "acme"
SHIPPED = ("order_triage", "refund_decision", "sdr", "support")


def shipped(name: str) -> Dataset:
    """Return a dataset of `evals/`."""
    return Dataset.model_validate(yaml.safe_load((ROOT / "evals" / f"{name}.yaml").read_text()))


def dataset(*cases: Mapping[str, Any], agent: str = "sdr", **fields: Any) -> Dataset:
    """Return a dataset. fields: its other fields, or another target."""
    return Dataset.model_validate({"target": {"agent": agent}, **fields, "cases": cases})


class EvaluationWorld(World):
    """Evaluates on the host."""

    def __init__(self, agents: AgentCatalogue | None = None) -> None:
        super().__init__()
        if agents is not None:
            self.catalogue = agents
        self.judge: Judge = NoJudge()
        self.sql_now("INSERT OR IGNORE INTO tenants (tenant_id, created_at_ms) VALUES (?, 0)", TENANT)

    def ports(self, name: str) -> InstancePorts:
        """Return an instance's ports, with stubs for a scratch tenant."""
        given = super().ports(name)
        return replace(given, stubs=lambda tenant_id: stubs_of(given.sql, tenant_id))

    def runner(self) -> Runner:
        """Return a runner of evaluations, whose every store may fail."""
        stores = self.stores()
        return Runner(
            EvaluationPorts(
                stores,
                lambda scope: self._semantic(stores, scope),
                self.agents.house_of,
                lambda *_: self._judge(),
                _nap,
            )
        )

    def datasets(self) -> Datasets:
        """Return the datasets."""
        return Datasets(self.sql, self.clock)

    def runs(self) -> EvalRuns:
        """Return the runs."""
        return EvalRuns(self.sql, self.clock)

    async def started(
        self, content: Dataset, name: str = "set", *, tenant: str = TENANT, key: str | None = None
    ) -> str:
        """Store a dataset and start a run over it; return the run's id."""
        info, _ = await self.datasets().put(tenant, name, content)
        return (await self.runs().start(tenant, info, key))[0]

    async def finished(self, run_id: str, *, tenant: str = TENANT) -> EvalRun:
        """Advance a run until it is completed."""
        for _ in range(500):
            progress: Progress = await self.runner().advance(tenant, run_id)
            await self.settled()
            if progress.retry_after_ms is None:
                return progress.run
            self.clock.advance(progress.retry_after_ms)
        raise AssertionError("the evaluation never completes")

    async def evaluated(self, content: Dataset, name: str = "set") -> EvalRun:
        """Store a dataset, and evaluate it to completion."""
        return await self.finished(await self.started(content, name))

    def _semantic(self, stores: Stores, scope: Scope) -> SemanticMemory:
        return SemanticMemory(scope, stores.sql, stores.index, self.embedder, self.clock)

    def _judge(self) -> Judge:
        return self.judge


async def _nap(seconds: float) -> None:
    """Let everything else run instead of waiting."""
    for _ in range(5):
        await asyncio.sleep(0)
