"""Real workerd, a busy instance, and an agent that queues: every run ends, in order, also when the process dies."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from tests.e2e.calls import instance, recorded_run, runs
from tests.e2e.conftest import Steered
from tests.e2e.puppet import Puppet, order
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd

AGENT = "queuer"


def _ask(api: httpx.Client, tenant_id: str, say: str, key: str | None = None) -> tuple[int, dict[str, Any]]:
    headers = {} if key is None else {"idempotency-key": key}
    path = f"/v1/agents/{tenant_id}/{AGENT}/run"
    response = api.post(path, json={"input": order(say=say), "instance_id": "desk"}, headers=headers)
    return response.status_code, response.json()


def _path(tenant_id: str, run_id: str) -> str:
    return f"/v1/agents/{tenant_id}/{AGENT}/instances/desk/runs/{run_id}"


def _ended(api: httpx.Client, tenant_id: str, count: int) -> list[dict[str, Any]]:
    """Return the tenant's runs, the oldest first, when so many have ended in D1."""
    over = ("completed", "failed", "cancelled")
    found = eventually(
        lambda: runs(api, tenant_id),
        lambda found: len(found) == count and all(recorded["status"] in over for recorded in found),
        within_s=90,  # the alarm of an object that died fires within half a minute
    )
    return sorted(found, key=lambda recorded: str(recorded["run_id"]))


def test_five_runs_at_once_all_end_in_the_order_in_which_they_were_accepted(steered: Steered, puppet: Puppet) -> None:
    tenant_id, api = steered.tenant(), steered.api
    with ThreadPoolExecutor(6) as pool, puppet.holding("slow answer") as hold:
        first = pool.submit(_ask, api, tenant_id, "slow answer")
        hold.wait_for_arrival()
        answers = list(pool.map(lambda number: _ask(api, tenant_id, f"answer {number}"), range(4)))
        assert {status for status, _ in answers} == {202}
        places = sorted((answer["queue_position"], answer["run_id"]) for _, answer in answers)
        assert [position for position, _ in places] == [1, 2, 3, 4]
        ids = [run_id for _, run_id in places]
        assert ids == sorted(ids)
        status, problem = _ask(api, tenant_id, "one too many")
        assert (status, problem["code"], problem["limit"]) == (429, "queue_full", 4)
        assert problem["retry_after_ms"] >= 1_000
        assert [queued["run_id"] for queued in instance(api, tenant_id, AGENT, "desk")["queue"]] == ids
        listed = eventually(
            lambda: api.get(f"/admin/agents/{tenant_id}/runs", params={"status": "queued"}).json()["runs"],
            lambda found: len(found) == 4,
        )
        assert [(run["run_id"], run["queue_position"]) for run in reversed(listed)] == [
            (run_id, position) for position, run_id in places
        ]
        hold.released.set()
        assert first.result()[0] == 200
    ended = _ended(api, tenant_id, 5)
    assert [run["run_id"] for run in ended] == [first.result()[1]["run_id"], *ids]
    assert {run["status"] for run in ended} == {"completed"}
    times = [run["completed_at_ms"] for run in ended]
    assert times == sorted(times)
    texts = {answer["run_id"]: f"answer {number}" for number, (_, answer) in enumerate(answers)}
    for run_id in ids:
        assert api.get(_path(tenant_id, run_id)).json()["output"] == texts[run_id]


def test_a_queued_run_is_followed_until_it_ends_and_one_that_is_cancelled_does_not_begin(
    steered: Steered, puppet: Puppet
) -> None:
    tenant_id, api = steered.tenant(), steered.api
    with ThreadPoolExecutor(3) as pool, puppet.holding("slow answer") as hold:
        first = pool.submit(_ask, api, tenant_id, "slow answer")
        hold.wait_for_arrival()
        second, third = (_ask(api, tenant_id, say)[1]["run_id"] for say in ("second", "third"))
        following = pool.submit(lambda: api.get(f"{_path(tenant_id, third)}/events").text)
        cancelled = api.post(f"{_path(tenant_id, second)}/cancel", json={"reason": "not needed"})
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
        assert api.get(_path(tenant_id, third)).json()["queue_position"] == 1
        hold.released.set()
        assert first.result()[0] == 200
        events = [
            line.removeprefix("event: ") for line in following.result().splitlines() if line.startswith("event: ")
        ]
    assert (events[0], events[-1]) == ("run.queued", "run.completed")
    assert "run.started" in events
    assert [run["status"] for run in _ended(api, tenant_id, 3)] == ["completed", "cancelled", "completed"]
    assert recorded_run(api, tenant_id, second)["error"]["message"] == "not needed"


def test_a_queue_survives_the_death_of_the_process(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    outliving = ("outlives a death", "outlives it as well")
    with ThreadPoolExecutor(2) as pool, puppet.holding("slow answer") as hold:
        pool.submit(_ask, steered.api, tenant_id, "slow answer", "first")
        hold.wait_for_arrival()
        queued = [_ask(steered.api, tenant_id, say, say)[1]["run_id"] for say in outliving]
        steered.crash()
    steered.restart()
    ended = _ended(steered.api, tenant_id, 3)
    assert [run["run_id"] for run in ended[1:]] == queued
    assert {run["status"] for run in ended} == {"completed"}
    asked = [request.messages[-1].content for request in puppet.requests]
    for say in outliving:
        assert asked.count(order(say=say)) == 1
    assert _ask(steered.api, tenant_id, outliving[0], outliving[0])[1]["run_id"] == queued[0]


def test_a_schedule_begins_a_run_by_the_alarm_of_its_instance_and_its_cron_is_read_in_its_zone(
    steered: Steered,
) -> None:
    tenant_id, api = steered.tenant(), steered.api
    schedules, asked = f"/v1/tenants/{tenant_id}/schedules", {"agent_type": AGENT, "instance_id": "desk"}
    begun_ms = int(time.time() * 1000)
    once = api.post(schedules, json={**asked, "input": order(say="good morning"), "at_ms": begun_ms + 1_500}).json()
    daily = {"input": order(say="never"), "cron": "30 8 * 6,12 MON-FRI", "timezone": "America/St_Johns"}
    due_ms = api.post(schedules, json={**asked, **daily}).json()["next_at_ms"]
    due = datetime.fromtimestamp(due_ms / 1000, ZoneInfo("America/St_Johns"))
    assert (due.hour, due.minute, due.month in (6, 12), due.weekday() < 5) == (8, 30, True, True)
    [run] = _ended(api, tenant_id, 1)
    assert (run["status"], run["created_at_ms"] >= once["at_ms"]) == ("completed", True)
    ended = eventually(
        lambda: api.get(f"{schedules}/{once['schedule_id']}").json(), lambda known: known["state"] == "ended"
    )
    assert (ended["last_run_id"], ended["last_at_ms"]) == (run["run_id"], once["at_ms"])
    at = datetime.fromtimestamp(time.time() + 2, UTC).isoformat()
    waking = ("schedule_wakeup", {"input": order(say="awake"), "at": at})
    asked_to_wake = {"input": order(waking, say="asleep"), "instance_id": "desk"}
    assert api.post(f"/v1/agents/{tenant_id}/{AGENT}/run", json=asked_to_wake).json()["output"] == "asleep"
    awake = _ended(api, tenant_id, 3)[-1]
    assert (awake["status"], awake["by"]) == ("completed", f"agent:{AGENT}")
    known = api.get(schedules, params={"agent_type": AGENT, "instance_id": "desk"}).json()["schedules"]
    assert [(one["state"], one["last_run_id"]) for one in known] == [
        ("ended", awake["run_id"]),
        ("active", None),
        ("ended", run["run_id"]),
    ]
    for cron in ("61 8 * * *", "0 0 31 2 *"):
        refused = api.post(schedules, json={**asked, **daily, "cron": cron})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_cron")
    refused = api.post(schedules, json={**asked, **daily, "timezone": "Europe/Atlantis"})
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_time_zone")
