"""A bare workerd, without wrangler or Miniflare in between."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.services import Service
from retain.json_text import read_own_json
from tools.offline_runtime import prepare
from tools.paths import CACHE
from tools.stage import mirror

START_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Workerd:
    """A started workerd. ports: by the service's name. state: the folder of its stores."""

    ports: Mapping[str, int]
    pid: int
    state: Path


@contextmanager
def running(
    name: str, services: Sequence[Service], *, log: Path | None = None, options: Sequence[str] = ()
) -> Iterator[Workerd]:
    """Run services until the block ends, with empty stores.

    name: of the folder in `.cache`; two that run at the same time need two. log: where the Workers' own output goes.
    options: further ones of `workerd serve`.
    Raises: SystemExit when workerd does not start.
    """
    folder, state = CACHE / f"bench-{name}", CACHE / f"bench-{name}-state"
    mirror(_files(services), folder)
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    with (log or Path(os.devnull)).open("wb") as output:
        process, ports = _start(folder, state, [one.name for one in services if one.called], output.fileno(), options)
        try:
            yield Workerd(ports, process.pid, state)
        finally:
            process.terminate()
            process.wait()


def _start(
    folder: Path, state: Path, called: Sequence[str], output: int, options: Sequence[str]
) -> tuple[subprocess.Popen[bytes], dict[str, int]]:
    read, write = os.pipe()
    command = [str(prepare()), "serve", "--experimental", f"--control-fd={write}", f"--directory-path=disk={state}"]
    process = subprocess.Popen([*command, *options, "config.capnp"], cwd=folder, stdout=output, pass_fds=[write])
    os.close(write)
    try:
        return process, _reported(read, called)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        os.close(read)


def _reported(control: int, called: Sequence[str]) -> dict[str, int]:
    """Return the port of each service, as workerd reports it. Raises: SystemExit when it ends, or takes too long."""
    ports: dict[str, int] = {}
    received, deadline = b"", time.monotonic() + START_TIMEOUT_S
    while len(ports) < len(called):
        ready, _, _ = select.select([control], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(control, 65536) if ready else b""
        if not piece:
            raise SystemExit("workerd did not start")
        *lines, received = (received + piece).split(b"\n")
        for event in (read_own_json(line.decode()) for line in lines if line):
            if event.get("event") == "listen" and event.get("socket") in called:
                ports[str(event["socket"])] = int(event["port"])
    return ports


def _files(services: Sequence[Service]) -> dict[str, bytes]:
    """Return the content of the folder: the configuration, and what it embeds."""
    listed = [f'(name = "{one.name}", {one.text})' for one in services]
    listed += [
        '(name = "disk", disk = (path = "state", writable = true, allowDotfiles = true))',
        '(name = "internet", network = (allow = ["public", "private"]))',
    ]
    sockets = [
        f'(name = "{one.name}", address = "127.0.0.1:0", http = (), service = "{one.name}")'
        for one in services
        if one.called
    ]
    between = ",\n    "
    config = f"""using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    {between.join(listed)}
  ],
  sockets = [{", ".join(sockets)}]
);
"""
    return {
        **{path: content for one in services for path, content in one.files.items()},
        "config.capnp": config.encode(),
    }
