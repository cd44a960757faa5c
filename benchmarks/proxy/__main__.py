"""Measure what the tool proxy adds: the upstream called directly, through a JavaScript Worker, and through Retain.

    python -m benchmarks.proxy

All run in one bare workerd and are called in turn, a block of calls each, so that a disturbance affects all of them,
and each has the processor's caches to itself for long enough to show its cost under steady traffic.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import http.client
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.paths import ROOT

sys.path.insert(0, str(ROOT / "workers"))

from benchmarks.proxy.workerd import Running, running
from retain.gateway.credentials import read_credentials_key
from retain.gateway.provisioning import KvEntry, credential_entry, new_api_key, tool_entry
from retain.gateway.routes import PREFIX
from retain.host.crypto import HostCrypto

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
BLOCK = 40
"""Consecutive calls of one target."""
DIRECT, JAVASCRIPT, RETAIN = "upstream, directly", "JavaScript Worker", "Retain"


@dataclass(frozen=True)
class Target:
    """What is called: a Worker of the running workerd, and the request."""

    worker: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: str | None


@dataclass(frozen=True)
class Row:
    """Figures of one target, in milliseconds.

    p10_ms: the time of a call that nothing else on the machine disturbs. overhead_ms: the median minus the median of
    the direct call. cpu_ms: processor time of all of workerd, including its background threads.
    """

    name: str
    first_ms: float
    p10_ms: float
    median_ms: float
    p95_ms: float
    overhead_ms: float
    cpu_ms: float


class Caller:
    """Calls targets one at a time. ports: by the Worker's name."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        self._ports = ports

    def times_ms(self, target: Target, calls: int) -> list[float]:
        """Call this many times over one new connection; return the milliseconds until each answer was complete.

        Any answer except 200 ends the benchmark.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self._ports[target.worker])
        connection.connect()
        times = []
        for _ in range(calls):
            started_ns = time.perf_counter_ns()
            connection.request(target.method, target.path, target.body, dict(target.headers))
            answer = connection.getresponse()
            content = answer.read()
            times.append((time.perf_counter_ns() - started_ns) / 1e6)
            if answer.status != 200:
                raise SystemExit(f"{target.worker} answered {answer.status}: {content.decode(errors='replace')}")
        connection.close()
        return times


def targets(api_key: str) -> dict[str, Target]:
    """Return what is measured, in the order of the table."""
    json_body = {"content-type": "application/json"}
    authorised = {**json_body, "authorization": f"Bearer {api_key}"}
    path = PREFIX + TOOL
    return {
        DIRECT: Target("upstream", "POST", "/orders", json_body, BODY),
        "JavaScript, a constant": Target("javascript", "GET", "/constant", {}, None),
        "Python, a constant": Target("thin", "GET", "/constant", {}, None),
        JAVASCRIPT: Target("javascript", "POST", path, authorised, BODY),
        "gateway in a thin Worker": Target("thin", "POST", path, authorised, BODY),
        RETAIN: Target("retain", "POST", path, authorised, BODY),
    }


def provision(caller: Caller, credentials_key: str, upstream_port: int) -> str:
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
        _write(caller, entry)
    return new.api_key


def _write(caller: Caller, entry: KvEntry) -> None:
    caller.times_ms(Target("writer", "PUT", "/", {}, json.dumps([entry.key, entry.value])), 1)


def measure(workerd: Running, credentials_key: str, *, blocks: int, warm_up: int) -> list[Row]:
    """Return the figures of `blocks` blocks of calls of each target, in turn, after `warm_up` calls of each."""
    caller = Caller(workerd.ports)
    wanted = targets(provision(caller, credentials_key, workerd.ports["upstream"]))
    first = {name: caller.times_ms(target, 1)[0] for name, target in wanted.items()}
    for target in wanted.values():
        caller.times_ms(target, warm_up)
    times: dict[str, list[float]] = {name: [] for name in wanted}
    cpu: dict[str, float] = dict.fromkeys(wanted, 0.0)
    order = list(wanted)
    for _ in range(blocks):
        order = order[1:] + order[:1]
        for name in order:
            before_ms = workerd.cpu_ms()
            times[name] += caller.times_ms(wanted[name], BLOCK)
            cpu[name] += workerd.cpu_ms() - before_ms
    direct_ms = statistics.median(times[DIRECT])
    return [
        Row(
            name,
            first[name],
            statistics.quantiles(measured, n=10)[0],
            statistics.median(measured),
            statistics.quantiles(measured, n=20)[-1],
            statistics.median(measured) - direct_ms,
            cpu[name] / len(measured),
        )
        for name, measured in times.items()
    ]


def table(rows: list[Row]) -> str:
    """Return the figures as a Markdown table, and the ratio that matters."""
    lines = [
        "| called | p10 ms | median ms | p95 ms | over direct ms | CPU ms | first call ms |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        figures = (row.p10_ms, row.median_ms, row.p95_ms, row.overhead_ms, row.cpu_ms)
        lines.append(f"| {row.name} | {' | '.join(f'{figure:.2f}' for figure in figures)} | {row.first_ms:.0f} |")
    overhead = {row.name: row.overhead_ms for row in rows}
    ratio = overhead[RETAIN] / overhead[JAVASCRIPT]
    return "\n".join([*lines, "", f"Retain adds {ratio:.1f} times what the JavaScript Worker adds."])


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=25, help=f"how many blocks of {BLOCK} calls each target gets")
    parser.add_argument("--warm-up", type=int, default=400, help="uncounted first calls of each target")
    parser.add_argument("--uncached-kv", action="store_true", help="make each KV read go to storage")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    credentials_key = base64.b64encode(os.urandom(32)).decode()
    with running(credentials_key, cached=not options.uncached_kv) as workerd:
        rows = measure(workerd, credentials_key, blocks=options.blocks, warm_up=options.warm_up)
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))


if __name__ == "__main__":
    main()
