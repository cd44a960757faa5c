"""What is interrupted: work that a client may repeat, and what must be true of it in the end, however often it was."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from tests.e2e.local_state import LocalState
from tests.e2e.puppet import order

Facts = Mapping[str, object]


@dataclass(frozen=True)
class Place:
    """A tenant of a server, as a scenario sees it."""

    api: httpx.Client
    state: LocalState
    tenant: str

    def ask(self, method: str, path: str, content: object = None, *, key: str | None = None) -> Any:
        """Send a request; return the answer's JSON. Raises: AssertionError unless it is a success."""
        headers = {} if key is None else {"idempotency-key": f"{self.tenant}-{key}"}
        answer = self.api.request(method, path.replace("{tenant}", self.tenant), json=content, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        return answer.json() if answer.content and "json" in answer.headers.get("content-type", "") else None

    def finish(self, path: str, content: object) -> None:
        """Post until the answer is 200: 202 says that there is more to do. Raises: AssertionError."""
        for _ in range(20):
            answer = self.api.post(path.replace("{tenant}", self.tenant), json=content)
            if answer.status_code == 200:
                return
            assert answer.status_code == 202, f"{path}: {answer.status_code} {answer.text[:300]}"
        raise AssertionError(f"{path} is never complete")

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return rows of D1. sql: `?` is the tenant."""
        return self.state.d1(sql, self.tenant)

    def memories(self) -> Counter[str]:
        """Return the contents of all records."""
        return Counter(row["content"] for row in self.rows("SELECT content FROM memory_records WHERE tenant_id = ?"))

    def runs(self) -> list[object]:
        """Return each run's end, and how often each of its side effects is in its log and each turn in its episodes."""
        ends: list[object] = []
        for run in self.rows(
            "SELECT run_id, agent_type, status FROM agent_runs WHERE tenant_id = ? ORDER BY agent_type"
        ):
            events = self.state.d1("SELECT seq, kind FROM run_events WHERE run_id = ? ORDER BY seq", run["run_id"])
            assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), "the log has a gap"
            kinds = Counter(event["kind"] for event in events)
            turns = self.state.d1("SELECT turn FROM memory_episodes WHERE run_id = ? ORDER BY turn", run["run_id"])
            assert len({turn["turn"] for turn in turns}) == len(turns), "an episode is doubled"
            ends.append((run["agent_type"], run["status"], kinds["tool_called"], kinds["run_completed"], len(turns)))
        return ends


@dataclass(frozen=True)
class Scenario:
    """Work to interrupt. prepare: what is there before. act: repeated after the kill. facts: the same as without a kill."""

    prepare: Callable[[Place], None]
    act: Callable[[Place], None]
    facts: Callable[[Place], Facts]


def _nothing(_: Place) -> None:
    pass


def _run(place: Place) -> None:
    stored = ("store_memory", {"content": "Carol was refunded."})
    noted = ("set_working_memory", {"key": "note", "value": "N-1"})
    body = {"input": order(stored, noted, say="done"), "instance_id": "desk"}
    answer = place.ask("POST", "/v1/agents/{tenant}/sdr/run", body, key="run")
    assert (answer["status"], answer["output"]) == ("completed", "done"), answer


def _delegate(place: Place) -> None:
    inner = order(("store_memory", {"content": "Decided for Carol."}), say="APPROVE")
    body = {
        "input": order(("delegate", {"agent": "refund_decision", "input": inner}), say="done"),
        "instance_id": "desk",
    }
    answer = place.ask("POST", "/v1/agents/{tenant}/order_triage/run", body, key="delegate")
    assert (answer["status"], answer["output"]) == ("completed", "done"), answer


def _stream(place: Place) -> None:
    body = {
        "input": order(("store_memory", {"content": "Streamed."}), say="done"),
        "instance_id": "desk",
        "stream": True,
    }
    headers = {"idempotency-key": f"{place.tenant}-stream"}
    answer = place.api.post(f"/v1/agents/{place.tenant}/sdr/run", json=body, headers=headers)
    assert answer.is_success, answer.text
    assert "run_completed" in answer.text or '"completed"' in answer.text, answer.text[-500:]


def _approval(place: Place) -> None:
    body = {"input": order(("issue_refund", {"order": "AB-1"}), say="done"), "instance_id": "desk"}
    waiting = place.ask("POST", "/v1/agents/{tenant}/clerk/run", body, key="approval")
    if waiting["status"] == "waiting":
        path = f"/v1/agents/{{tenant}}/clerk/instances/desk/runs/{waiting['run_id']}"
        place.ask("POST", f"{path}/resume", {"call": waiting["waiting_for"]["call"], "decision": "approve"})


def _ingest(place: Place) -> None:
    messages = [
        {"speaker": "Ann", "content": text} for text in ("I moved to Oslo.", "I work at Acme.", "I am a vegetarian.")
    ]
    sent = {"conversation": "c-1", "messages": messages, "agent_type": "sdr"}
    place.ask("POST", "/admin/tenants/{tenant}/memories/ingest", sent)


def _stored(place: Place) -> None:
    memories = [{"content": f"Memory {number} of carol.", "subject": "carol"} for number in range(3)]
    place.ask("POST", "/admin/seed-memory", {"tenant": place.tenant, "agent_type": "sdr", "memories": memories})


def _erase(place: Place) -> None:
    place.finish("/admin/tenants/{tenant}/erase", {"subject": "carol"})


def _reindex(place: Place) -> None:
    place.finish("/admin/tenants/{tenant}/reindex", None)


def _items(place: Place) -> None:
    for kind in ("cart", "preferences", "system_logs"):
        path = f"/admin/tenants/{{tenant}}/items/shop/s-1/{kind}/one"
        place.ask("PUT", path, {"value": json.dumps({"kind": kind})})


def _agent_facts(place: Place) -> Facts:
    return {"runs": place.runs(), **_record_facts(place)}


def _record_facts(place: Place) -> Facts:
    return {"memories": place.memories(), "history": _verified(place), "index": _index(place)}


def _item_facts(place: Place) -> Facts:
    base = "/admin/tenants/{tenant}/items/shop/s-1"
    return {kind: place.ask("GET", f"{base}/{kind}/one")["value"] for kind in ("cart", "preferences", "system_logs")}


def _verified(place: Place) -> object:
    found = place.ask("GET", "/admin/tenants/{tenant}/history/verify")
    return found["problem"], found["broken_at"]


def _index(place: Place) -> object:
    found = place.ask("POST", "/admin/tenants/{tenant}/verify")
    return found["checked"], found["drift"]


SCENARIOS: Mapping[str, Scenario] = {
    "run": Scenario(_nothing, _run, _agent_facts),
    "delegate": Scenario(_nothing, _delegate, _agent_facts),
    "stream": Scenario(_nothing, _stream, _agent_facts),
    "approval": Scenario(_nothing, _approval, _agent_facts),
    "ingest": Scenario(_nothing, _ingest, _record_facts),
    "store": Scenario(_nothing, _stored, _record_facts),
    "erasure": Scenario(_stored, _erase, _record_facts),
    "reindex": Scenario(_stored, _reindex, _record_facts),
    "items": Scenario(_nothing, _items, _item_facts),
}
