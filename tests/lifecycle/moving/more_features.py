"""More of what a tenant does: what is replayed, scored, evaluated, migrated, or sent with a sealed credential."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from retain.gateway.provisioning import credential_entry, tool_entry
from retain.host.crypto import HostCrypto
from retain.items.rekeying.reads import SETTLE_MS
from tests.agents.conftest import agent
from tests.gateway.setting import config
from tests.lifecycle.moving.features import ADMIN, AGENTS, DOINGS, LEGACY_PATTERNS, Doing, Features, agents
from tests.shell.test_webhooks import Shop
from tests.shell.worker import KEY, Worker

HOT_MS = 2 * 3_600_000
"""After so long no hot copy of an item answers a read."""
_CREDENTIAL = "sealed-4711"
_CALLS = [
    {"tool": "order", "arguments": {"order_id": "7"}},
    {"tool": "market__search", "arguments": {"words": "hats"}},
]
BUYER_SCRIPT: Mapping[str, Any] = {
    "name": "buyer",
    "rules": [
        {"rule": "buy", "when": {"last": "user"}, "reply": {"calls": _CALLS}},
        {"rule": "say", "when": {"last": "tool"}, "reply": {"text": "Bought."}},
    ],
}
BUYER: Mapping[str, Any] = agent(
    "buyer",
    model={"provider": "scripted", "script": "buyer"},
    tools=["order"],
    mcp_servers={"market": {"tools": ["search"]}},
)
Market = tuple[str, list[str]]
VARIABLES: Mapping[str, str] = {"APPLICATION_KEYS": "true", "MEMORY_NAMESPACE_LEGACY_PATTERNS": LEGACY_PATTERNS}
"""What the deployment sets for all of this."""
_CASE = {"id": "one", "input": "hello", "expected": {"excludes": ["nothing of this"]}}
_EVALS, _KEYS = f"{ADMIN}/evals", f"{ADMIN}/keys"


def all_agents() -> str:
    """Return the agents, and one that buys."""
    return agents(BUYER, scripts=[BUYER_SCRIPT])


class AllFeatures(Features):
    """Everything that `Features` does, and more. market: the address of an MCP server; its requests' authorizations."""

    def __init__(self, worker: Worker, shop: Shop, market: Market) -> None:
        super().__init__(worker, shop)
        self._market = market
        self.evaluations: list[str] = []
        self.keys: list[tuple[str, str]] = []

    async def do(self, name: str) -> None:
        """See the base."""
        await ALL_DOINGS[name](self)
        await self.worker.settled()

    async def furnish(self) -> None:
        """Put the tools into the tenant's gateway, with their sealed credentials; and a dataset."""
        addresses = {"order": self.shop.url, "market": self._market[0]}
        for name, url in addresses.items():
            parameters = {"type": "object"} if name == "market" else config()["parameters"]
            settings = config(url, parameters=parameters, agents_only=True, timeout_ms=30_000)  # of a busy machine
            tool = tool_entry("acme", name, settings, allow_loopback=True)
            sealed = await credential_entry(HostCrypto(), base64.b64decode(KEY), "acme", name, _CREDENTIAL)
            for entry in (tool, sealed):
                await entry.write(self.worker.kv.store)
        made = await self.ask("PUT", f"{_EVALS}/datasets/set", {"target": {"agent": "guide"}, "cases": [_CASE]})
        assert made.status == 201, made.body
        cold = f"acme:s-1:order_history:{self.number}".encode()
        await self.worker.cold.store.put(cold.decode(), cold)

    async def buy(self) -> None:
        """Run an agent that calls a tool of the gateway and one of an MCP server, each with its credential."""
        before = len(self.shop.messages), len(self._market[1])
        ended = await self.ask("POST", f"{AGENTS}/buyer/run", {"input": "buy", "instance_id": f"b{self.number}"})
        assert (ended.status, ended.content["status"]) == (200, "completed"), ended.body
        orders = [headers for headers, _ in self.shop.messages[before[0] :] if "idempotency-key" in headers]
        assert [one["authorization"] for one in orders] == [f"Bearer {_CREDENTIAL}"]
        assert {*self._market[1][before[1] :]} == {f"Bearer {_CREDENTIAL}"}

    async def buy_in_vain(self) -> None:
        """Let the tool's upstream be down: the call is parked, and the message of the webhook waits."""
        self.shop.status = 503
        try:
            await self.buy()
            await self.worker.settled()
        finally:
            self.shop.status = 204

    async def replay_error(self) -> None:
        """Replay the newest parked error that can be."""
        for one in await self.errors("parked"):
            again = await self.ask("POST", f"/admin/errors/{one['error_id']}/replay")
            assert again.status == 200, (one, again.body)
            assert again.content["error"]["state"] == "replayed", again.body
            return

    async def dismiss_error(self) -> None:
        """Dismiss the newest parked error."""
        for one in await self.errors("parked"):
            done = await self.ask("POST", f"/admin/errors/{one['error_id']}/dismiss")
            assert (done.status, done.content["state"]) == (200, "dismissed"), done.body
            return

    async def errors(self, state: str | None = None) -> list[dict[str, Any]]:
        """Return what is in the error ledger."""
        only = "" if state is None else f"&state={state}"
        return list((await self.ask("GET", f"/admin/errors?tenant=acme&limit=50{only}")).content["errors"])

    async def replay_delivery(self) -> None:
        """Send the newest message of a webhook again."""
        for hook in (await self.ask("GET", "/v1/tenants/acme/webhooks")).content["webhooks"]:
            path = f"/v1/tenants/acme/webhooks/{hook['webhook_id']}/deliveries"
            for message in (await self.ask("GET", path)).content["deliveries"][:1]:
                again = await self.ask("POST", f"{path}/{message['message_id']}/replay")
                assert again.status == 202, again.body

    async def score(self) -> None:
        """Record the outcome of the newest run that followed a workflow."""
        if self.runs:
            score = {"score": round(0.1 * (self.number % 10), 1)}
            done = await self.ask("POST", f"/admin/agents/acme/runs/{self.runs[-1]}/outcome", score)
            assert done.status == 200, done.body

    async def run_with_files(self) -> None:
        """Run an agent with an uploaded file, if there is one, and one that the request brings."""
        files: list[dict[str, str]] = [{"id": one} for one in self.files[-1:]]
        content = base64.b64encode(self.text("Inline").encode()).decode()
        files.append({"data": content, "media_type": "text/plain", "name": "inline.txt"})
        body = {"input": "read", "instance_id": "files", "attachments": files}
        ended = await self.ask("POST", f"{AGENTS}/guide/run", body)
        assert (ended.status, ended.content["status"]) == (200, "completed"), ended.body

    async def retry_of_files(self) -> None:
        """Fork the newest run that had files: it reads them again."""
        found = await self.ask("GET", "/admin/agents/acme/runs?agent_type=guide&instance_id=files&limit=1")
        for run in found.content["runs"]:
            path = f"{AGENTS}/guide/instances/files/runs/{run['run_id']}/fork"
            forked = await self.ask("POST", path, {"turns": 0})
            assert forked.status in (200, 202), forked.body

    async def evaluate(self) -> None:
        """Start an evaluation, which waits while the tenant moves."""
        self.evaluations.append(f"evaluation-{len(self.evaluations)}")
        await self._evaluated(self.evaluations[-1])

    async def evaluate_on(self) -> None:
        """Ask again for every evaluation: one that was refused begins, one that waits continues."""
        for key in self.evaluations:
            await self._evaluated(key)

    async def _evaluated(self, key: str) -> None:
        headers = {"idempotency-key": key}
        for _ in range(5):
            answer = await self.worker.request("POST", f"{_EVALS}/runs", {"dataset": "set"}, headers=headers)
            await self.worker.settled()
            if answer.status != 202:
                break
        assert answer.status in (200, 202) or answer.content["code"] == "tenant_moving", answer.body

    async def make_key(self) -> None:
        """Create a key for an application."""
        made = await self.ask("POST", _KEYS, {"name": "shop", "scopes": ["memory:read"]})
        assert made.status == 201, made.body
        self.keys.append((made.content["key_id"], made.content["key"]))

    async def use_key(self) -> None:
        """List memories with the newest key."""
        if self.keys:
            bearer = f"Bearer {self.keys[-1][1]}"
            listed = await self.ask("GET", f"{ADMIN}/memories", authorization=bearer)
            assert listed.status == 200, listed.body

    async def revoke_key(self) -> None:
        """Revoke the newest key."""
        if self.keys:
            gone = await self.ask("DELETE", f"{_KEYS}/{self.keys.pop()[0]}")
            assert gone.status in (200, 204), gone.body

    async def roll_back_agent(self) -> None:
        """Define the tenant's agent as it was first, or delete it."""
        back = await self.ask("POST", f"{ADMIN}/agents/greeter/rollback", {"version": 1})
        assert back.status in (200, 201), back.body

    async def delete_agent(self) -> None:
        """Delete the tenant's agent."""
        gone = await self.ask("DELETE", f"{ADMIN}/agents/greeter")
        assert gone.status in (200, 204), gone.body

    async def rename(self) -> None:
        """Give a conversation a title."""
        named = await self.ask("PATCH", f"{AGENTS}/guide/instances/desk", {"title": self.text("Desk")})
        assert named.status in (200, 404), named.body

    async def put_plain_item(self) -> None:
        """Put an item that is nobody's."""
        made = await self.ask("PUT", f"{ADMIN}/items/shop/s-1/conversation/one", {"value": self.text("Item")})
        assert made.status in (200, 201), made.body

    async def rekey(self) -> None:
        """Begin the next phase of the migration of items' keys, with what it needs; after the last, go back one."""
        phase = (await self.ask("GET", "/admin/namespaces")).content["phase"]
        if phase == 0:
            self._deploy(write_canonical=False, compat_read=True)
            await self._commanded("phase", to=1, baseline=0.01)
        elif phase == 1:
            self._deploy(write_canonical=True, compat_read=True)
            await self._commanded("phase", to=2)
        elif phase == 2:
            self.worker.clock.advance(SETTLE_MS)
            for _ in range(20):
                if await self._commanded("backfill") == 200:
                    break
            for _ in range(2):
                await self._cycle()
            if await self._commanded("phase", to=3) == 200:
                self._deploy(write_canonical=True, compat_read=False)
        else:
            await self._commanded("rollback", to=2)
            self._deploy(write_canonical=True, compat_read=True)

    async def backfill(self) -> None:
        """Copy a page of values to their canonical keys, where the phase allows it."""
        self.worker.clock.advance(SETTLE_MS)
        await self._commanded("backfill")

    async def _cycle(self) -> None:
        await self.put_plain_item()
        for _ in range(3):
            self.worker.clock.advance(HOT_MS)
            for kind in ("cart", "conversation", "order_history"):
                await self.ask("GET", f"{ADMIN}/items/shop/s-1/{kind}/one")
        await self.worker.settled()
        self.number += 1
        await self._commanded("releases", release=f"r{self.number}")

    async def _commanded(self, command: str, **body: object) -> int:
        answer = await self.ask("POST", f"/admin/namespaces/{command}", body)
        assert answer.status in (200, 202) or answer.content["code"] in ("not_ready", "backfill_not_allowed"), (
            answer.body
        )
        return answer.status

    def _deploy(self, *, write_canonical: bool, compat_read: bool) -> None:
        self.worker.env.MEMORY_NAMESPACE_WRITE_CANONICAL = str(write_canonical).lower()
        self.worker.env.MEMORY_NAMESPACE_COMPAT_READ = str(compat_read).lower()
        self.worker.restart()

    async def more_shown(self) -> dict[str, Any]:
        """Return what the tenant has of these in the end, without ids and times."""
        items = (await self.ask("GET", f"{ADMIN}/items?limit=50")).content["items"]
        values = {}
        for one in items:
            values[one["key"]] = (await self._item(one["key"])).get("value")
        costs = (await self.ask("GET", f"{ADMIN}/costs")).content
        messages = await self.ask("GET", f"{AGENTS}/guide/instances/files/messages?limit=50")
        return {
            "errors": sorted((one["stage"], one["code"], one["state"]) for one in await self.errors()),
            "procedures": (await self.ask("GET", "/admin/agents/acme/procedures")).content,
            "evaluations": sorted(
                (one["state"], one["passed"]) for one in (await self.ask("GET", f"{_EVALS}/runs")).content["runs"]
            ),
            "keys": sorted(
                (one["name"], one["revoked_at_ms"] is None) for one in (await self.ask("GET", _KEYS)).content["keys"]
            ),
            "items": values,
            "keys of items": sorted(
                (row["key"], row["deleted"], row["tier"])
                for row in await self.worker.rows("SELECT * FROM memory_items WHERE tenant_id = 'acme'")
            ),
            "phase": (await self.ask("GET", "/admin/namespaces")).content["phase"],
            "versions": [
                (one["version"], one.get("deleted"))
                for one in (await self.ask("GET", f"{ADMIN}/agents/greeter/versions")).content["versions"]
            ],
            "costs": costs,
            "files": [
                [one["name"] for one in message.get("attachments") or ()]
                for message in messages.content.get("messages", ())
            ],
            "outcomes": sorted(
                (row["task_type"], row["workflow_id"], row["score"])
                for row in await self.worker.rows("SELECT * FROM procedure_outcomes WHERE tenant_id = 'acme'")
            ),
        }

    async def _item(self, key: str) -> dict[str, Any]:
        service, _, session, kind, name = key.split(":")
        return dict((await self.ask("GET", f"{ADMIN}/items/{service}/{session}/{kind}/{name}")).content)


_MORE = (
    *("buy", "buy_in_vain", "replay_error", "dismiss_error", "replay_delivery", "score", "run_with_files"),
    *("retry_of_files", "evaluate", "evaluate_on", "make_key", "use_key", "revoke_key", "roll_back_agent"),
    *("delete_agent", "rename", "put_plain_item", "rekey", "backfill"),
)
ALL_DOINGS: Mapping[str, Doing] = {**DOINGS, **{name: getattr(AllFeatures, name) for name in _MORE}}
"""What may meet a move."""
