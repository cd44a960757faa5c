"""What a tenant does with Retain, by its names, through the whole Worker: so that any of it can meet a move.

Everything is done over HTTP to a tenant that is on one database, or moves between several meanwhile. What is shown does
not name ids or times, so that two deployments in which the same was done show the same.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context
from typing import Any

from tests.agents.conftest import agent
from tests.shell.test_webhooks import Shop
from tests.shell.worker import Answer, Worker
from tests.support.databases import connection_of
from tests.support.instances import staged_agents

ADMIN, AGENTS = "/admin/tenants/acme", "/v1/agents/acme"
CATCH_UP, BRIEF = "*/5 * * * *", "0 4 * * *"
KEPT_MS = 61_000
LEGACY_PATTERNS = json.dumps([{"template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}", "service": "shop"}])
"""The legacy keys of items."""
_PAY = {"tool": "set_working_memory", "arguments": {"key": "k", "value": 1}}
_LEARN = {"tool": "store_memory", "arguments": {"content": "The customer prefers {{input}}."}}
_SCRIPTS = [
    {"name": "payer", "rules": [{"rule": "pay", "when": {}, "reply": {"calls": [_PAY]}}]},
    {"name": "learner", "rules": [{"rule": "say", "when": {}, "reply": {"text": "Understood."}}]},
]
_PROCEDURES = {"mail": {"short": "Be short."}}
_OWN = {"description": "Guides.", "instructions": "Guide.", "model": {"provider": "scripted", "script": "learner"}}
_IMPORTED = {"kind": "record", "id": "01HZZZZZZZZZZZZZZZZZZZZZZ0", "scope_id": "tenant"}


def agents(*more: Mapping[str, Any], scripts: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the agents: one whose runs wait for a person, one that answers at once by a workflow, and more."""
    asks = {"working_memory": True, "approval": ["set_working_memory"]}
    return staged_agents(
        agent("clerk", **asks, model={"provider": "scripted", "script": "payer"}),
        agent("guide", model={"provider": "scripted", "script": "learner"}, procedures=_PROCEDURES),
        *more,
        scripts=[*_SCRIPTS, *scripts],
    )


class Features:
    """One tenant's doings. done: which; what each may need of earlier ones is kept. shop: hears its webhooks."""

    def __init__(self, worker: Worker, shop: Shop) -> None:
        self.worker = worker
        self.shop = shop
        self.memories: list[str] = []
        self.waiting: list[tuple[str, str]] = []
        self.runs: list[str] = []
        self.files: list[str] = []
        self.exported: list[str] = []
        self.cursor: str | None = None
        self.export_ends = 0
        self.schedule: str | None = None
        self.number = 0
        self.began: dict[str, int] = {}
        self.erased = False
        self.freed: asyncio.Event | None = None
        self.blocked: asyncio.Event | None = None
        self.refused = 0

    async def ask(
        self, method: str, path: str, content: object = None, *, body: bytes | None = None, **headers: str
    ) -> Answer:
        """Send a request; one that is refused because the tenant is frozen is sent again when it is not."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for _ in range(20):
            answer = await self.worker.request(method, path, content, body=body, headers=named)
            if answer.status != 503 or answer.content.get("code") != "tenant_moving":
                return answer
            self.refused += 1
            if self.freed is None or self.blocked is None:
                break
            self.blocked.set()
            await self.freed.wait()
        raise AssertionError(f"{method} {path} is refused for too long: {answer.body!r}")

    def text(self, about: str) -> str:
        """Return a text that nothing else has."""
        self.number += 1
        return f"{about} number{self.number} is in hall{self.number * 7}."

    async def do(self, name: str) -> None:
        """Do something by its name."""
        await DOINGS[name](self)
        await self.worker.settled()

    async def store(self) -> None:
        """Store a memory of the tenant."""
        made = await self.ask("POST", f"{ADMIN}/memories", {"content": self.text("Berth"), "metadata": {"n": 1}})
        assert made.status == 201, made.body
        self.memories.append(made.content["id"])

    async def store_long(self) -> None:
        """Store a memory with several vectors."""
        text = " ".join(self.text("Crane") for _ in range(60))
        made = await self.ask("POST", f"{ADMIN}/memories", {"content": text, "subject": "cranes"})
        assert made.status == 201, made.body
        self.memories.append(made.content["id"])

    async def store_of_ann(self) -> None:
        """Store a memory of a user."""
        made = await self.ask("POST", f"{ADMIN}/memories", {"content": self.text("Quillon"), "user_id": "ann"})
        assert made.status == 201, made.body

    async def edit(self) -> None:
        """Shorten the newest memory."""
        if self.memories:
            changed = await self.ask("PATCH", f"{ADMIN}/memories/{self.memories[-1]}", {"content": self.text("Winch")})
            assert changed.status in (200, 404), changed.body

    async def delete(self) -> None:
        """Delete the newest memory."""
        if self.memories:
            gone = await self.ask("DELETE", f"{ADMIN}/memories/{self.memories.pop()}")
            assert gone.status in (204, 404), gone.body

    async def run(self) -> None:
        """Run an agent for nobody."""
        ended = await self.ask("POST", f"{AGENTS}/guide/run", {"input": "hello", "instance_id": "desk"})
        assert ended.status == 200, ended.body
        self.runs.append(ended.content["run_id"])

    async def run_for_ann(self) -> None:
        """Run an agent for a user."""
        text = self.text("Quillon")
        ended = await self.ask(
            "POST", f"{AGENTS}/guide/run", {"input": text, "instance_id": "a", "user": {"id": "ann"}}
        )
        assert ended.status == 200, ended.body

    async def begin_waiting(self) -> None:
        """Let a run wait for a person."""
        name = f"till-{len(self.waiting)}"
        begun = await self.ask("POST", f"{AGENTS}/clerk/run", {"input": "pay", "instance_id": name})
        assert begun.status == 202, begun.body
        self.waiting.append((name, begun.content["run_id"]))

    async def answer_waiting(self) -> None:
        """Reject what the run that waits asks for: it asks again otherwise."""
        if self.waiting:
            name, run_id = self.waiting.pop()
            path = f"{AGENTS}/clerk/instances/{name}/runs/{run_id}"
            waits = (await self.ask("GET", path)).content["waiting_for"]
            answered = await self.ask("POST", f"{path}/resume", {"call": waits["call"], "decision": "reject"})
            assert answered.status in (200, 202), answered.body
            await self.worker.settled()
            ended = await self.ask("POST", f"{path}/cancel", {})
            assert ended.status in (200, 202, 409), ended.body

    async def schedule_runs(self) -> None:
        """Create a schedule that fires every hour, or pause and resume it."""
        if self.schedule is None:
            body = {"agent_type": "guide", "instance_id": "nightly", "input": "report", "cron": "0 * * * *"}
            made = await self.ask("POST", "/v1/tenants/acme/schedules", body)
            assert made.status == 201, made.body
            self.schedule = made.content["schedule_id"]
            return
        for state in ("paused", "active"):
            changed = await self.ask("PATCH", f"/v1/tenants/acme/schedules/{self.schedule}", {"state": state})
            assert changed.status == 200, changed.body

    async def define_agent(self) -> None:
        """Define a version of an agent of the tenant's own, and run it."""
        made = await self.ask("PUT", f"{ADMIN}/agents/greeter", {**_OWN, "instructions": self.text("Greet")})
        assert made.status in (200, 201), made.body
        ended = await self.ask("POST", f"{AGENTS}/greeter/run", {"input": "hello", "instance_id": "door"})
        assert ended.status == 200, ended.body

    async def upload(self) -> None:
        """Upload a file."""
        content = self.text("File").encode()
        made = await self.ask(
            "POST", f"{AGENTS}/attachments", body=content, content_type="text/plain", content_length=str(len(content))
        )
        assert made.status == 201, made.body
        self.files.append(made.content["id"])

    async def remove_file(self) -> None:
        """Remove a file."""
        if self.files:
            gone = await self.ask("DELETE", f"{AGENTS}/attachments/{self.files.pop()}")
            assert gone.status == 204, gone.body

    async def subscribe(self) -> None:
        """Create a webhook."""
        made = await self.ask("POST", "/v1/tenants/acme/webhooks", {"url": self.shop.url})
        assert made.status in (201, 507), made.body

    async def export(self) -> None:
        """Read the next page of an export."""
        after = "" if self.cursor is None else f"?cursor={self.cursor}"
        page = await self.ask("GET", f"{ADMIN}/export{after}")
        assert page.status == 200, page.body
        self.exported += [line for line in page.body.decode().splitlines() if line]
        self.cursor = (
            page.headers.get("x-next-cursor") if page.headers.get("x-next-cursor") not in (None, "None") else None
        )
        self.export_ends += self.cursor is None

    async def back_up(self) -> None:
        """Start a backup, or continue it."""
        made = await self.ask("POST", f"{ADMIN}/backups")
        assert made.status in (200, 202, 409), made.body

    async def restore(self) -> None:
        """Restore the tenant from its newest complete backup, or continue to."""
        made = await self.ask("POST", f"{ADMIN}/restore", {})
        assert made.status in (200, 202, 404, 409), made.body

    async def bring_back(self) -> None:
        """Import what was exported so far."""
        lines = [line for line in self.exported if json.loads(line)["kind"] != "page"][:200]
        if lines:
            body = "\n".join(lines).encode()
            done = await self.ask("POST", f"{ADMIN}/import", body=body, content_type="application/x-ndjson")
            assert done.status == 200, done.body

    async def put_item(self) -> None:
        """Put an item of a user, and read it."""
        path = f"{ADMIN}/items/shop/s-1/cart/one"
        made = await self.ask("PUT", path, {"value": self.text("Quillon"), "user_id": "ann"})
        assert made.status in (200, 201), made.body

    async def delete_item(self) -> None:
        """Delete the item."""
        gone = await self.ask("DELETE", f"{ADMIN}/items/shop/s-1/cart/one")
        assert gone.status == 200, gone.body

    async def ingest(self) -> None:
        """Ingest a conversation."""
        messages = [{"id": "m", "speaker": "Ann", "content": self.text("I live at berth")}]
        made = await self.ask("POST", f"{ADMIN}/memories/ingest", {"conversation": "chat", "messages": messages})
        assert made.status in (200, 201, 202), made.body

    async def reindex(self) -> None:
        """Rebuild the index."""
        done = await self.ask("POST", f"{ADMIN}/reindex")
        assert done.status in (200, 202), done.body

    async def limit(self) -> None:
        """Set quotas."""
        done = await self.ask("PUT", f"{ADMIN}/quotas", {"memories": 500 + self.number, "runs_a_day": 900})
        assert done.status == 200, done.body

    async def grant(self) -> None:
        """Grant a role."""
        done = await self.ask("PUT", f"{ADMIN}/roles/email:a@example.com", {"role": "viewer"})
        assert done.status in (200, 201), done.body

    async def erase_ann(self) -> None:
        """Erase a user, or continue to."""
        done = await self.ask("POST", f"{ADMIN}/erase", {"user": "ann"})
        assert done.status in (200, 202), done.body
        receipt = done.content["receipt"]
        self.erased = receipt["state"] == "completed"
        began = self.began.setdefault(receipt["receipt_id"], self.number)
        if self.erased:
            for shard, database in self.worker.shards.items():
                dumped = "".join(connection_of(database.store).iterdump())
                left = [number for number in re.findall(r"Quillon number(\d+)", dumped) if int(number) <= began]
                assert left == [], f"{shard} has something of the user, and the receipt says that all is gone"

    async def erase_cranes(self) -> None:
        """Erase a subject, or continue to."""
        done = await self.ask("POST", f"{ADMIN}/erase", {"subject": "cranes"})
        assert done.status in (200, 202), done.body
        self.erased = done.content["receipt"]["state"] == "completed"

    async def pass_an_hour(self) -> None:
        """Let an hour pass, with what is due then."""
        self.worker.clock.advance(3_600_000)
        await self.worker.ring()
        await self.worker.settled()

    async def work(self) -> None:
        """Let the scheduled work of five minutes fire."""
        await self.worker.cron(CATCH_UP)

    async def brief(self) -> None:
        """Let the daily work fire."""
        await self.worker.cron(BRIEF)


Doing = Callable[[Features], Awaitable[None]]
DOINGS: Mapping[str, Doing] = {
    name: getattr(Features, name)
    for name in (
        *(
            "store",
            "store_long",
            "store_of_ann",
            "edit",
            "delete",
            "run",
            "run_for_ann",
            "begin_waiting",
            "answer_waiting",
        ),
        *(
            "schedule_runs",
            "define_agent",
            "upload",
            "remove_file",
            "subscribe",
            "export",
            "back_up",
            "restore",
            "bring_back",
            "put_item",
        ),
        *("delete_item", "ingest", "reindex", "limit", "grant", "erase_ann", "erase_cranes", "pass_an_hour"),
    )
}
OF_THE_DEPLOYMENT: Mapping[str, Doing] = {"work": Features.work, "brief": Features.brief}
"""What begins for all tenants, and waits for moves."""


class Meeting:
    """Lets something be done at a call of D1 that a step of a move makes."""

    def __init__(self, features: Features) -> None:
        self._features = features
        self._left = 0
        self._doing: str | None = None
        self._task: asyncio.Task[None] | None = None
        for database in features.worker.shards.values():
            for name in ("all", "batch"):
                setattr(database, name, self._met(getattr(database, name)))

    def _met(self, call: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def met(argument: Any) -> Any:
            if self._doing is not None and self._task is None:
                self._left -= 1
                if self._left < 0:
                    await self._begin()
            return await call(argument)

        return met

    async def _begin(self) -> None:
        features = self._features
        features.blocked, features.freed = asyncio.Event(), asyncio.Event()
        assert self._doing is not None
        # A request comes from the platform, not from the mover's task: it sees nothing of its context.
        self._task = asyncio.create_task(features.do(self._doing), context=Context())
        waits = asyncio.create_task(features.blocked.wait())
        await asyncio.wait({self._task, waits}, return_when=asyncio.FIRST_COMPLETED)
        waits.cancel()

    async def during(self, step: Callable[[], Awaitable[None]], doing: str, nth: int) -> None:
        """Take a step; do something at its nth call of D1, or after it if it has fewer."""
        self._doing, self._left, self._task = doing, nth, None
        try:
            await step()
        finally:
            task, self._doing, self._task = self._task, None, None
        if task is None:
            await self._features.do(doing)
        else:
            assert self._features.freed is not None
            self._features.freed.set()
            await task
            self._features.freed = self._features.blocked = None
        await self._features.worker.ring()  # what an object could not write to a frozen tenant it writes now
        await self._features.worker.settled()


async def shown(features: Features) -> dict[str, Any]:
    """Return what the tenant has in the end, without ids and times."""

    async def listed(path: str, key: str) -> list[Any]:
        found: list[Any] = []
        cursor = None
        while True:
            answer = await features.ask("GET", f"{path}{'&' if '?' in path else '?'}limit=50{cursor or ''}")
            assert answer.status == 200, answer.body
            found += answer.content[key]
            if not answer.content.get("cursor"):
                return found
            cursor = f"&{'after' if key == 'entries' else 'cursor'}={answer.content['cursor']}"

    worker = features.worker
    runs = await listed("/admin/agents/acme/runs", "runs")
    recalled = await features.ask("POST", f"{ADMIN}/memories/recall", {"query": "berth crane hall", "top_k": 50})
    verified = await features.ask("GET", f"{ADMIN}/history/verify")
    drift = await features.ask("POST", f"{ADMIN}/verify")
    webhooks = (await features.ask("GET", "/v1/tenants/acme/webhooks")).content["webhooks"]
    deliveries = [
        (one["event"], one["status"])
        for hook in webhooks
        for one in await listed(f"/v1/tenants/acme/webhooks/{hook['webhook_id']}/deliveries", "deliveries")
    ]
    counts = Counter(json.loads(line)["kind"] for line in features.exported)
    tables = {
        table: (await worker.rows(f"SELECT COUNT(*) AS n FROM {table} WHERE tenant_id = 'acme'")) for table in COUNTED
    }
    return {
        "memories": sorted(one["content"] for one in await listed(f"{ADMIN}/memories", "memories")),
        "recalled": sorted(one["content"] for one in recalled.content["memories"]),
        "runs": sorted((one["agent_type"], one["status"], one["input_tokens"]) for one in runs),
        "users": sorted(one.get("user_id") or one["id"] for one in await listed(f"{ADMIN}/users", "users")),
        "agents": sorted(one["agent_type"] for one in (await features.ask("GET", f"{ADMIN}/agents")).content["agents"]),
        "conversations": sorted(
            (one["agent_type"], one["instance_id"]) for one in await listed(f"{AGENTS}/instances", "instances")
        ),
        "schedules": [one["state"] for one in await listed("/v1/tenants/acme/schedules", "schedules")],
        "files": len(await listed(f"{AGENTS}/attachments", "attachments")),
        "deliveries": sorted(deliveries),
        "exported": {"lines": counts, "ends": features.export_ends},
        # While a tenant moves an erasure does not complete: asked again, it continues, where another one would begin.
        "erasures": {(one["kind"], one["state"]) for one in await listed(f"{ADMIN}/erase", "receipts")},
        "quotas": (await features.ask("GET", f"{ADMIN}/quotas")).content,
        "roles": len((await features.ask("GET", f"{ADMIN}/roles")).content["roles"]),
        "mutations": sorted(
            one["kind"]
            for one in await listed(f"{ADMIN}/history/mutations", "entries")
            if one["kind"] not in ("erasure_started", "backup_started")  # which waits for erasures
        ),
        "verified": {name: verified.content[name] for name in ("problem", "broken_at", "cursor")},
        "drift": drift.content["drift"],
        "used": [
            dict(row)
            for row in await worker.rows("SELECT memories, runs, tokens, day FROM tenant_use WHERE tenant_id = 'acme'")
        ],
        "models": sorted(
            tuple(row.values()) for row in await worker.rows("SELECT * FROM model_use WHERE tenant_id = 'acme'")
        ),
        "calls": sorted(
            tuple(row.values()) for row in await worker.rows("SELECT * FROM model_calls WHERE tenant_id = 'acme'")
        ),
        "rows": {table: sum(row["n"] for row in rows) for table, rows in tables.items()},
    }


COUNTED = (
    "agent_runs", "run_events", "parked_runs", "schedules", "agent_versions", "users", "outbox_failures", "attachment_uses",
    "attachments", "memory_records", "memory_events", "memory_episodes", "conversation_messages", "conversations", "scopes",
    "memory_search", "memory_postings", "memory_likeness", "episode_counts", "memory_items", "webhook_deliveries",
    "webhooks", "ingest_messages", "ingest_jobs", "erased_users", "mutation_subjects", "decision_log",
)  # fmt: skip
