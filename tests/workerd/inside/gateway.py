"""A call of a tool through production's entrypoint, on a platform where everything except KV raises."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from assembly.root import Assembly
from retain.gateway.provisioning import credential_entry, new_api_key, tool_entry
from retain.ports import Kv
from tests.workerd.inside.platform import Request, bindings, entry

TENANT = "acme"
TOOL = "echo"
CREDENTIAL = "upstream-credential"


PARTS = ("sql", "objects", "index", "instances", "ai")
"""The parts of the platform that the proxy must not touch."""


class _Forbidden:
    """A binding that must not be touched: it raises, and records the touch in case somebody catches the error."""

    def __init__(self, name: str, touched: list[str]) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_touched", touched)

    def __getattribute__(self, attribute: str) -> NoReturn:
        touch = f"{object.__getattribute__(self, '_name')}.{attribute}"
        object.__getattribute__(self, "_touched").append(touch)
        raise AssertionError(f"the proxy touched {touch}")


class _CountingKv:
    """KV that notes the keys that are read, and refuses everything else."""

    def __init__(self, kv: Kv) -> None:
        self._kv = kv
        self.reads: list[str] = []

    async def get(self, key: str) -> str | None:
        """Read, and note the key."""
        self.reads.append(key)
        return await self._kv.get(key)

    async def get_many(self, keys: Sequence[str]) -> list[str | None]:
        """Read, and note the keys."""
        self.reads += keys
        return await self._kv.get_many(keys)


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
    for stored in (api_key.entry, tool_entry(TENANT, TOOL, config, allow_loopback=True), credential):
        await stored.write(real.kv)
    kv: Any = _CountingKv(real.kv)
    touched: list[str] = []
    forbidden: dict[str, Any] = {name: _Forbidden(name, touched) for name in PARTS}
    platform = replace(real, kv=kv, settings=settings, **forbidden)
    worker = _entrypoint(platform, _Forbidden("env", touched))
    answers = []
    for _ in range(2):  # a cold isolate, then a warm one
        kv.reads.clear()
        response = await worker.fetch(
            Request(
                f"https://gateway.example.com/api/v1/tools/{TOOL}",
                method="POST",
                headers={"authorization": f"Bearer {api_key.api_key}"},
                body=json.dumps({"text": "hello"}),
            )
        )
        await asyncio.sleep(0.01)  # what was handed to waitUntil touches as well
        answers.append(
            {
                "status": response.status,
                "body": json.loads(await response.text()),
                "reads": [name.split(":")[0] for name in kv.reads],
            }
        )
    return {"answers": answers, "touched": list(touched), "touchable": _touchable(platform)}


def _entrypoint(platform: Any, env: _Forbidden) -> Any:
    """Return production's entrypoint on this platform, in an isolate of its own."""
    parts = Assembly(platform)
    vars(entry)["assembly_of"] = lambda _env: parts
    worker: Any = object.__new__(entry.Default)
    worker.env = env
    return worker


def _touchable(platform: Any) -> list[str]:
    """Return the forbidden parts that do not raise: none, or the probe proves nothing."""
    found = []
    for name in PARTS:
        try:
            getattr(platform, name).run  # noqa: B018
        except AssertionError:
            continue
        found.append(name)
    return found


def _base64(key: bytes) -> str:
    import base64

    return base64.b64encode(key).decode()
