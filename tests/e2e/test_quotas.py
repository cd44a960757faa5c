"""Quotas and costs on real workerd and D1: the triggers' refusals reach the caller as 507, and what they count is listed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.e2e.calls import run

pytestmark = pytest.mark.workerd


def test_concurrent_stores_fill_a_quota_and_do_not_pass_it(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    quotas = f"/admin/tenants/{tenant_id}/quotas"
    assert api.put(quotas, json={"memories": 6}).status_code == 200

    def store(number: int) -> tuple[int, str]:
        answer = api.post(f"/admin/tenants/{tenant_id}/memories", json={"content": f"Fact number {number}."})
        return answer.status_code, answer.json().get("code", "stored")

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(store, range(16)))
    assert sorted(outcomes) == [(201, "stored")] * 6 + [(507, "memory_quota")] * 10
    assert api.get(quotas).json()["memories"] == {"most": 6, "used": 6}


def test_a_run_above_the_quota_of_the_day_is_refused(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    run(api, tenant_id, "sdr", "Contact contact:7 responded positively to a short case study.")
    assert api.put(f"/admin/tenants/{tenant_id}/quotas", json={"runs_a_day": 0}).status_code == 200
    refused = api.post(f"/v1/agents/{tenant_id}/sdr/run", json={"input": "hello"})
    assert (refused.status_code, refused.json()["code"]) == (507, "run_quota")


def test_a_run_is_among_the_costs_of_its_day_once(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    run(api, tenant_id, "sdr", "Contact contact:7 responded positively to a short case study.")
    [listed] = api.get(f"/admin/agents/{tenant_id}/runs").json()["runs"]
    answer = api.get(f"/admin/tenants/{tenant_id}/costs").json()
    [spent] = answer["costs"]
    assert (answer["cursor"], spent["agent_type"], spent["runs"]) == (None, "sdr", 1)
    assert all(spent[name] == listed[name] for name in ("model", "input_tokens", "output_tokens"))
    assert spent["cost"] is listed["cost"] is None, "the model has no price"
