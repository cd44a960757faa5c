"""A crash in the middle of runs: nothing is lost, nothing happens twice. All tests examine one crash."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pytest

from tests.e2e.calls import recorded_run, run, timeline
from tests.e2e.conftest import Steered
from tests.e2e.local_state import Rows
from tests.e2e.puppet import Puppet, order
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd

_KEY = {"idempotency-key": "interrupted-1"}


@dataclass(frozen=True)
class Crash:
    """Four instances of order_triage, named after what the crash met: a run that is retried, one that nobody asks for
    again, one in the background, and one that had answered and still owed its rows to D1.

    before: status of the interrupted run just before the crash. retried: what the retry of it answered. finished: what
    the finished run had answered.
    """

    tenant_id: str
    before: Rows
    retried: dict[str, Any]
    finished: dict[str, Any]
    background: str


@pytest.fixture(scope="module")
def crash(steered: Steered, puppet: Puppet) -> Crash:
    """Crash the server, start it again, and retry one of the runs."""
    tenant_id = steered.tenant()
    path = f"/v1/agents/{tenant_id}/order_triage/run"
    decision = order(
        ("recall_memory", {"query": "refund history"}),
        ("store_memory", {"content": "Refund approved for carol@example.com."}),
    )
    interrupted = {
        "input": order(("delegate", {"agent": "refund_decision", "input": decision})),
        "instance_id": "interrupted",
    }
    abandoned = {"input": order(say="nobody asks again"), "instance_id": "abandoned"}
    with ThreadPoolExecutor(2) as pool:
        with (
            puppet.holding("refund history", results=2) as first,
            puppet.holding("nobody asks again") as second,
            puppet.holding("nobody waits") as third,
        ):
            lost = [pool.submit(steered.api.post, path, json=interrupted, headers=_KEY)]
            first.wait_for_arrival()
            lost.append(pool.submit(steered.api.post, path, json=abandoned))
            second.wait_for_arrival()
            aside = {"input": order(say="nobody waits"), "instance_id": "background", "background": True}
            begun = steered.api.post(path, json=aside)
            assert (begun.status_code, begun.json()["status"]) == (202, "running"), begun.text
            third.wait_for_arrival()
            before = steered.state.instance(tenant_id, "order_triage", "interrupted", "SELECT * FROM turn_state")
            with steered.state.d1_transaction():
                # D1 takes no writes now, so this run's rows are owed when the crash comes.
                finished = run(steered.api, tenant_id, "order_triage", order(say="done"), instance_id="finished")
                owed = _owed(steered, tenant_id, "order_triage", "finished")
                steered.server.kill()
        assert all(isinstance(request.exception(), httpx.TransportError) for request in lost)
    steered.crash()
    assert {"start_run_of_version", "append_episode_of_user", "close_cached_run"} <= {
        entry["statement"] for entry in owed
    }
    for instance in ("abandoned", "background"):
        steered.state.make_alarm_due(f"order_triage:{tenant_id}:{instance}")
    steered.restart()
    answer = steered.api.post(path, json=interrupted, headers=_KEY)
    assert answer.status_code == 200, answer.text
    return Crash(tenant_id, before, answer.json(), finished, begun.headers["location"])


def _owed(steered: Steered, tenant_id: str, agent_type: str, instance_id: str) -> Rows:
    return steered.state.instance(tenant_id, agent_type, instance_id, "SELECT statement FROM outbox")


def test_a_run_that_a_crash_interrupted_is_finished_by_a_retry_with_its_idempotency_key(
    steered: Steered, crash: Crash
) -> None:
    [before] = crash.before
    assert (before["status"], before["run_id"]) == ("running", crash.retried["run_id"])
    assert crash.retried["status"] == "completed"
    [delegated] = json.loads(crash.retried["output"])
    recalled, stored = json.loads(delegated["output"])
    assert (recalled, stored["created"]) == ({"memories": []}, True)
    [after] = steered.state.instance(crash.tenant_id, "order_triage", "interrupted", "SELECT * FROM turn_state")
    assert after["status"] == "completed"


def test_no_tool_call_that_had_answered_before_the_crash_is_made_again(steered: Steered, crash: Crash) -> None:
    [delegated] = json.loads(crash.retried["output"])
    for run_id, calls in (
        (crash.retried["run_id"], ["delegate"]),
        (delegated["run_id"], ["recall_memory", "store_memory"]),
    ):
        recorded_run(steered.api, crash.tenant_id, run_id)
        events = timeline(steered.api, crash.tenant_id, run_id)
        assert [event["data"]["name"] for event in events if event["kind"] == "tool_called"] == calls
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_a_run_that_a_crash_interrupted_is_resumed_by_the_alarm_when_nobody_asks(
    steered: Steered, crash: Crash
) -> None:
    rows = eventually(
        lambda: steered.state.d1(
            "SELECT status, output FROM agent_runs WHERE (tenant_id, instance_id) = (?, 'abandoned')", crash.tenant_id
        ),
        lambda rows: [row["status"] for row in rows] == ["completed"],
    )
    assert rows[0]["output"] == "nobody asks again"


def test_a_run_in_the_background_ends_after_a_crash_and_is_read_at_its_address(steered: Steered, crash: Crash) -> None:
    ended = eventually(lambda: steered.api.get(crash.background).json(), lambda run: run["status"] == "completed")
    assert ended["output"] == "nobody waits"


def test_what_a_run_owed_to_d1_arrives_after_a_crash(steered: Steered, crash: Crash) -> None:
    recorded = recorded_run(steered.api, crash.tenant_id, crash.finished["run_id"])
    assert (recorded["status"], recorded["output"], len(recorded["episodes"])) == ("completed", "done", 1)


def test_each_run_and_each_episode_is_in_d1_once_and_no_outbox_owes_anything(steered: Steered, crash: Crash) -> None:
    [delegated] = json.loads(crash.retried["output"])
    instances = [("order_triage", name) for name in ("interrupted", "abandoned", "background", "finished")]
    instances.append(("refund_decision", f"{crash.retried['run_id']}.refund_decision"))
    for agent_type, instance_id in instances:
        eventually(partial(_owed, steered, crash.tenant_id, agent_type, instance_id), lambda owed: owed == [])
    runs = steered.state.d1("SELECT run_id, instance_id, status FROM agent_runs WHERE tenant_id = ?", crash.tenant_id)
    assert Counter(row["instance_id"] for row in runs) == Counter(instance_id for _, instance_id in instances)
    assert {row["status"] for row in runs} == {"completed"}
    episodes = steered.state.d1("SELECT run_id, turn FROM memory_episodes WHERE tenant_id = ?", crash.tenant_id)
    turns = {row["run_id"]: 1 for row in runs} | {crash.retried["run_id"]: 2, delegated["run_id"]: 3}
    assert Counter((row["run_id"], row["turn"]) for row in episodes) == Counter(
        (run_id, turn) for run_id, last in turns.items() for turn in range(1, last + 1)
    )


def test_the_resumption_of_a_run_after_the_crash_is_in_its_timeline(steered: Steered, crash: Crash) -> None:
    [delegated] = json.loads(crash.retried["output"])
    for run_id in (crash.retried["run_id"], delegated["run_id"]):
        events = timeline(steered.api, crash.tenant_id, run_id)
        [recovered] = [event for event in events if event["kind"] == "run_recovered"]
        assert recovered["data"]["times"] == 1
