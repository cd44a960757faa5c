"""The runs of an evaluation name who asked for it, or Retain in its daily work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from retain.ports import Sql, SqlResult, Statement
from retain.tenants.attribution import acting
from tests.evaluation.test_runner import PLENTY
from tests.evaluation.world import EvaluationWorld, dataset


@pytest.fixture
def world() -> Iterator[EvaluationWorld]:
    with closing(EvaluationWorld()) as made:
        yield made


@pytest.mark.parametrize("asking", [None, "person:ann"])
async def test_a_case_s_run_names_who_asked_for_the_evaluation(world: EvaluationWorld, asking: str | None) -> None:
    started: list[object] = []

    class Noted:
        """Notes who started the runs that an instance writes."""

        def __init__(self, sql: Sql) -> None:
            self._sql = sql
            self.run = sql.run

        async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
            started.extend(values[-2] for text, values in statements if "INTO agent_runs" in text)
            return await self._sql.batch(statements)

    given = world.ports
    world.ports = lambda name: replace(given(name), sql=Noted(world.sql))  # type: ignore[method-assign]
    run_id = await world.started(dataset(*PLENTY[:1], agent="refund_decision"))
    with acting(asking):
        assert (await world.finished(run_id)).state == "completed"
    assert set(started) == {asking or "retain"}
