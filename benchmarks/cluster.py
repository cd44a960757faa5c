"""Measure what more nodes give: runs and recalls a second of a cluster of one node, of two and of three, in one run.

    python -m benchmarks.cluster [--quick] [--nodes 1 2 3] [--rounds 5] [--json FILE]

All clusters run at once, each with a bucket of its own (moto's server), and are asked in turn; one that is not asked renews
its leases and does nothing else. Requests go to the nodes of a cluster in equal parts, whatever each of them owns, as a
proxy in front of them would send them. Runs are of thirty instances that exist; recalls are of one tenant.

A workerd uses one core. The bucket and this process need cores as well: more nodes than are left cannot be faster here.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.harness.contestant import Call, Contestant, HttpContestant
from benchmarks.harness.figures import figures_of
from benchmarks.harness.interleaving import Plan, measure
from benchmarks.harness.processes import with_descendants
from benchmarks.harness.report import Comparison, Report
from tools.cluster.local import local_cluster
from tools.cluster.nodes import Node

CONNECTIONS = 6
TENANT = "bench"
INSTANCES = 30
MEMORIES = 300
FULL = Plan(rounds=5, calls=60, warm_up=60)
QUICK = Plan(rounds=1, calls=12, warm_up=12)


@dataclass(frozen=True, slots=True)
class WholeCluster:
    """A cluster that is asked through all of its nodes. processes: of its nodes, and of its bucket."""

    name: str
    nodes: Sequence[Contestant]
    processes: Mapping[str, Sequence[int]]

    async def block(self, connections: int, calls: int) -> list[float]:
        """See the protocol. connections and calls: multiples of the number of nodes."""
        parts = len(self.nodes)
        assert connections % parts == 0, "each node has as many connections as another"
        assert calls % parts == 0, "each node has as many calls as another"
        blocks = await asyncio.gather(*(node.block(connections // parts, calls // parts) for node in self.nodes))
        return [time for block in blocks for time in block]

    async def counters(self) -> Mapping[str, float]:
        """See the protocol."""
        return {}


def contestants(nodes: Sequence[Node], bucket: Sequence[int]) -> dict[str, WholeCluster]:
    """Return a cluster by what it is asked for."""
    numbers = itertools.count()

    def run() -> Call:
        body = {"input": "hello", "instance_id": f"desk-{next(numbers) % INSTANCES}"}
        return Call("POST", f"/v1/agents/{TENANT}/order_triage/run", body)

    def recall() -> Call:
        asked = {"query": f"Which berth has crane {next(numbers) * 7 % MEMORIES}?", "top_k": 5}
        return Call("POST", f"/admin/tenants/{TENANT}/memories/recall", asked)

    name = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    processes = {"nodes": [pid for node in nodes for pid in _workerd(node)], "bucket": bucket}
    return {
        what: WholeCluster(name, [HttpContestant(node.name, node.port, call, {}) for node in nodes], processes)
        for what, call in (("runs", run), ("recalls", recall))
    }


def _workerd(node: Node) -> list[int]:
    return [] if node.process_id is None else with_descendants(node.process_id)


def prepare(nodes: Sequence[Node]) -> None:
    """Register the tenant, store its memories, and let each node open some of the instances. Raises: httpx.HTTPError."""
    with httpx.Client(base_url=nodes[0].base_url, timeout=120, trust_env=False) as client:
        client.put(f"/admin/tenants/{TENANT}").raise_for_status()
        contents = [f"Berth {number} has crane {number * 7 % MEMORIES}." for number in range(MEMORIES)]
        for start in range(0, MEMORIES, 50):
            memories = [{"content": content} for content in contents[start : start + 50]]
            body = {"tenant": TENANT, "agent_type": "order_triage", "memories": memories}
            client.post("/admin/seed-memory", json=body).raise_for_status()
    for number in range(INSTANCES):
        node = nodes[number % len(nodes)]
        body = {"input": "hello", "instance_id": f"desk-{number}"}
        path = f"/v1/agents/{TENANT}/order_triage/run"
        httpx.post(node.base_url + path, json=body, timeout=120, trust_env=False).raise_for_status()


async def compared(clusters: Sequence[Mapping[str, WholeCluster]], plan: Plan) -> Report:
    """Return the figures of each cluster, and how many times as long the first one takes for an operation."""
    report = Report("cluster")
    for what in clusters[0]:
        series = await measure([cluster[what] for cluster in clusters], CONNECTIONS, plan)
        first, *others = series.values()
        part = Report("cluster", [figures_of(one) for one in series.values()])
        part.comparisons = [
            Comparison(f"{first.name} to {one.name}", CONNECTIONS, first.paired(one, lambda block: block.each_ms))
            for one in others
        ]
        report.add(part, f"{what}, ")
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="finds errors, and says nothing of speed")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 3], choices=[1, 2, 3, 6])
    parser.add_argument("--rounds", type=int, default=FULL.rounds)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    plan = QUICK if options.quick else Plan(options.rounds, FULL.calls, FULL.warm_up)
    with ExitStack() as stack:
        clusters = []
        for count in options.nodes:
            before = {*with_descendants(os.getpid())}
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="retain-cluster-")))
            nodes = stack.enter_context(local_cluster(folder, count))
            of_nodes = {pid for node in nodes for pid in _workerd(node)}
            clusters.append(contestants(nodes, sorted({*with_descendants(os.getpid())} - before - of_nodes)))
            prepare(nodes)
        report = asyncio.run(compared(clusters, plan))
    if options.json is not None:
        report.write(options.json)
    print(report)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
