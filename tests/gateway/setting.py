"""A tenant with an API key and a tool, and the gateway in front of them."""

from __future__ import annotations

import base64
import builtins
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retain.gateway.credentials import read_credentials_key
from retain.gateway.provisioning import credential_entry, new_api_key, tool_entry
from retain.gateway.routes import PREFIX, Gateway
from retain.gateway.settings import GatewaySettings
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from retain.host.kv import SqliteKv
from retain.http import Request, Response
from retain.ports import Clock, Fetch, KeyPage
from tests.gateway.upstream_server import Upstream

CREDENTIALS_KEY = base64.b64encode(bytes(range(32))).decode()
SECRET = "upstream-secret-5f1c"
"""What no answer may show."""
TENANT = "acme"
TOOL = "create_order"

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "minLength": 1, "maxLength": 64},
        "quantity": {"type": "integer", "minimum": 1},
    },
    "required": ["order_id"],
    "additionalProperties": False,
}


def config(url: str = "https://api.example.com/orders", **changes: Any) -> dict[str, Any]:
    """Return a valid configuration of a tool, with these changes."""
    return {
        "version": 1,
        "description": "Create an order.",
        "url": url,
        "method": "POST",
        "host": url.partition("://")[2].partition("/")[0].partition("?")[0],
        "auth": {"kind": "bearer"},
        "parameters": PARAMETERS,
        "idempotent": False,
        "timeout_ms": 5000,
        **changes,
    }


class CountingKv:
    """A KV in memory that remembers which keys were read. calls: how many keys each call read."""

    def __init__(self, clock: Clock) -> None:
        self._store = SqliteKv.open(clock)
        self.reads: list[str] = []
        self.calls: list[int] = []

    async def get(self, key: str) -> str | None:
        self.reads.append(key)
        self.calls.append(1)
        return await self._store.get(key)

    async def get_many(self, keys: Sequence[str]) -> builtins.list[str | None]:
        self.reads += keys
        self.calls.append(len(keys))
        return await self._store.get_many(keys)

    async def put(self, key: str, value: str, *, ttl_s: int | None = None) -> None:
        await self._store.put(key, value, ttl_s=ttl_s)

    async def delete(self, key: str) -> None:
        await self._store.delete(key)

    async def list(self, prefix: str, *, cursor: str | None = None, limit: int = 1000) -> KeyPage:
        return await self._store.list(prefix, cursor=cursor, limit=limit)


@dataclass
class Setting:
    """Everything a test of the gateway works with. credentials_key: base64."""

    kv: CountingKv
    fetch: Fetch
    clock: ManualClock
    server: Upstream
    credentials_key: str

    def gateway(
        self,
        *,
        fetch: Fetch | None = None,
        allow_loopback: bool = True,
        credentials_key: str = "",
        kept_ms: int = 0,
    ) -> Gateway:
        """Return a new gateway, as a new isolate would have it. kept_ms: for how long it keeps what KV answered."""
        settings = GatewaySettings(
            credentials_key or self.credentials_key, allow_loopback=allow_loopback, kept_ms=kept_ms
        )
        return Gateway(self.kv, fetch or self.fetch, HostCrypto(), self.clock, settings)

    async def add_key(self, *scopes: str, tenant: str = TENANT, lifetime_ms: int | None = None) -> str:
        """Return a new API key."""
        new = new_api_key(tenant, scopes or ["*"], now_ms=self.clock(), lifetime_ms=lifetime_ms)
        await new.entry.write(self.kv)
        return new.api_key

    async def add_tool(self, path: str = "/echo", *, name: str = TOOL, tenant: str = TENANT, **changes: Any) -> None:
        """Store a tool of the loopback upstream, and its credential."""
        url = f"http://{self.server.host}{path}"
        await tool_entry(tenant, name, config(url, **changes), allow_loopback=True, allow_query_credential=True).write(
            self.kv
        )
        await self.add_credential(name=name, tenant=tenant)

    async def add_credential(self, secret: str = SECRET, *, name: str = TOOL, tenant: str = TENANT) -> None:
        """Store a tool's credential."""
        key = read_credentials_key(self.credentials_key)
        await (await credential_entry(HostCrypto(), key, tenant, name, secret)).write(self.kv)


def request(
    api_key: str | None,
    arguments: object = None,
    *,
    tool: str = TOOL,
    method: str = "POST",
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Request:
    """Return a request for a tool. body: sent as it is, instead of arguments."""
    sent = dict(headers or {})
    if api_key is not None:
        sent["authorization"] = f"Bearer {api_key}"
    text = json.dumps({"order_id": "A-1"} if arguments is None else arguments) if body is None else body
    return Request(method, PREFIX + tool, {}, sent, text, "gateway.example.com", "request-1")


def echoed(answer: Response) -> dict[str, Any]:
    """Return what the upstream says it received."""
    seen: dict[str, Any] = json.loads(answer.body)
    return seen
