"""Evaluations on the host: real agents, memory, erasure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.evaluation.world import SHIPPED, EvaluationWorld, shipped


@pytest.fixture
def world() -> Iterator[EvaluationWorld]:
    with closing(EvaluationWorld()) as made:
        yield made


@pytest.mark.parametrize("name", SHIPPED)
async def test_every_shipped_agent_passes_its_dataset(world: EvaluationWorld, name: str) -> None:
    run = await world.evaluated(shipped(name))
    wrong = [(result.case_id, result.output, result.error, result.scores) for result in run.results if result.outcome != "passed"]
    assert wrong == []
