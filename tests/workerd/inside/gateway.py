"""The gateway, put together as production does, on a platform where everything but KV raises."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any, NoReturn

from retain.gateway.provisioning import credential_entry, new_api_key, tool_entry
from retain.http import Request
from retain.ports import Kv
from tests.workerd.inside.platform import assembly, bindings

TENANT = "acme"
TOOL = "echo"
CREDENTIAL = "upstream-credential"


class _Forbidden:
    """A binding that may not be touched."""

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def __getattribute__(self, attribute: str) -> NoReturn:
        raise AssertionError(f"the proxy touched {object.__getattribute__(self, '_name')}.{attribute}")


class _CountingKv:
    """KV that notes the keys that are read, and refuses everything else."""

    def __init__(self, kv: Kv) -> None:
        self._kv = kv
        self.reads: list[str] = []

    async def get(self, key: str) -> str | None:
        """Read, and note the key."""
        self.reads.append(key)
        return await self._kv.get(key)


async def proxied(env: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Provision a tool at `asked["origin"]`, call it, and return the answer and the kinds of keys that were read."""
    real = bindings.platform_of(env)
    key = os.urandom(32)
    settings = replace(real.settings, credentials_key=_base64(key))
    config = {
        "version": 1,
        "description": "Echo the arguments.",
        "url": f"{asked['origin']}/echo",
        "host": asked["origin"].removeprefix("http://"),
        "method": "POST",
        "auth": {"kind": "bearer"},
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "idempotent": True,
    }
    api_key = new_api_key(TENANT, [TOOL], now_ms=bindings.now_ms())
    credential = await credential_entry(real.crypto, key, TENANT, TOOL, CREDENTIAL)
    for entry in (api_key.entry, tool_entry(TENANT, TOOL, config, allow_loopback=True), credential):
        await entry.write(real.kv)
    kv = _CountingKv(real.kv)
    forbidden = {name: _Forbidden(name) for name in ("sql", "objects", "index", "instances", "ai")}
    platform = replace(real, kv=kv, settings=settings, **forbidden)
    parts = assembly.Assembly(platform)
    answers = []
    for _ in range(2):
        request = Request(
            method="POST",
            path=f"/api/v1/tools/{TOOL}",
            query={},
            headers={"authorization": f"Bearer {api_key.api_key}"},
            body=json.dumps({"text": "hello"}),
            host="localhost",
            request_id="probe",
        )
        kv.reads.clear()
        response = await parts.gateway.handle(request)
        answers.append(
            {
                "status": response.status,
                "body": json.loads(response.body),
                "reads": [name.split(":")[0] for name in kv.reads],
            }
        )
    return {"answers": answers, "touchable": _touchable(platform)}


def _touchable(platform: Any) -> list[str]:
    """Return the forbidden parts that do not raise: none, or the probe proves nothing."""
    found = []
    for name in ("sql", "objects", "index", "instances", "ai"):
        try:
            getattr(platform, name).run  # noqa: B018
        except AssertionError:
            continue
        found.append(name)
    return found


def _base64(key: bytes) -> str:
    import base64

    return base64.b64encode(key).decode()
