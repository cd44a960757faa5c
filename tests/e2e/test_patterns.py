"""Patterns from outside on the real workerd: it has the engine that searches them in linear time."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

pytestmark = pytest.mark.workerd


@pytest.mark.parametrize(
    ("pattern", "status"),
    [pytest.param("^(a+)+$", 201, id="hangs an engine that backtracks"), pytest.param(r"(a)\1", 400, id="refers back")],
)
def test_a_pattern_in_a_dataset_is_compiled_to_be_linear_or_refused(
    api: httpx.Client, tenant: Callable[[], str], pattern: str, status: int
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    cases = [{"id": "a", "input": "Hi.", "expected": {"matches": [pattern], "schema": schema}}]
    path = f"/admin/tenants/{tenant()}/evals/datasets/patterns"
    answer = api.put(path, json={"target": {"agent": "sdr"}, "cases": cases})
    assert answer.status_code == status, answer.text
