"""Nodes on this machine: each a workerd with a folder of its own, all with one bucket."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tools.local_server import dismiss, free_port, heir_of
from tools.paths import NODE_BIN, ROOT
from tools.stage import mirror

START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 30
_PAUSE_S = 1
_SCRIPT = ROOT / "deploy" / "cluster" / "start.sh"


@dataclass
class Node:
    """One node, whose workerd is started again when it ends unasked, as a supervisor does.

    process: its workerd; None while it is meant to be down. ports: of its requests, its migrations, and the other nodes.
    """

    name: str
    folder: Path
    environment: Mapping[str, str]
    port: int
    migrate_port: int
    cluster_port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    crashes: int = 0

    @property
    def base_url(self) -> str:
        """The node's address, without a trailing slash."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def process_id(self) -> int | None:
        """The process of workerd; None while it is meant to be down."""
        return self.process.pid if self.process else None

    @property
    def log(self) -> Path:
        """What workerd printed, of every start."""
        return self.folder.with_suffix(".log")

    def start(self) -> None:
        """Start workerd, with what the node's disk has. Returns at once. It ends when this process does, however that is."""
        variables = {
            **self.environment,
            "HTTP_ADDR": f"127.0.0.1:{self.port}",
            "MIGRATE_ADDR": f"127.0.0.1:{self.migrate_port}",
            "CLUSTER_ADDR": f"127.0.0.1:{self.cluster_port}",
            "OBJECTS": str(self.folder.with_name("objects")),
            "WORKERD": str((NODE_BIN / "workerd").resolve()),
        }
        with self.log.open("ab") as sink:
            started = subprocess.Popen(
                [str(_SCRIPT), str(self.folder)],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.process = started
        threading.Thread(target=self._start_again, args=(started, heir_of(started)), daemon=True).start()

    def wait_until_ready(self) -> None:
        """Return when the node has a lease and its stores answer. Raises: SystemExit with the end of the log."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.base_url}/readyz", timeout=30, trust_env=False).status_code == 200:
                    return
            time.sleep(0.2)
        raise SystemExit(f"{self.name} did not become ready:\n{self.log.read_text()[-4000:]}")

    def kill(self) -> None:
        """Kill the node at once, as a machine that loses its power."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Let the node pass its objects to the others and end."""
        self._end(signal.SIGTERM)

    def has_opened(self, class_name: str) -> bool:
        """Return whether the node has opened an object of a class, as its log says."""
        return f"cluster: {class_name}/" in self.log.read_text()

    def _start_again(self, ended: subprocess.Popen[bytes], heir: subprocess.Popen[bytes]) -> None:
        ended.wait()
        with contextlib.suppress(ProcessLookupError):  # the script may still wait to ask for migrations
            os.killpg(ended.pid, signal.SIGKILL)
        dismiss(heir)
        time.sleep(_PAUSE_S)
        if self.process is ended:
            self.crashes += 1
            self.start()

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def serving_nodes(
    folder: Path,
    files: Mapping[str, bytes],
    count: int,
    *,
    environment: Mapping[str, str],
    first_port: int | None = None,
) -> Iterator[list[Node]]:
    """Serve by so many nodes until the block ends. files: the content of a node's folder (`node_files`).

    first_port: of the first node, the others have the next ones; otherwise free ports are chosen.
    Raises: SystemExit when a node does not become ready.
    """
    nodes = []
    for number in range(count):
        own = folder / f"node-{number + 1}"
        mirror(dict(files), own / "served")
        port = free_port() if first_port is None else first_port + number
        nodes.append(Node(own.name, own / "served", environment, port, free_port(), free_port()))
    try:
        for node in nodes:
            node.start()
        for node in nodes:
            node.wait_until_ready()
        yield nodes
    finally:
        for node in nodes:
            node.kill()
