"""Runs as clients see them on the real workerd: streamed, followed again, cancelled, approved, with function tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.e2e.calls import recorded_run, runs, timeline
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd


@dataclass(frozen=True)
class Sent:
    """One server-sent event."""

    name: str
    data: dict[str, Any]
    id: str | None


def events(response: httpx.Response) -> Iterator[Sent]:
    """Yield the events of a streamed answer as they come."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield Sent(fields["event"], json.loads(fields["data"]), fields.get("id"))
            fields = {}


def follow(api: httpx.Client, path: str, after: str | None = None) -> list[Sent]:
    headers = {} if after is None else {"last-event-id": after}
    with api.stream("GET", f"{path}/events", headers=headers) as response:
        if response.status_code == 204:
            return []
        assert response.status_code == 200, response.read()
        return durable(events(response))


def durable(seen: Iterable[Sent]) -> list[Sent]:
    """Return the events without the pieces of text, which are sent only to those who read along."""
    return [event for event in seen if event.name != "text.delta"]


def run_path(tenant_id: str, started: dict[str, Any]) -> str:
    return f"/v1/agents/{tenant_id}/clerk/instances/{started['instance_id']}/runs/{started['run_id']}"


def test_a_run_is_streamed_and_followed_again_after_any_event(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    body = {"input": "take 0.1 seconds", "stream": True}
    with api.stream("POST", f"/v1/agents/{tenant_id}/clerk/run", json=body) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        seen = list(events(response))
    assert [event.name for event in durable(seen)] == [
        "run.started",
        "text.completed",
        "tool.called",
        "tool.answered",
        "tool.called",
        "memory.stored",
        "tool.answered",
        "text.completed",
        "run.completed",
    ]
    deltas = [event.data for event in seen if event.name == "text.delta" and event.data["turn"] == 2]
    assert "".join(delta["text"] for delta in deltas) == seen[-1].data["output"] == "That was it."
    path = run_path(tenant_id, seen[0].data)
    kept = durable(seen)
    assert follow(api, path) == kept
    for place, event in enumerate(kept):
        if event.id is not None:
            assert follow(api, path, event.id) == kept[place + 1 :]
    assert api.get(path).json() == seen[-1].data


def test_a_client_that_disconnects_does_not_end_the_run(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    body = {"input": "take 1 seconds", "stream": True}
    with api.stream("POST", f"/v1/agents/{tenant_id}/clerk/run", json=body) as response:
        started = next(events(response)).data
    result = recorded_run(api, tenant_id, started["run_id"])
    assert (result["status"], result["output"]) == ("completed", "That was it.")


def test_a_cancelled_run_stops_before_its_next_side_effect_and_reports_what_is_done(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()
    body = {"input": "take 2 seconds", "stream": True}
    with api.stream("POST", f"/v1/agents/{tenant_id}/clerk/run", json=body) as response:
        stream = events(response)
        started = next(stream).data
        next(event for event in stream if event.name == "tool.called")
        path = run_path(tenant_id, started)
        cancelled = api.post(f"{path}/cancel", json={"reason": "too slow"})
        rest = list(stream)
    assert cancelled.status_code == 200, cancelled.text
    result = cancelled.json()
    assert (result["status"], result["error"]["code"]) == ("cancelled", "cancelled")
    assert result["done"] == [{"call": "1.0", "tool": "take_time", "outcome": "done"}]
    assert [event.name for event in rest] == ["run.cancelling", "tool.answered", "run.cancelled"]
    assert api.post(f"{path}/cancel").json() == result
    recorded = recorded_run(api, tenant_id, started["run_id"])
    assert (recorded["status"], recorded["error"]["by"]) == ("cancelled", "person:developer")


@pytest.mark.parametrize(("decision", "output"), [("approve", "It was refunded."), ("reject", "It was rejected.")])
def test_a_run_waits_for_a_person_while_others_run_and_continues_on_the_answer(
    api: httpx.Client, tenant: Callable[[], str], decision: str, output: str
) -> None:
    tenant_id = tenant()
    path = f"/v1/agents/{tenant_id}/clerk/run"
    answer = api.post(path, json={"input": "refund AB-1", "instance_id": "desk"})
    waiting = answer.json()
    assert (answer.status_code, waiting["status"]) == (202, "waiting")
    asked = waiting["waiting_for"]
    assert (asked["kind"], asked["tool"], asked["arguments"]) == ("approval", "issue_refund", {"order": "AB-1"})
    other = api.post(path, json={"input": "hello", "instance_id": "desk"})
    assert other.json()["status"] == "completed"
    [listed] = eventually(
        lambda: [run for run in runs(api, tenant_id) if run["status"] == "waiting"], lambda found: len(found) == 1
    )
    assert listed["waiting_for"] == asked
    place = run_path(tenant_id, waiting)
    body = {"call": asked["call"], "decision": decision, "reason": "because"}
    for _ in range(2):
        assert api.post(f"{place}/resume", json=body).status_code in (200, 202)
    result = eventually(lambda: api.get(place).json(), lambda shown: shown["status"] == "completed")
    assert result["output"] == output
    refused = api.post(f"{place}/resume", json={**body, "decision": "reject" if decision == "approve" else "approve"})
    assert (refused.status_code, refused.json()["code"]) == (409, "already_answered")
    recorded_run(api, tenant_id, waiting["run_id"])
    [recorded] = [e["data"] for e in timeline(api, tenant_id, waiting["run_id"]) if e["kind"] == "approval_answered"]
    assert (recorded["approved"], recorded["by"]) == (decision == "approve", "person:developer")
    assert (recorded["reason"], result["by"], listed["by"]) == ("because", "person:developer", "person:developer")


def test_a_delegate_that_waits_lets_its_caller_wait_and_wakes_it(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    with ThreadPoolExecutor(1) as pool:
        body = {"input": "let AB-7 be refunded", "stream": True}

        def listen() -> list[Sent]:
            with api.stream("POST", f"/v1/agents/{tenant_id}/clerk/run", json=body) as response:
                return list(events(response))

        stream = pool.submit(listen)
        waiting = eventually(
            lambda: [run for run in runs(api, tenant_id) if run["status"] == "waiting"], lambda found: len(found) == 2
        )
        [delegated] = [run for run in waiting if run["agent_type"] == "helper"]
        [caller] = [run for run in waiting if run["agent_type"] == "clerk"]
        assert caller["waiting_for"]["run_id"] == delegated["run_id"]
        place = f"/v1/agents/{tenant_id}/helper/instances/{delegated['instance_id']}/runs/{delegated['run_id']}"
        decision = {"call": delegated["waiting_for"]["call"], "decision": "approve"}
        assert api.post(f"{place}/resume", json=decision).status_code in (200, 202)
        seen = stream.result(60)
    assert seen[-1].data["output"] == "The helper said: It was refunded."
    assert seen[-1].data["usage"]["delegations"] == 1
