"""A deployment with something to look at: the demo's runs, customers of whom facts are known, approvals, and evaluations."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import yaml

from tests.console.screens import Screen
from tests.e2e.waiting import eventually
from tools import demo
from tools.paths import ROOT

_MESSAGES = {
    "ann": ("I live in Porto.", "My favourite colour is green.", "I moved to Lyon.", "I work as a nurse."),
    "kim": ("My name is Kim.", "I live in Oslo."),
}


def fill(base_url: str, tenant_id: str) -> None:
    """Play the demo in a tenant, which is registered unless it is, and leave there what the other screens show."""
    with httpx.Client(base_url=base_url, timeout=120) as api:
        assert api.put(f"/admin/tenants/{tenant_id}").is_success
        with ThreadPoolExecutor() as parts:
            other = [parts.submit(part, api, tenant_id) for part in (_people, _evaluations)]
            demo.tell(base_url, tenant_id)
            for part in (_waiting_run, _edited_memory, _operations):
                part(api, tenant_id)
            for done in other:
                done.result()


def _people(api: httpx.Client, tenant_id: str) -> None:
    for user, messages in _MESSAGES.items():
        for number, message in enumerate(messages, start=1):
            body = {"input": message, "instance_id": f"chat-{user}", "user": {"id": user, "name": user.title()}}
            assert api.post(f"/v1/agents/{tenant_id}/support/run", json=body).is_success
            path = f"/admin/tenants/{tenant_id}/users/{user}"
            eventually(partial(api.get, path), partial(_has_runs, number))


def _has_runs(least: int, found: httpx.Response) -> bool:
    return found.is_success and int(found.json()["counts"]["runs"]) >= least


def _waiting_run(api: httpx.Client, tenant_id: str) -> None:
    body = {"input": "refund AB-1", "instance_id": "desk"}
    assert api.post(f"/v1/agents/{tenant_id}/clerk/run", json=body).status_code == 202


def _edited_memory(api: httpx.Client, tenant_id: str) -> None:
    memories = f"/admin/tenants/{tenant_id}/memories"
    stored = {"content": "Parcels to Norway take five days.", "house": "orders", "metadata": {"checked": False}}
    memory_id = api.post(memories, json=stored).json()["id"]
    changed = {"content": "Parcels to Norway take nine days since October.", "metadata": {"checked": True}}
    assert api.patch(f"{memories}/{memory_id}", json=changed).is_success


def _evaluations(api: httpx.Client, tenant_id: str) -> None:
    base = f"/admin/tenants/{tenant_id}/evals"
    dataset: dict[str, Any] = yaml.safe_load((ROOT / "evals" / "order_triage.yaml").read_text())
    dataset["cases"] = dataset["cases"][:2]
    dataset["thresholds"] = {"pass_rate": 1.0}
    dataset["description"] = "What order triage does with refund requests."
    for expected, runs in (("no such text", 1), ("ann@shop.example", 2)):
        dataset["cases"][0]["expected"] = {"contains": [expected]}
        dataset["cases"][1]["expected"] = {"contains": ["DECLINE"]}
        assert api.put(f"{base}/datasets/order_triage", json=dataset).is_success
        for _ in range(runs):
            answer = api.post(f"{base}/runs", json={"dataset": "order_triage"})
            while answer.status_code == 202:
                answer = api.post(f"{base}/runs/{answer.json()['run']['run_id']}")
            assert answer.status_code == 200, answer.text


def _operations(api: httpx.Client, tenant_id: str) -> None:
    for instructions in ("Be brief.", "Be brief and kind."):
        guide = {"description": "Answers guests.", "instructions": instructions, "model": {"script": "sdr"}}
        assert api.put(f"/admin/tenants/{tenant_id}/agents/guide", json=guide).is_success
    planned = {
        "agent_type": "sdr",
        "input": "Which contacts answered?",
        "cron": "0 9 1 * *",
        "timezone": "Europe/Lisbon",
    }
    assert api.post(f"/admin/tenants/{tenant_id}/schedules", json=planned).status_code == 201
    assert api.put(f"/admin/tenants/{tenant_id}/quotas", json={"memories": 200, "runs_a_day": 1_000}).is_success
    assert api.put(f"/admin/tenants/{tenant_id}/users/bob", json={"name": "Bob"}).is_success
    answer = api.delete(f"/admin/tenants/{tenant_id}/users/bob")
    while answer.status_code == 202:
        answer = api.delete(f"/admin/tenants/{tenant_id}/users/bob")


def screens(api: httpx.Client, tenant_id: str) -> list[Screen]:
    """Return every screen of what was filled in, those that the documentation shows first."""
    runs = {run["agent_type"]: run["run_id"] for run in api.get(f"/admin/agents/{tenant_id}/runs").json()["runs"]}
    memories = api.get(f"/admin/tenants/{tenant_id}/memories?limit=200").json()["memories"]
    edited = next(one["id"] for one in memories if one["content"].startswith("Parcels to Norway"))
    evaluations = api.get(f"/admin/tenants/{tenant_id}/evals/runs").json()["runs"]
    last, before = evaluations[0]["run_id"], evaluations[1]["run_id"]
    past = memories[-1]["recorded_at_ms"] - 1
    query = "query=refund+history+for+sara%40example.com&agent_type=refund_decision"
    return [
        Screen("runs", "runs", ".runs > li"),
        Screen("run", f"runs/{runs['order_triage']}", ".nested .step"),
        Screen("reason", f"runs/{runs['refund_decision']}", ".step", ("recall_memory",)),
        Screen("memory", "memory", ".memories > li"),
        Screen("history", f"memory/{edited}", ".history > li"),
        Screen("person", "people/ann", ".lanes > li"),
        Screen("recall", f"recall?{query}&top_k=3", ".recalled.below > li"),
        Screen(
            "compared", f"recall?{query}&compare=true&other_query=chargebacks&top_k=3", ".columns section + section li"
        ),
        Screen("evaluations", "evaluations", ".trend"),
        Screen("evaluation", f"evaluations/{last}?against={before}", ".cases > li", ("money-back-is-a-refund-too",)),
        Screen("operations", "operations", ".phases"),
        Screen("waiting", f"runs/{runs['clerk']}", ".question"),
        Screen("events", f"runs/{runs['order_triage']}?raw=true", ".event"),
        Screen("prompt", f"runs/{runs['refund_decision']}", ".step", ("Model, turn 2", "Prompt")),
        Screen("past", f"memory?as_of_ms={past}", ".memories > li, .nothing"),
        Screen("people", "people", ".people > li"),
        Screen("agent", "agents/guide?version=2", ".definition ins"),
        Screen("dataset", "datasets/order_triage", ".cases > li"),
        Screen("nothing", "recall", ".nothing"),
    ]
