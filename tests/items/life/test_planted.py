"""The machine finds planted faults: each alone makes it fail, within a bounded walk.

A walk also depends on the order of sets, which a process does not choose, so a few seeds are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from retain.errors import RetainError
from tests.items.life.machine import ItemsMachine
from tests.items.life.planted import FOUND_LATER, FOUND_SOON
from tests.items.life.programs import PROGRAMS
from tests.support.machines import soaking

SEEDS = 4


def _fails(fault: Callable[[pytest.MonkeyPatch], None], patch: pytest.MonkeyPatch, examples: int) -> None:
    fault(patch)
    searching = settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    for number in range(1, SEEDS + 1):
        planted = type("Planted", (ItemsMachine,), {})
        try:
            run_state_machine_as_test(seed(number)(planted), settings=searching)
        except (AssertionError, RetainError):
            return
    pytest.fail("no walk found the fault")


@pytest.mark.parametrize("fault", FOUND_SOON)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _fails(FOUND_SOON[fault], monkeypatch, 150)


@pytest.mark.parametrize("fault", PROGRAMS)
@pytest.mark.parametrize("planted", [True, False])
def test_a_program_fails_on_the_fault_that_it_finds_and_on_nothing_else(
    fault: str, planted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if planted:
        FOUND_LATER[fault](monkeypatch)
    machine = ItemsMachine()
    try:
        with pytest.raises((AssertionError, RetainError)) if planted else nullcontext():
            PROGRAMS[fault](machine)
    finally:
        machine.teardown()


@pytest.mark.soak
@pytest.mark.skipif(not soaking(), reason="takes minutes each: make soak")
@pytest.mark.parametrize("fault", FOUND_LATER)
def test_a_planted_fault_is_found_by_a_soak(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _fails(FOUND_LATER[fault], monkeypatch, 1000)
