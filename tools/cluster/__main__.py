"""Serve a cluster on this machine: `python -m tools.cluster [--nodes 3] [--port 8787]`, until Ctrl-C."""

from __future__ import annotations

import argparse
import shutil
import signal
import time
from collections.abc import Sequence

from tools.cluster.local import local_cluster
from tools.local_server import check_port
from tools.paths import CACHE


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C; return the exit status. Raises: PortTaken, before anything is changed."""
    parser = argparse.ArgumentParser(prog="python -m tools.cluster")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--port", type=int, default=8787, help="of the first node; the others have the next ones")
    wanted = parser.parse_args(arguments)
    for port in range(wanted.port, wanted.port + wanted.nodes):
        check_port(port)
    folder = CACHE / f"cluster-{wanted.port}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for ending in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: the nodes are in sessions of their own
        signal.signal(ending, signal.default_int_handler)
    print(f"starting {wanted.nodes} nodes with a new database, which takes a minute or two", flush=True)
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
