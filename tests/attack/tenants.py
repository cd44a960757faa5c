"""Two tenants with the same furniture: what one has under a name, the other has under the same name.

Only the words differ. The victim's are canaries: random, in every place that keeps text, and never sent by the attacker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

ATTACKER = "team"
VICTIM = "team-b"
"""The attacker's name is a prefix of the victim's: whatever compares beginnings would mix the two."""
OWNER = "owner@example.com"
"""The owner of every tenant."""
MEMBERS = {ATTACKER: "mallory@example.com", VICTIM: "victor@example.com"}
"""The owner of each tenant, of that one alone. Mallory is the attacker."""
AGENTS = ("sdr", "refund_decision", "support", "order_triage")
OWN_AGENT = "greeter"
"""An agent that both tenants define."""
SECRET_AGENT = "porter"
"""An agent that the victim alone defines. The attacker knows its name."""
USERS = ("ann", "bob")
INSTANCES = ("desk", "phone")
DATASETS = ("first", "second")
TOOL = "create_order"
UPSTREAM = "https://orders.example.com"
SUBJECT = "emil@example.com"
KINDS = ("preferences", "cart", "conversation", "order_history", "system_logs")


class Answer(Protocol):
    """What a server answered."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


class Api(Protocol):
    """Reaches a server."""

    async def request(
        self,
        method: str,
        path: str,
        content: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send one request. content: sent as JSON."""
        ...


def order(*calls: tuple[str, Mapping[str, object]], say: str | None = None) -> str:
    """Return the input that makes the model call these tools, one per turn, and then say a text."""
    return json.dumps({"calls": calls, "say": say})


class Furnished:
    """A tenant. word: returns the next word that stands for what the tenant keeps to itself."""

    def __init__(self, api: Api, tenant: str, word: Callable[[], str]) -> None:
        self._api = api
        self._tenant = tenant
        self._word = word
        self.answers: list[tuple[str, Any]] = []

    async def furnish(self) -> None:
        """Put something into every place that a tenant has."""
        await self._do("PUT", f"/admin/tenants/{self._tenant}", {"max_memories_per_user": 5000})
        member = f"email:{MEMBERS[self._tenant]}"
        await self._do("PUT", f"/admin/tenants/{self._tenant}/roles/{member}", {"role": "owner"})
        hears = {
            "url": f"{UPSTREAM}/hooks/{self._tenant}"
        }  # it answers: no message is sent again while rows are compared
        await self._do("POST", f"/admin/tenants/{self._tenant}/webhooks", hears)
        await self._memories()
        await self._definitions()
        await self._runs()
        await self._items()
        await self._evaluations()
        await self._jobs()

    async def _memories(self) -> None:
        base = f"/admin/tenants/{self._tenant}"
        for user in USERS:
            profile = {"name": f"Name {self._word()}", "locale": "en-GB", "timezone": "Europe/Berlin"}
            await self._do("PUT", f"{base}/users/{user}", profile)
        owners: list[dict[str, str]] = [{}, {"house": "orders"}, {"user_id": "ann"}, {"user_id": "bob"}]
        owners += [{"agent_type": agent} for agent in AGENTS] + [{"agent_type": "sdr", "user_id": "ann"}]
        for owner in owners:
            for text in ("The vault code of Emil is", "Emil prefers the channel", "The reserve key is under"):
                record: dict[str, object] = {
                    "content": f"{text} {self._word()}.",
                    "metadata": {"topic": "vault", "level": 3, "note": self._word()},
                    "subject": SUBJECT,
                    "predicate": "knows",
                    "object": self._word(),
                }
                await self._do("POST", f"{base}/memories", {**record, **owner})
        seeded = {"tenant": self._tenant, "agent_type": "sdr", "memories": [{"content": f"Seeded {self._word()}."}]}
        await self._do("POST", "/admin/seed-memory", seeded)

    async def _runs(self) -> None:
        base = f"/v1/agents/{self._tenant}"
        for instance in INSTANCES:
            note = ("set_working_memory", {"key": "note", "value": self._word()})
            stored = ("store_memory", {"content": f"Emil answered {self._word()}."})
            sent = {"input": order(note, stored, say=self._word()), "instance_id": instance}
            await self._do("POST", f"{base}/sdr/run", sent)
            await self._do("PATCH", f"{base}/sdr/instances/{instance}", {"title": f"Title {self._word()}"})
            shared = ("store_memory", {"content": f"Refund {self._word()}.", "shared": True})
            sent = {"input": order(shared, say=f"APPROVE {self._word()}"), "instance_id": instance}
            await self._do("POST", f"{base}/refund_decision/run", sent)
        for user in USERS:
            text = order(say=f"Of course, {self._word()}")
            sent_by = {"input": text, "instance_id": user, "user": {"id": user}}
            await self._do("POST", f"{base}/support/run", sent_by)

    async def _definitions(self) -> None:
        for agent in (OWN_AGENT, SECRET_AGENT) if self._tenant == VICTIM else (OWN_AGENT,):
            for _ in range(2):
                texts = {"description": f"Guides {self._word()}.", "instructions": f"Say {self._word()}."}
                await self._do("PUT", f"/admin/tenants/{self._tenant}/agents/{agent}", texts)
            sent = {"input": order(say=self._word()), "instance_id": INSTANCES[0]}
            await self._do("POST", f"/v1/agents/{self._tenant}/{agent}/run", sent)

    async def _items(self) -> None:
        base = f"/admin/tenants/{self._tenant}/items"
        for kind in KINDS:
            for name, user in (("one", "ann"), ("two", None)):
                await self._do("PUT", f"{base}/shop/s-1/{kind}/{name}", {"value": self._word(), "user_id": user})
        await self._do("PUT", f"{base}/shop/s-1/{KINDS[0]}/big", {"value": self._word() * 8000})

    async def _evaluations(self) -> None:
        base = f"/admin/tenants/{self._tenant}/evals"
        for name in DATASETS:
            case = {"id": "one", "input": order(say=self._word()), "expected": {"contains": [self._word()]}}
            dataset = {"description": self._word(), "target": {"agent": "sdr"}, "cases": [case]}
            await self._do("PUT", f"{base}/datasets/{name}", dataset)
            await self._do("POST", f"{base}/runs", {"dataset": name})

    async def _jobs(self) -> None:
        base = f"/admin/tenants/{self._tenant}"
        messages = [
            {"speaker": "Ann", "content": f"I moved to {self._word()}."},
            {"speaker": "Bob", "content": f"My sister's name is {self._word()}."},
        ]
        sent = {"conversation": "c-1", "messages": messages, "agent_type": "sdr"}
        await self._do("POST", f"{base}/memories/ingest", sent)
        await self._do("POST", f"{base}/reindex")
        await self._do("POST", f"{base}/backups")
        await self._do("POST", f"{base}/erase", {"subject": "nobody@example.com"})

    async def look_around(self) -> None:
        """Read every list, one entry at a time, as its owner does: for what it has to name and to continue with."""
        admin, agents = f"/admin/tenants/{self._tenant}", f"/v1/agents/{self._tenant}"
        instances = [f"{agents}/{agent}/instances/{name}" for agent in AGENTS[:2] for name in INSTANCES]
        for path in (
            *(
                f"{admin}/{name}?limit=1"
                for name in ("memories", "users", "history", "kv-audit", "history/mutations", "roles")
            ),
            *(f"{admin}/memories?limit=2&{owner}" for owner in ("agent_type=sdr", "house=orders", "user_id=ann")),
            *(f"{admin}/evals/{name}?limit=1" for name in ("runs", "datasets")),
            *(f"/admin/agents/{self._tenant}/{name}?limit=1" for name in ("runs", "decisions")),
            *(f"/admin/agents/{self._tenant}/{name}?limit=50" for name in ("runs", "decisions")),
            *(f"{admin}/{name}?limit=1" for name in ("agents", f"agents/{OWN_AGENT}/versions")),
            f"{admin}/memories?limit=50",
            f"{admin}/export",
            f"{admin}/backups",
            f"{admin}/users/ann/export",
            f"{agents}/instances?limit=1",
            *instances,
            *(f"{one}/messages?limit=1" for one in instances),
        ):
            await self._do("GET", path)

    async def _do(self, method: str, path: str, content: object = None) -> None:
        answer = await self._api.request(method, path, content)
        assert answer.status < 300, f"{method} {path} was answered with {answer.status}: {answer.body!r}"
        self.answers.append((path, answer))
