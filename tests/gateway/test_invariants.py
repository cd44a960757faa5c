"""Invariants 1, 2 and 9 of the tool proxy: it touches only KV and the upstream, reads KV three times, does no early work."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import retain.gateway
from retain.errors import NotFound, RetainError
from retain.gateway.credentials import credential_name
from retain.gateway.proxy import ToolProxy
from retain.gateway.routes import Gateway
from retain.gateway.settings import GatewaySettings
from retain.host.crypto import HostCrypto
from retain.ports import RateLimiter
from tests.gateway.setting import TENANT, TOOL, Setting, echoed, request

_PACKAGE = Path(retain.gateway.__file__).parent
_MODULES = sorted(path.stem for path in _PACKAGE.glob("*.py") if path.stem != "__init__")
_FORBIDDEN = ("retain.memory", "retain.agents", "retain.admin", "retain.models", "retain.host", "pydantic", "jwt")


@pytest.mark.parametrize(("kind", "more"), [(Gateway, ["rates"]), (ToolProxy, [])])
def test_invariant_1_the_proxy_is_built_from_kv_fetch_crypto_clock_and_settings_alone(
    kind: type, more: list[str]
) -> None:
    """The gateway also counts its callers, by a port that can do nothing else (docs/decisions/0035-rates.md)."""
    assert list(inspect.signature(kind).parameters) == ["kv", "fetch", "crypto", "clock", "settings", *more]
    methods = [name for name in vars(RateLimiter) if not name.startswith("_")]
    assert methods == ["allow"]


async def test_invariant_1_a_call_reads_kv_three_times_key_tool_and_credential(setting: Setting) -> None:
    await setting.add_tool()
    api_key = await setting.add_key()
    gateway = setting.gateway()
    for _ in range(2):  # a cold isolate, then a warm one
        setting.kv.reads.clear()
        await gateway.handle(request(api_key))
        key, *others = setting.kv.reads
        assert key.startswith("gateway_key:")
        assert sorted(others) == [f"gateway_credential:{TENANT}:{TOOL}", f"gateway_tool:{TENANT}:{TOOL}"]


@pytest.mark.parametrize(
    ("api_key", "tool", "reads"),
    [
        pytest.param(None, TOOL, 0, id="no key"),
        pytest.param("not a key", TOOL, 0, id="no possible key"),
        pytest.param("retain_acme_" + "A" * 117, TOOL, 0, id="a key that is too long"),
        pytest.param("retain_acme_unknown", TOOL, 1, id="an unknown key"),
        pytest.param("good", "Not a name", 0, id="no possible tool"),
        pytest.param("good", "never_was", 3, id="an unknown tool"),
        pytest.param("scoped", "never_was", 1, id="a tool the key does not allow"),
    ],
)
async def test_invariant_1_a_refused_call_reads_no_more_than_it_needs(
    setting: Setting, api_key: str | None, tool: str, reads: int
) -> None:
    known = {"good": await setting.add_key(), "scoped": await setting.add_key(TOOL)}
    setting.kv.reads.clear()
    with pytest.raises(RetainError):
        await setting.gateway().handle(request(known.get(api_key or "", api_key), tool=tool))
    assert len(setting.kv.reads) == reads


async def test_a_key_that_was_valid_before_is_read_with_its_tool_in_one_call(setting: Setting) -> None:
    await setting.add_tool()
    api_key = await setting.add_key()
    gateway = setting.gateway()
    for calls in ([1, 2], [3], [3]):
        setting.kv.calls.clear()
        assert (await gateway.handle(request(api_key))).status == 200
        assert setting.kv.calls == calls


async def test_a_key_that_was_valid_before_reads_three_keys_at_most_whatever_is_missing(setting: Setting) -> None:
    await setting.add_tool(auth={"kind": "none"})
    await setting.kv.delete(credential_name(TENANT, TOOL))
    api_key = await setting.add_key()
    gateway = setting.gateway(kept_ms=5_000)
    for tool in (TOOL, "never_was"):
        for _ in range(2):
            setting.kv.reads.clear()
            with suppress(NotFound):
                await gateway.handle(request(api_key, tool=tool))
            assert len(setting.kv.reads) <= 3
    setting.kv.reads.clear()
    await gateway.handle(request(api_key))
    assert setting.kv.reads == []


def test_invariants_1_and_2_importing_the_gateway_loads_nothing_that_could_reach_more() -> None:
    imports = "; ".join(f"import retain.gateway.{module}" for module in _MODULES)
    code = f"import sys; {imports}; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=_PACKAGE.parents[1], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.splitlines()
    assert "retain.gateway.routes" in loaded
    assert [name for name in loaded if name.startswith(_FORBIDDEN)] == []
    # What only the first call of a tool needs, or nobody does, must not slow the first request.
    assert not {"fastjsonschema", "urllib.request", "http.client", "ulid"} & set(loaded)


@pytest.mark.parametrize("module", _MODULES)
def test_invariant_1_no_module_of_the_gateway_names_what_it_must_not_import(module: str) -> None:
    tree = ast.parse((_PACKAGE / f"{module}.py").read_text())
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    own = {name for name in names if name.startswith("retain")}
    allowed = (
        "retain.gateway.",
        "retain.ports",
        "retain.errors",
        "retain.http",
        "retain.identifiers",
        "retain.json_schema",
        "retain.json_text",
        "retain.limits.rates",
        "retain.mcp.",
        "retain.routing.",
        "retain.sealing",
    )
    assert {name for name in own if not name.startswith(allowed)} == set()
    assert {name for name in names if name.startswith(_FORBIDDEN)} == set()


async def test_invariant_9_building_the_gateway_does_no_work(setting: Setting) -> None:
    broken = GatewaySettings("not a key")
    Gateway(setting.kv, setting.fetch, HostCrypto(), setting.clock, broken)
    assert setting.kv.reads == []


def test_invariant_9_settings_do_not_show_their_secrets() -> None:
    assert "swordfish" not in repr(GatewaySettings("swordfish", "swordfish"))


async def test_the_answer_is_what_the_upstream_answered_whole_and_in_one_piece(setting: Setting) -> None:
    await setting.add_tool()
    answer = await setting.gateway().handle(request(await setting.add_key()))
    assert (answer.status, answer.stream) == (200, None)
    assert json.loads(echoed(answer)["body"]) == {"order_id": "A-1"}
