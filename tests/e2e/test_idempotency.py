"""The same request twice is one run, and one instance has one run at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.e2e.calls import recorded_run, run, runs
from tests.e2e.conftest import Steered
from tests.e2e.puppet import Puppet, order
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd


def _post(
    api: httpx.Client, tenant_id: str, key: str | None, text: str = "hello", **body: object
) -> tuple[int, dict[str, Any]]:
    headers = {} if key is None else {"idempotency-key": key}
    path = f"/v1/agents/{tenant_id}/order_triage/run"
    response = api.post(path, json={"input": text, **body}, headers=headers)
    return response.status_code, response.json()


def _recorded(api: httpx.Client, tenant_id: str, count: int) -> list[str]:
    """Return the ids of the tenant's runs once D1 has as many, all closed."""
    found = eventually(
        lambda: runs(api, tenant_id),
        lambda found: len(found) >= count and all(recorded["status"] != "running" for recorded in found),
    )
    return [recorded["run_id"] for recorded in found]


@pytest.mark.parametrize("instance", [{}, {"instance_id": "desk"}], ids=["no instance named", "instance named"])
def test_the_same_idempotency_key_gives_the_same_run_once(
    api: httpx.Client, tenant: Callable[[], str], instance: dict[str, str]
) -> None:
    tenant_id = tenant()
    first = _post(api, tenant_id, "key-1", **instance)
    assert first[0] == 200
    assert _post(api, tenant_id, "key-1", **instance) == first
    assert _recorded(api, tenant_id, 1) == [first[1]["run_id"]]


@pytest.mark.parametrize(
    "change",
    [{"text": "goodbye"}, {"metadata": {"channel": "mail"}}],
    ids=["another input", "other metadata"],
)
def test_an_idempotency_key_with_another_request_is_a_conflict(
    api: httpx.Client, tenant: Callable[[], str], change: dict[str, Any]
) -> None:
    tenant_id = tenant()
    _, first = _post(api, tenant_id, "key-1")
    status, problem = _post(api, tenant_id, "key-1", **change)
    assert (status, problem["code"]) == (409, "idempotency_key_reused")
    assert _recorded(api, tenant_id, 1) == [first["run_id"]]


def test_an_idempotency_key_belongs_to_one_tenant_and_one_agent(api: httpx.Client, tenant: Callable[[], str]) -> None:
    first, second = tenant(), tenant()
    ids = {_post(api, tenant_id, "key-1")[1]["run_id"] for tenant_id in (first, second)}
    ids.add(
        api.post(f"/v1/agents/{first}/sdr/run", json={"input": "hello"}, headers={"idempotency-key": "key-1"}).json()[
            "run_id"
        ]
    )
    assert len(ids) == 3


def test_requests_at_the_same_time_with_one_idempotency_key_make_one_run(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: _post(api, tenant_id, "key-1"), range(8)))
    assert {status for status, _ in answers} <= {200, 202}
    assert 200 in {status for status, _ in answers}
    assert {answer["run_id"] for _, answer in answers} == set(_recorded(api, tenant_id, 1))
    assert len(_recorded(api, tenant_id, 1)) == 1


def test_runs_at_the_same_time_in_one_instance_are_each_made_once_or_refused(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda n: _post(api, tenant_id, None, f"hello {n}", instance_id="desk"), range(6)))
    assert Counter(answer.get("code", answer.get("status")) for _, answer in answers).keys() <= {
        "completed",
        "instance_busy",
    }
    completed = [answer["run_id"] for status, answer in answers if status == 200]
    assert completed
    assert Counter(_recorded(api, tenant_id, len(completed))) == Counter(completed)


def test_an_instance_refuses_a_second_run_and_lets_a_retry_wait_for_the_first(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    text = order(say="an answer to wait for")
    with ThreadPoolExecutor(2) as pool, puppet.holding("an answer to wait for") as hold:
        first = pool.submit(_post, steered.api, tenant_id, "key-1", text, instance_id="desk")
        hold.wait_for_arrival()
        retry = pool.submit(_post, steered.api, tenant_id, "key-1", text, instance_id="desk")
        status, problem = _post(steered.api, tenant_id, "key-2", order(say="second"), instance_id="desk")
        assert (status, problem["code"]) == (409, "instance_busy")
        hold.released.set()
        assert first.result() == retry.result()
    assert first.result()[0] == 200
    assert len([request for request in puppet.requests if request.messages[-1].content == text]) == 1
    after = run(steered.api, tenant_id, "order_triage", order(say="third"), instance_id="desk")
    recorded_run(steered.api, tenant_id, after["run_id"])
    assert _recorded(steered.api, tenant_id, 2) == [after["run_id"], first.result()[1]["run_id"]]
