"""Kill and stop nodes of a local cluster while others write: `python -m tests.cluster [--minutes 10] [--seed 1]`."""

from __future__ import annotations

import argparse
import random
import secrets
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.walk import Walk, create_tenants
from tools.cluster.local import local_cluster

TENANTS = ("acme", "bolt", "corp", "dash")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each round, and return 1 when something was lost, doubled or stuck."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seed", type=int, help="which node ends next, and how; a new one is printed")
    wanted = parser.parse_args(arguments)
    seed = secrets.randbelow(10**6) if wanted.seed is None else wanted.seed
    chance = random.Random(seed)
    print(f"seed {seed}", flush=True)
    deadline = time.monotonic() + wanted.minutes * 60
    is_wrong = False
    with tempfile.TemporaryDirectory() as folder, local_cluster(Path(folder), wanted.nodes) as nodes:
        create_tenants(nodes[0], TENANTS)
        walk = Walk(nodes, TENANTS, acknowledged=10)
        while time.monotonic() < deadline:
            result = walk.round(chance.choice(nodes), "stopped" if chance.random() < 0.3 else "killed")
            is_wrong = is_wrong or bool(result.wrong)
            print(result, flush=True)
        print(f"workerd ended unasked and was started again: {sum(node.crashes for node in nodes)} times", flush=True)
    return 1 if is_wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
