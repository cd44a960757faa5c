"""The test Worker: runs contract cases and probes on the real bindings. Staged as `test_worker.py`, never deployed.

`POST /cases/{suite}/{case}` runs one case, `POST /conformance/{backend}/{test}` one test of the published suites,
`POST /probes/{probe}` one probe; all take and answer JSON.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

# First of all, production's entry module: what it loads is what an isolate pays for at its start.
_before = frozenset(sys.modules)
_production: Any = import_module("entry")
_loaded_by_entry = sorted(sys.modules.keys() - _before)
for _name in ("assembly.gateway", "fastjsonschema"):
    import_module(_name)
_loaded_by_proxy = sorted(sys.modules.keys() - _before)
_precompiled: Any = import_module("precompiled")
_later_is_left = _precompiled._recorded.later

import dataclasses  # noqa: E402
import json  # noqa: E402
import traceback  # noqa: E402

from tests.workerd.inside import conformance, gateway, object_probes, probes, suites  # noqa: E402
from tests.workerd.inside.platform import DurableObject, Response, WorkerEntrypoint  # noqa: E402

AgentRuntime: Any = _production.AgentRuntime
TenantWriter: Any = _production.TenantWriter

__all__ = ["AgentRuntime", "Default", "Probe", "RefusingRuntime", "TenantWriter"]


class Default(WorkerEntrypoint):
    """The test Worker's entrypoint."""

    env: Any

    async def fetch(self, request: Any) -> Any:
        """Answer one request of the host's tests."""
        parts = str(request.url).split("?", maxsplit=1)[0].split("/")[3:]
        asked = json.loads(await request.text() or "{}") if request.js_object.method == "POST" else {}
        try:
            answer = await self._answer(parts, asked)
        except Exception:  # noqa: BLE001 -- the host's test shows it
            return Response(traceback.format_exc(), status=500)
        return Response(json.dumps(answer), headers={"content-type": "application/json"})

    async def _answer(self, parts: list[str], asked: dict[str, Any]) -> Any:
        match parts:
            case ["healthz"]:
                return {}
            case ["cases"]:
                return suites.listing()
            case ["loaded"]:
                taken = hasattr(dataclasses, "exec") and not _precompiled._recorded.later
                return {
                    "entry": _loaded_by_entry,
                    "proxy": _loaded_by_proxy,
                    "precompiled": taken,
                    "later_is_left": _later_is_left,
                }
            case ["plugins"]:
                loader: Any = import_module("pydantic.plugin._loader")
                list(loader.get_plugins())
                return {"looked": loader._plugins is not None}
            case ["cases", suite, case] if suite in suites.IN_OBJECT:
                stub = self.env.PROBE.getByName(f"{suite}/{case}")
                return json.loads(await stub.run_case(suite, case))
            case ["cases", suite, case]:
                return await suites.run(suite, case, suites.worker_ports(suite, self.env, asked))
            case ["conformance", "chat-object", name]:
                return json.loads(await self.env.PROBE.getByName(f"conformance/{name}").run_conformance(name))
            case ["conformance", backend, name]:
                return await conformance.run(await conformance.suite_of(backend, self.env, asked), name)
            case ["objects", name, method]:
                return json.loads(await getattr(self.env.PROBE.getByName(name), method)(json.dumps(asked)))
            case ["probes", "gateway"]:
                return await gateway.proxied(self.env, asked)
            case ["probes", name]:
                return await probes.PROBES[name](self.env, asked)
        raise LookupError(f"no such path: {parts}")


class Probe(DurableObject):
    """A Durable Object for cases and probes that need one. Every public method is called by RPC."""

    async def run_case(self, suite: str, case: str) -> str:
        """Run a case on the ports of this object."""
        return json.dumps(await suites.run(suite, case, suites.object_ports(suite, self.ctx.storage)))

    async def run_conformance(self, name: str) -> str:
        """Run a test of the suite of conversations on this object's SQLite."""
        return json.dumps(await conformance.run(conformance.suite_of_object(self.ctx.storage), name))

    async def probe(self, asked: str) -> str:
        """Run a probe. asked: JSON with its name as `probe`."""
        content = json.loads(asked)
        return json.dumps(await object_probes.PROBES[content["probe"]](self.ctx, self.env, content))

    async def alarm(self, alarm_info: Any = None) -> None:
        """Note that the alarm fired."""
        object_probes.note_alarm(self.ctx.storage, alarm_info)


class RefusingRuntime(AgentRuntime):  # type: ignore[misc]
    """An `AgentRuntime` that raises what it is asked to."""

    async def refuse(self, request: str) -> str:
        """Raise the error that the request describes, on the way that every method of an instance takes."""
        answer: str = await self._enveloped("refuse", request)
        return answer

    async def _called(self, method: str, content: dict[str, Any]) -> Any:
        raise probes.described_error(content["error"])
