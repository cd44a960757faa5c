"""Evaluations of agents: what runs them, and the judge of their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retain.evaluation.runner import EvaluationPorts, Runner
from retain.evaluation.scoring.judge import Judge, chosen_judge
from retain.tenants.model_calls import CallPayer

if TYPE_CHECKING:
    from assembly.root import Assembly


class EvaluationParts:
    """Evaluations of agents."""

    def __init__(self, root: Assembly) -> None:
        self._root = root

    def runner(self) -> Runner:
        """Return the runner that continues evaluations."""
        root = self._root
        ports = EvaluationPorts(
            stores=root.lifecycle.stores,
            semantic=root.memory.semantic,
            house_of=root.directory.agents.house_of,
            judge=self._judge,
        )
        return Runner(ports)

    def _judge(self, tenant_id: str, agent_type: str) -> Judge:
        models, settings = self._root.models, self._root.platform.settings
        payer = CallPayer(tenant_id, "judge", agent_type)
        return chosen_judge(settings.evaluation_judge, lambda: models.deployment_chat("judge", payer))
