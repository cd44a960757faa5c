"""Serve in the foreground: the real wrangler and workerd, with state kept in `.wrangler/state` or $RETAIN_STATE."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import httpx

from retain.admin.maintenance import BRIEF
from tools.local_config import write_local_config
from tools.local_server import check_port, command, migrate
from tools.offline_runtime import environment
from tools.paths import LOCAL_CONFIG, ROOT

STOP_TIMEOUT_S = 10
_NOISE = re.compile(
    r"\s*$"
    r"|\s*[│┌├└─╭╰⛅|]"  # wrangler's banner, and its table of some two hundred modules
    r"|env\.\w+ \("
    r"|Binding +Resource +Mode"
    r"|.* has access to the following bindings:"
    r"|Service bindings, Durable Object bindings"
    r"|Attaching additional modules"
    r"|Total \(\d+ modules\)"
    r"|\[custom build\]\s*$"
    r"|.*Ready on http"  # comes some seconds before the Worker answers
)
_HINT = "/cdn-cgi/local/scheduled"
_DAILY_BRIEF = f"?cron={BRIEF.replace(' ', '+')}"
_DUMP = "[Error]: Process exited with non-zero status"
"""Begins a hundred lines, each indented, about the process of a failed build. What that printed is before them."""


class StateTaken(SystemExit):
    """Another server of this machine serves the state: two would write to the same files."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C; say so when the Worker answers. Return wrangler's exit status. Raises: PortTaken; StateTaken."""
    parser = argparse.ArgumentParser(prog="retain dev", description="Serve the project on this machine.")
    parser.add_argument("--port", type=int, default=8787, help="default: 8787")
    usual = os.environ.get("RETAIN_STATE") or ROOT / ".wrangler" / "state"
    parser.add_argument("--state", type=Path, default=usual, help="the folder of the state; default: $RETAIN_STATE")
    options = parser.parse_args(arguments)
    check_port(options.port)
    state = options.state.resolve()
    address = f"http://127.0.0.1:{options.port}"
    print(f"starting on {address} (state in {state}); Ctrl-C stops it", flush=True)
    state.mkdir(parents=True, exist_ok=True)
    lock = claim(state, address)
    write_local_config()
    print("preparing the database: a new one takes up to a minute", flush=True)
    migrate(state)
    process = subprocess.Popen(
        command(options.port, state),
        cwd=ROOT,
        env=environment(),
        pass_fds=(lock.fileno(),),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    threading.Thread(target=_announce, args=(address, process), daemon=True).start()
    with suppress(KeyboardInterrupt):
        for line in without_noise(process.stdout or ()):
            print(line, end="", flush=True)
    with suppress(KeyboardInterrupt):
        return _ended(process)
    return 130


def claim(state: Path, address: str) -> TextIO:
    """Return the locked file that says where the state is served; it is locked until every process that has it open ends.

    Raises: StateTaken.
    """
    lock = (state / "served.lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        with lock:
            lock.seek(0)
            where = lock.read() or "another address"
        raise StateTaken(
            f"the state in {state} is served on {where}: end that server, or choose another with --state or RETAIN_STATE"
        ) from error
    lock.truncate(0)
    lock.write(address)
    lock.flush()
    return lock


def without_noise(lines: Iterable[str]) -> Iterator[str]:
    """Yield what wrangler prints, without its tables, blank lines, and all that it knows of a failed build's process.

    Its hint how to trigger a schedule names one: there is no work for a schedule without an expression.
    """
    dumped = False
    for line in lines:
        dumped = _DUMP in line or (dumped and line.startswith(" "))
        if not dumped and _NOISE.match(line) is None:
            yield line.replace(_HINT, _HINT + _DAILY_BRIEF)


def _announce(address: str, process: subprocess.Popen[str]) -> None:
    """Print which agents are served, once the Worker answers."""
    while process.poll() is None:
        with suppress(httpx.HTTPError):
            if httpx.get(f"{address}/healthz", timeout=10, trust_env=False).status_code == 200:
                print(f"serving on {address}: {', '.join(_agents()) or 'no agent'}", flush=True)
                print(f"console: {address}/console", flush=True)
                return
        time.sleep(0.2)


def _agents() -> list[str]:
    """Return the staged agents' types."""
    staged = ROOT / json.loads(LOCAL_CONFIG.read_text())["main"]
    return list(json.loads((staged.parent / "agents.json").read_text())["agents"])


def _ended(process: subprocess.Popen[str]) -> int:
    """Return the exit status of wrangler, which Ctrl-C also reaches; end it if it does not end."""
    try:
        return process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
