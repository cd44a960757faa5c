"""The platform's adapters keep the ports' contracts, on the real bindings in the real workerd."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import tests.ports
from tests.ports import cases
from tests.workerd.server import TestWorker

pytestmark = pytest.mark.workerd

SUITES = sorted(module.name for module in pkgutil.iter_modules(tests.ports.__path__))
CASES = [(suite, case) for suite in SUITES for case in cases(import_module(f"tests.ports.{suite}"))]


def test_the_worker_holds_the_same_cases(worker: TestWorker) -> None:
    assert worker.get("/cases") == [list(pair) for pair in CASES]


@pytest.mark.parametrize(("suite", "case"), CASES, ids=[f"{suite}-{case}" for suite, case in CASES])
def test_contract(worker: TestWorker, origin: str, suite: str, case: str) -> None:
    outcome = worker.post(f"/cases/{suite}/{case}", {"origin": origin})
    assert outcome["passed"], outcome["error"]
