"""The machine finds each fault that is planted in the product: within a few walks of a seed. Hours belong to the soak."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from retain.errors import RetainError
from tests.lifecycle.records.machine import RecordsMachine
from tests.lifecycle.records.planted import PLANTED, Plant
from tests.support.machines import soaking

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not soaking(), reason="takes minutes: `make soak` does it")]
SEED = 20261122
WALKS, STEPS = 100, 30


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    walks = settings(
        max_examples=WALKS,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises((AssertionError, RetainError)):
        run_state_machine_as_test(seed(SEED)(type("Walks", (RecordsMachine,), {})), settings=walks)
