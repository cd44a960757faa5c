"""Procedural memory on the real workerd: a run is given a workflow, an administrator reports its outcome."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.e2e.calls import instance, recorded_run, run
from tests.e2e.local_state import LocalState
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd

DRAFT = "Draft an e-mail to contact:7"


def test_an_outcome_is_learned_by_the_instance_and_kept_in_d1(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    made = run(api, tenant_id, "sdr", DRAFT, instance_id="desk")
    followed = made["procedure"]
    run_id = recorded_run(api, tenant_id, made["run_id"])["run_id"]
    path = f"/admin/agents/{tenant_id}/runs/{run_id}/outcome"
    for score, posterior in (
        (1, {"alpha": 2, "beta": 1}),
        (1, {"alpha": 2, "beta": 1}),
        (0.5, {"alpha": 1.5, "beta": 1.5}),
    ):
        answer = api.post(path, json={"score": score})
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"run_id": run_id, **followed, "score": score, "posterior": posterior}
    held = instance(api, tenant_id, "sdr", "desk")["procedures"]["outreach"]
    assert held[followed["workflow_id"]] == {"alpha": 1.5, "beta": 1.5}
    learned = eventually(
        lambda: api.get(f"/admin/agents/{tenant_id}/procedures", params={"agent_type": "sdr"}).json()["procedures"],
        lambda found: [row["mean_score"] for row in found] == [0.5],
    )
    assert learned == [{"agent_type": "sdr", **followed, "outcomes": 1, "mean_score": 0.5}]
    assert len(state.d1("SELECT * FROM procedure_priors WHERE tenant_id = ?", tenant_id)) == 3


def test_outcomes_that_cannot_be_learned_are_refused(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id, other = tenant(), tenant()
    drafted = recorded_run(api, tenant_id, run(api, tenant_id, "sdr", DRAFT)["run_id"])["run_id"]
    triaged = recorded_run(api, tenant_id, run(api, tenant_id, "order_triage", "hello")["run_id"])["run_id"]
    for owner, run_id, body, status, code in (
        (tenant_id, drafted, {"score": 1.5}, 400, "invalid_score"),
        (tenant_id, drafted, {"score": "1"}, 400, "invalid_body"),
        (tenant_id, drafted, {}, 400, "invalid_body"),
        (tenant_id, triaged, {"score": 1}, 409, "no_procedure"),
        (other, drafted, {"score": 1}, 404, "no_such_run"),
    ):
        refused = api.post(f"/admin/agents/{owner}/runs/{run_id}/outcome", json=body)
        assert (refused.status_code, refused.json()["code"]) == (status, code)
