"""The lists that are walked page by page: what each is called, what names an entry, and what adds and deletes one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from retain.identifiers import new_id
from retain.ledgers.errors import Trouble, park
from tests.shell.guarded_routes import ACCOUNT
from tests.shell.worker import Worker

RUN = "Contact contact:7 responded positively."
OF = "/admin/tenants/acme"
AGENT_MEMORY = f"/client/v4/accounts/{ACCOUNT}/agent-memory/namespaces"
OWN = {"description": "Own.", "instructions": "Answer.", "model": {"provider": "scripted", "script": "sdr"}}

Add = Callable[[Worker, int], Awaitable[object]]


@dataclass(frozen=True)
class Walk:
    """A list. path: with its query. entries: their name in the answer. key: what names an entry. add: makes one more.

    deleted: the table and the column of the key, where an entry can be deleted.
    """

    route: str
    path: str
    entries: str
    key: tuple[str, ...]
    add: Add
    deleted: tuple[str, str] | None = None


async def sent(worker: Worker, method: str, path: str, content: object = None, **more: Any) -> Any:
    """Return the content of an answer that reports success."""
    answer = await worker.request(method, path, content, **more)
    assert answer.status < 300, (path, answer.body)
    await worker.settled()
    return answer.content if answer.body else None


def by(method: str, path: str, body: Callable[[int], object] = lambda _: None) -> Add:
    """Return what adds an entry by a request. path: with `{}` for the number."""
    return lambda worker, number: sent(worker, method, path.format(number), body(number))


def row_of(table: str, **values: object) -> Add:
    """Return what adds a row. values: callables get the number."""
    names = ", ".join(values)

    async def add(worker: Worker, number: int) -> None:
        row: list[Any] = [value(number) if callable(value) else value for value in values.values()]
        await worker.rows(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", *row)

    return add


async def upload(worker: Worker, number: int) -> None:
    content = f"file {number}".encode()
    headers = {"content-type": "text/plain", "content-length": str(len(content))}
    path = f"/v1/agents/acme/attachments?name=file-{number}.txt"
    assert (await worker.request("POST", path, body=content, headers=headers)).status == 201


async def fail(worker: Worker, number: int) -> None:
    await park(worker.db.store, Trouble("erasure", new_id(), "unavailable", worker.clock(), "acme"))


def run(instance: str = "desk") -> Add:
    path = "/v1/agents/acme/sdr/run"
    return by("POST", path, lambda number: {"input": RUN, "instance_id": instance.format(number)})


def memory(**more: object) -> Add:
    return by("POST", f"{OF}/memories", lambda number: {"content": f"thing {number}", **more})


MEMORY_KEY = ("id",)
_FILTERS = [
    quote(json.dumps(one))
    for one in ({"metadata.topic": "tea"}, {"metadata.topic": {"$in": ["tea", "milk"]}}, {"confidence": {"$gte": 0.1}})
]
_MEMORIES = partial(Walk, "GET /admin/tenants/{tenant}/memories")
_RECORDS = ("memory_records", "id")
_RUNS = partial(Walk, "GET /admin/agents/{tenant}/runs")
_CASE = {"input": RUN, "expected": {"contains": ["contact"]}, "id": "one"}
_DATASET = {"target": {"agent": "sdr"}, "cases": [_CASE]}
WALKS: dict[str, Walk] = {
    "tenants": Walk("GET /admin/tenants", "/admin/tenants", "tenants", ("tenant",), by("PUT", "/admin/tenants/t-{}")),
    "roles": Walk(
        "GET /admin/tenants/{tenant}/roles",
        f"{OF}/roles",
        "roles",
        ("subject",),
        by("PUT", f"{OF}/roles/group:g{{}}", lambda _: {"role": "viewer"}),
        ("role_grants", "subject"),
    ),
    "roles of the deployment": Walk(
        "GET /admin/roles",
        "/admin/roles",
        "roles",
        ("subject",),
        by("PUT", "/admin/roles/group:g{}", lambda _: {"role": "viewer"}),
        ("role_grants", "subject"),
    ),
    "keys": Walk(
        "GET /admin/tenants/{tenant}/keys",
        f"{OF}/keys",
        "keys",
        ("key_id",),
        by("POST", f"{OF}/keys", lambda n: {"name": f"k{n}", "scopes": ["runs"]}),
        ("application_keys", "key_id"),
    ),
    "webhooks": Walk(
        "GET /admin/tenants/{tenant}/webhooks",
        f"{OF}/webhooks",
        "webhooks",
        ("webhook_id",),
        by("POST", f"{OF}/webhooks", lambda n: {"url": f"http://127.0.0.1:9/{n}"}),
        ("webhooks", "webhook_id"),
    ),
    "deliveries": Walk(
        "GET /admin/tenants/{tenant}/webhooks/{webhook_id}/deliveries",
        f"{OF}/webhooks/{'0' * 26}/deliveries",
        "deliveries",
        ("message_id",),
        row_of(
            "webhook_deliveries",
            tenant_id="acme",
            webhook_id="0" * 26,
            message_id=lambda _: f"msg_{new_id()}",
            event="run.completed",
            run_id=lambda n: f"r{n}",
            agent_type="sdr",
            instance_id="desk",
            at_ms=1,
            due_at_ms=1,
        ),
        ("webhook_deliveries", "message_id"),
    ),
    "definitions": Walk(
        "GET /admin/tenants/{tenant}/agents",
        f"{OF}/agents",
        "agents",
        ("agent_type",),
        by("PUT", f"{OF}/agents/zz_{{:03}}", lambda _: OWN),
    ),
    "agents": Walk(
        "GET /v1/agents/{tenant}",
        "/v1/agents/acme",
        "agents",
        ("agent_type",),
        by("PUT", f"{OF}/agents/zz_{{:03}}", lambda _: OWN),
    ),
    "versions": Walk(
        "GET /admin/tenants/{tenant}/agents/{agent_type}/versions",
        f"{OF}/agents/own/versions",
        "versions",
        ("version",),
        by("PUT", f"{OF}/agents/own", lambda n: {**OWN, "description": f"Own {n}."}),
    ),
    "users": Walk(
        "GET /admin/tenants/{tenant}/users",
        f"{OF}/users",
        "users",
        ("id",),
        by("PUT", f"{OF}/users/u{{}}", lambda _: {}),
        ("users", "user_id"),
    ),
    "memories": _MEMORIES(f"{OF}/memories", "memories", MEMORY_KEY, memory(), _RECORDS),
    "all memories": _MEMORIES(f"{OF}/memories?all=true", "memories", MEMORY_KEY, memory(), _RECORDS),
    "memories of an agent": _MEMORIES(
        f"{OF}/memories?agent_type=sdr", "memories", MEMORY_KEY, memory(agent_type="sdr"), _RECORDS
    ),
    "memories of a user": _MEMORIES(
        f"{OF}/memories?user_id=ann", "memories", MEMORY_KEY, memory(user_id="ann"), _RECORDS
    ),
    "memories of a time": _MEMORIES(
        f"{OF}/memories?as_of_ms=1700000000000", "memories", MEMORY_KEY, memory(), _RECORDS
    ),
    "memories by a value": _MEMORIES(
        f"{OF}/memories?filter={_FILTERS[0]}", "memories", MEMORY_KEY, memory(metadata={"topic": "tea"}), _RECORDS
    ),
    "memories by several values": _MEMORIES(
        f"{OF}/memories?filter={_FILTERS[1]}", "memories", MEMORY_KEY, memory(metadata={"topic": "tea"}), _RECORDS
    ),
    "memories by no index": _MEMORIES(
        f"{OF}/memories?filter={_FILTERS[2]}", "memories", MEMORY_KEY, memory(), _RECORDS
    ),
    "items": Walk(
        "GET /admin/tenants/{tenant}/items",
        f"{OF}/items",
        "items",
        ("key",),
        by("PUT", f"{OF}/items/crm/s1/cart/i{{}}", lambda _: {"value": "tea"}),
        ("memory_items", "key"),
    ),
    "receipts": Walk(
        "GET /admin/tenants/{tenant}/erase",
        f"{OF}/erase",
        "receipts",
        ("receipt_id",),
        by("POST", f"{OF}/erase", lambda n: {"subject": f"s{n}"}),
        ("erasure_receipts", "receipt_id"),
    ),
    "datasets": Walk(
        "GET /admin/tenants/{tenant}/evals/datasets",
        f"{OF}/evals/datasets",
        "datasets",
        ("name",),
        by("PUT", f"{OF}/evals/datasets/d{{}}", lambda _: _DATASET),
    ),
    "evaluations": Walk(
        "GET /admin/tenants/{tenant}/evals/runs",
        f"{OF}/evals/runs",
        "runs",
        ("run_id",),
        row_of(
            "eval_runs",
            run_id=lambda _: new_id(),
            tenant_id="acme",
            dataset="d",
            version="1",
            definition="{}",
            state="completed",
            created_at_ms=1,
            updated_at_ms=1,
        ),
        ("eval_runs", "run_id"),
    ),
    "runs": _RUNS("/admin/agents/acme/runs", "runs", ("run_id",), run(), ("agent_runs", "run_id")),
    "runs of an agent": _RUNS(
        "/admin/agents/acme/runs?agent_type=sdr", "runs", ("run_id",), run(), ("agent_runs", "run_id")
    ),
    "runs of an instance": _RUNS(
        "/admin/agents/acme/runs?agent_type=sdr&instance_id=desk", "runs", ("run_id",), run(), ("agent_runs", "run_id")
    ),
    "runs with a text": _RUNS(
        "/admin/agents/acme/runs?text=positively", "runs", ("run_id",), run(), ("agent_runs", "run_id")
    ),
    "runs that ended": _RUNS(
        "/admin/agents/acme/runs?status=completed", "runs", ("run_id",), run(), ("agent_runs", "run_id")
    ),
    "instances": Walk(
        "GET /v1/agents/{tenant}/instances",
        "/v1/agents/acme/instances",
        "instances",
        ("instance_id",),
        run("desk-{}"),
        ("conversations", "instance_id"),
    ),
    "messages": Walk(
        "GET /v1/agents/{tenant}/{agent_type}/instances/{instance_id}/messages",
        "/v1/agents/acme/sdr/instances/desk/messages",
        "messages",
        ("message_id",),
        run(),
        ("conversation_messages", "message_id"),
    ),
    "newest messages": Walk(
        "GET /v1/agents/{tenant}/{agent_type}/instances/{instance_id}/messages",
        "/v1/agents/acme/sdr/instances/desk/messages?order=desc",
        "messages",
        ("message_id",),
        run(),
        ("conversation_messages", "message_id"),
    ),
    "schedules": Walk(
        "GET /admin/tenants/{tenant}/schedules",
        f"{OF}/schedules",
        "schedules",
        ("schedule_id",),
        by(
            "POST",
            f"{OF}/schedules",
            lambda n: {"agent_type": "sdr", "instance_id": "desk", "input": f"i{n}", "cron": "30 8 * * MON"},
        ),
        ("schedules", "schedule_id"),
    ),
    "decisions": Walk(
        "GET /admin/agents/{tenant}/decisions",
        "/admin/agents/acme/decisions",
        "decisions",
        ("decision_id",),
        row_of(
            "decision_log",
            decision_id=lambda _: new_id(),
            tenant_id="acme",
            run_id="r",
            kind="outcome",
            decision="yes",
            decided_by="sdr",
            agent_type="sdr",
            instance_id="desk",
            at_ms=1,
        ),
        ("decision_log", "decision_id"),
    ),
    "changes in KV": Walk(
        "GET /admin/tenants/{tenant}/kv-audit",
        f"{OF}/kv-audit",
        "changes",
        ("audit_id",),
        by("PUT", f"{OF}/items/crm/s1/cart/i{{}}", lambda _: {"value": "tea"}),
        ("kv_audit", "audit_id"),
    ),
    "errors": Walk("GET /admin/errors", "/admin/errors", "errors", ("error_id",), fail, ("error_ledger", "error_id")),
    "attachments": Walk(
        "GET /v1/agents/{tenant}/attachments",
        "/v1/agents/acme/attachments",
        "attachments",
        ("id",),
        upload,
        ("attachments", "attachment_id"),
    ),
    "costs": Walk(
        "GET /admin/tenants/{tenant}/costs",
        f"{OF}/costs",
        "costs",
        ("day", "agent_type", "purpose", "model"),
        row_of("model_use", tenant_id="acme", day=19000, agent_type="sdr", model=lambda n: f"m/{n}", runs=1),
        ("model_use", "model"),
    ),
    "namespaces": Walk(
        "GET /client/v4/accounts/{account}/agent-memory/namespaces",
        AGENT_MEMORY,
        "result",
        ("name",),
        by("PUT", "/admin/tenants/t-{}"),
    ),
    "profiles": Walk(
        "GET /client/v4/accounts/{account}/agent-memory/namespaces/{tenant}/profiles",
        f"{AGENT_MEMORY}/acme/profiles",
        "result",
        ("name",),
        by("PUT", f"{OF}/users/u{{}}", lambda _: {}),
        ("users", "user_id"),
    ),
}
