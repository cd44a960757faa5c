"""Serve a cluster on this machine: `python -m tools.cluster [--nodes 3] [--port 8787]`, until Ctrl-C."""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Sequence

from tools.cluster.local import local_cluster
from tools.paths import CACHE


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.cluster")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--port", type=int, default=8787, help="of the first node; the others have the next ones")
    wanted = parser.parse_args(arguments)
    folder = CACHE / "cluster"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with local_cluster(folder, wanted.nodes, first_port=wanted.port) as nodes:
            for node in nodes:
                print(f"{node.name}: {node.base_url}, process {node.process_id}, log {node.log}", flush=True)
            print("Kill one and ask another. Ctrl-C ends all; the bucket is in memory and ends with them.", flush=True)
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
