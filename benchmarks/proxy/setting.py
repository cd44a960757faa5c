"""What the benchmark of the proxy runs: the Workers, what KV holds for them, and the calls."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from benchmarks.harness.contestant import Call, HttpContestant
from benchmarks.harness.retain_worker import Stores, proxy_only, python_worker
from benchmarks.harness.services import Service, javascript, kv, kv_store, text
from benchmarks.harness.workerd import Workerd
from retain.gateway.credentials import read_credentials_key
from retain.gateway.provisioning import credential_entry, new_api_key, tool_entry
from retain.gateway.routes import PREFIX
from retain.host.crypto import HostCrypto

HERE = Path(__file__).parent
TENANT, TOOL = "acme", "create_order"
BODY = json.dumps({"order_id": "A-1001", "quantity": 2, "note": "leave it with the neighbour, please"})
PARAMETERS = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "maxLength": 64},
        "quantity": {"type": "integer", "minimum": 1},
        "note": {"type": "string", "maxLength": 500},
    },
    "required": ["order_id", "quantity"],
    "additionalProperties": False,
}
DIRECT, PYTHON = "upstream, directly", "Python, a constant"
JAVASCRIPT = "JavaScript, three reads"
JAVASCRIPT_AT_ONCE = "JavaScript, one read of three keys"
JAVASCRIPT_KEEPING = "JavaScript, keeps them 5 s"
RETAIN_READING = "Retain, reads each time"
RETAIN = "Retain, keeps them 5 s"


def services(credentials_key: str, *, cached: bool) -> list[Service]:
    """Return all Workers and the KV. cached: with KV's read cache."""
    bindings = [kv("KV"), text("CREDENTIALS_KEY", credentials_key)]
    secrets = {"CREDENTIALS_KEY": credentials_key}
    return [
        javascript("upstream", HERE / "upstream.mjs"),
        *(
            javascript(name, HERE / "proxy_worker.mjs", bindings=[*bindings, text("READS", reads)])
            for name, reads in (("javascript", "each"), ("javascript-at-once", "once"), ("javascript-keeping", "kept"))
        ),
        python_worker("constant", {"entry.py": (HERE / "constant_entry.py").read_bytes()}, [], packages=True),
        *proxy_only("retain", secrets, {"GATEWAY_KEPT_SECONDS": "5"}),
        *proxy_only("retain-reading", secrets, {"GATEWAY_KEPT_SECONDS": "0"})[:1],
        javascript("stores", HERE.parent / "harness" / "stores.mjs", bindings=[kv("KV")]),
        kv_store(cached=cached),
    ]


def contestants(workerd: Workerd, api_key: str) -> list[HttpContestant]:
    """Return what is called, in the order of the table."""
    json_body = {"content-type": "application/json"}
    proxied = Call("POST", PREFIX + TOOL, BODY, {**json_body, "authorization": f"Bearer {api_key}"})
    constant = Call("GET", "/constant")
    called = {
        DIRECT: ("upstream", Call("POST", "/orders", BODY, json_body)),
        "JavaScript, a constant": ("javascript", constant),
        PYTHON: ("constant", constant),
        JAVASCRIPT: ("javascript", proxied),
        JAVASCRIPT_AT_ONCE: ("javascript-at-once", proxied),
        JAVASCRIPT_KEEPING: ("javascript-keeping", proxied),
        RETAIN_READING: ("retain-reading", proxied),
        RETAIN: ("retain", proxied),
    }
    processes = {"workerd": [workerd.pid]}
    return [HttpContestant(name, workerd.ports[to], call, processes) for name, (to, call) in called.items()]


def provision(stores: Stores, credentials_key: str, upstream_port: int) -> str:
    """Write an API key, a tool and its credential to KV; return the key."""
    new = new_api_key(TENANT, [TOOL], now_ms=time.time_ns() // 1_000_000)
    host = f"127.0.0.1:{upstream_port}"
    config = {
        "version": 1,
        "description": "Create an order.",
        "url": f"http://{host}/orders",
        "host": host,
        "method": "POST",
        "auth": {"kind": "bearer"},
        "parameters": PARAMETERS,
        "idempotent": False,
        "timeout_ms": 5000,
        "max_response_bytes": 1_048_576,
    }
    key = read_credentials_key(credentials_key)
    sealed = asyncio.run(credential_entry(HostCrypto(), key, TENANT, TOOL, "the-upstreams-secret"))
    for entry in (new.entry, tool_entry(TENANT, TOOL, config, allow_loopback=True), sealed):
        stores.put(entry.key, entry.value)
    return new.api_key
