"""Runs that are interrupted."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

from tests.e2e.puppet import order
from tests.e2e.waiting import eventually
from tests.kills.place import Place, Things
from tests.kills.shipping import TOOL

_DESK = "/v1/agents/{tenant}/clerk/instances/desk"


def _run(place: Place, agent: str, content: str, key: str, **more: object) -> Any:
    body = {"input": content, "instance_id": "desk", **more}
    return place.ask("POST", f"/v1/agents/{{tenant}}/{agent}/run", body, key=key)


def whole(place: Place) -> None:
    """Run an agent that stores a memory and writes working memory."""
    stored = ("store_memory", {"content": "Carol was refunded."})
    noted = ("set_working_memory", {"key": "note", "value": "N-1"})
    answer = _run(place, "sdr", order(stored, noted, say="done"), "run")
    assert (answer["status"], answer["output"]) == ("completed", "done"), answer


def delegated(place: Place) -> None:
    """Run an agent that delegates to another one, which stores a memory and declares a decision."""
    inner = order(("store_memory", {"content": "Decided for Carol."}), say="APPROVE")
    asked = order(("delegate", {"agent": "refund_decision", "input": inner}), say="done")
    answer = _run(place, "order_triage", asked, "delegate")
    assert (answer["status"], answer["output"]) == ("completed", "done"), answer


def learned(place: Place) -> None:
    """Run an agent that learns from what its user says."""
    text = "I live in Lyon and I work at Acme. Where does my parcel go?"
    answer = _run(place, "support", text, "learned", user={"id": "ann"})
    assert answer["status"] == "completed", answer


def streamed(place: Place) -> None:
    """Run an agent and read its events as they come: each once, in order, with the end as the last."""
    asked = order(("store_memory", {"content": "Streamed."}), say="done")
    body = {"input": asked, "instance_id": "desk", "stream": True}
    answer = place.request("POST", "/v1/agents/{tenant}/sdr/run", body, key="stream")
    assert answer.is_success, answer.text
    numbers = [int(line.removeprefix("id: ")) for line in answer.text.splitlines() if line.startswith("id: ")]
    assert numbers == sorted(set(numbers)), f"events are doubled or out of order: {numbers}"
    assert '"completed"' in answer.text, answer.text[-500:]


def in_background(place: Place) -> None:
    """Run an agent in the background, and ask for its result."""
    asked = order(("store_memory", {"content": "Stored in the background."}), say="done")
    begun = _run(place, "sdr", asked, "background", background=True)
    path = f"/v1/agents/{{tenant}}/sdr/instances/desk/runs/{begun['run_id']}"
    ended = eventually(lambda: place.ask("GET", path), lambda run: run["status"] == "completed", within_s=5)
    assert ended["output"] == "done", ended


def approved(place: Place) -> None:
    """Run an agent that waits for a person, and approve."""
    waiting = _run(place, "clerk", order(("issue_refund", {"order": "AB-1"}), say="done"), "approval")
    if waiting["status"] == "waiting":
        answer = {"call": waiting["waiting_for"]["call"], "decision": "approve"}
        place.ask("POST", f"{_DESK}/runs/{waiting['run_id']}/resume", answer)


def cancelled(place: Place) -> None:
    """Run an agent that waits for a person, and cancel it."""
    waiting = _run(place, "clerk", order(("issue_refund", {"order": "AB-1"}), say="done"), "cancel")
    if waiting["status"] == "waiting":
        place.ask("POST", f"{_DESK}/runs/{waiting['run_id']}/cancel", {"reason": "no longer needed"})


def _delegating(place: Place, key: str) -> tuple[Any, str, Any]:
    """Run an agent whose delegate waits for a person; return its run, and the path and state of the delegate's.

    Raises: LookupError when the delegate's run is not in D1 yet.
    """
    inner = order(("issue_refund", {"order": "AB-1"}), say="paid")
    run = _run(place, "clerk", order(("delegate", {"agent": "helper", "input": inner}), say="done"), key)
    sql = "SELECT run_id, instance_id FROM agent_runs WHERE tenant_id = ? AND agent_type = 'helper'"
    child = eventually(lambda: place.rows(sql), bool, within_s=5)[0]
    path = f"/v1/agents/{{tenant}}/helper/instances/{child['instance_id']}/runs/{child['run_id']}"
    return run, path, place.ask("GET", path)


def passed_on(place: Place) -> None:
    """Run an agent whose delegate waits for a person, and approve what the delegate asks."""
    _, path, child = _delegating(place, "passed")
    if child["status"] == "waiting":
        place.ask("POST", f"{path}/resume", {"call": child["waiting_for"]["call"], "decision": "approve"})


def withdrawn(place: Place) -> None:
    """Run an agent whose delegate waits for a person, and cancel the run of the agent."""
    run, _, _ = _delegating(place, "withdrawn")
    if run["status"] == "waiting":
        place.ask("POST", f"{_DESK}/runs/{run['run_id']}/cancel", {"reason": "no longer needed"})


def forked(place: Place) -> None:
    """Fork a run after its first turn, in which its tools were called, and ask for the fork's result."""
    sql = "SELECT run_id FROM agent_runs WHERE tenant_id = ? ORDER BY run_id"
    first = eventually(lambda: place.rows(sql), bool, within_s=5)[0]  # written after the answer
    runs = "/v1/agents/{tenant}/sdr/instances/desk/runs"
    begun = place.ask("POST", f"{runs}/{first['run_id']}/fork", {"turns": 1}, key="fork")
    path = f"{runs}/{begun['run_id']}"
    ended = eventually(lambda: place.ask("GET", path), lambda run: run["status"] == "completed", within_s=5)
    assert ended["output"] == "done", ended


def drafted(place: Place) -> None:
    """Run an agent that follows a workflow."""
    _run(place, "sdr", "Draft an e-mail to contact:7", "draft")


def judged(place: Place) -> None:
    """Record the outcome of a run that followed a workflow."""
    sql = "SELECT run_id FROM agent_runs WHERE tenant_id = ?"
    run = eventually(lambda: place.rows(sql), bool, within_s=5)[0]  # written after the answer
    place.ask("POST", f"/admin/agents/{{tenant}}/runs/{run['run_id']}/outcome", {"score": 1})


def with_webhook(place: Place) -> None:
    """Create a webhook."""
    url = place.shipping.hook(place.tenant)
    place.ask("POST", "/v1/tenants/{tenant}/webhooks", {"url": url, "events": ["run.waiting", "run.completed"]})


def replayed(place: Place) -> None:
    """Run an agent that waits for a person, approve, and let the last message be sent again."""
    approved(place)
    known = place.ask("GET", "/v1/tenants/{tenant}/webhooks")["webhooks"][0]
    path = f"/v1/tenants/{{tenant}}/webhooks/{known['webhook_id']}/deliveries"
    ended = eventually(
        lambda: place.ask("GET", f"{path}?status=delivered")["deliveries"],
        lambda found: any(one["event"] == "run.completed" for one in found),
        within_s=90,  # an attempt that was interrupted is repeated after half a minute
    )
    place.ask("POST", f"{path}/{ended[0]['message_id']}/replay")


def messages(place: Place) -> Things:
    """Return what webhooks received, each message once, and the status of each by the log."""
    heard = Counter(event for event, _ in place.shipping.heard[place.tenant])
    log = place.counted("SELECT event, status FROM webhook_deliveries WHERE tenant_id = ?")
    return {**place.runs(), "messages": heard, "log": log}


def planned(place: Place) -> None:
    """Create a schedule for a moment from now and wait for its run; then one that is paused, and one that is deleted."""
    path, asked = "/v1/tenants/{tenant}/schedules", {"agent_type": "sdr", "instance_id": "desk"}
    body = {**asked, "input": order(("store_memory", {"content": "Stored as planned."}), say="done")}
    made = place.request("POST", path, {**body, "at_ms": int(time.time() * 1000) + 1_000}, key="planned")
    assert made.is_success or made.json()["code"] == "idempotency_key_reused", made.text  # repeated, at another time
    yearly = {**asked, "input": "never", "cron": "0 0 1 1 *"}
    paused = place.ask("POST", path, yearly, key="paused")
    place.ask("PATCH", f"{path}/{paused['schedule_id']}", {"state": "paused"})
    gone = place.ask("POST", path, {**yearly, "instance_id": "other"}, key="gone")
    answer = place.request("DELETE", f"{path}/{gone['schedule_id']}")
    assert answer.is_success or answer.status_code == 404, answer.text


def planned_runs(place: Place) -> Things:
    """Return what is found of schedules: the planned run began once."""
    left = place.counted("SELECT cron, state, last_error FROM schedules WHERE tenant_id = ?")
    return {**place.runs(), **place.memories(), "schedules": left}


def outcomes(place: Place) -> Things:
    """Return what is found of outcomes: each counts once."""
    learned = place.ask("GET", "/admin/agents/{tenant}/procedures")["procedures"]
    kept = [f"{workflow['outcomes']} of {workflow['mean_score']}" for workflow in learned]
    held = place.ask("GET", "/v1/agents/{tenant}/sdr/instances/desk")["procedures"]
    known = [f"{one['alpha']} {one['beta']}" for workflows in held.values() for one in workflows.values()]
    return {**place.runs(), "outcomes": Counter(kept), "posteriors": Counter(known)}


def deleted(place: Place) -> None:
    """Delete a conversation with everything that its instance holds."""
    answer = place.request("DELETE", "/v1/agents/{tenant}/sdr/instances/desk")
    assert answer.is_success or answer.status_code == 404, answer.text


def what_is_left(place: Place) -> Things:
    """Return what is found of a deleted conversation, next to the records, which stay."""
    messages = "SELECT 'message' FROM conversation_messages WHERE tenant_id = ?"
    return {**place.runs(), **place.memories(), "messages": place.counted(messages)}


def shipped(place: Place) -> None:
    """Run an agent that calls a tool of the gateway which is not idempotent."""
    answer = _run(place, "courier", order((TOOL, {"order_id": place.tenant}), say="done"), "ship")
    assert (answer["status"], answer["output"]) == ("completed", "done"), answer


def shipments(place: Place) -> Things:
    """Return how often the upstream shipped the order, by its own count.

    It may have shipped nothing only if the run's log says that the outcome is unknown. That counts as once.
    """
    events = place.rows("SELECT data FROM run_events WHERE tenant_id = ? AND kind = 'tool_answered'")
    answers = [json.loads(event["data"])["content"] for event in events]
    times = place.shipping.shipped[place.tenant]
    if times == 0 and len(answers) == 1 and "outcome_unknown" in answers[0]:
        times = 1
    return {**place.runs(), "shipments": Counter({"order": times}), "answers": Counter({"answer": len(answers)})}


def of_agents(place: Place) -> Things:
    """Return what is found of runs: their logs, what they stored, what they remember and which keys they changed in KV.

    A put that is repeated has a row of its own in the audit of KV. It does not count as doubled, because it was made.
    """
    return {
        **place.runs(),
        **place.memories(),
        "messages": place.counted("SELECT agent_type, role FROM conversation_messages WHERE tenant_id = ?"),
        "decisions": place.counted("SELECT agent_type, kind, decision FROM decision_log WHERE tenant_id = ?"),
        "changes in KV": place.counted("SELECT DISTINCT key, operation FROM kv_audit WHERE tenant_id = ?"),
    }
