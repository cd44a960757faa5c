"""Serve in the foreground: the real wrangler and workerd, with state kept in `.wrangler/state` or $RETAIN_STATE."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from tools.local_config import write_local_config
from tools.local_server import check_port, command, migrate
from tools.offline_runtime import environment
from tools.paths import ROOT


def main(arguments: Sequence[str] | None = None) -> int:
    """Prepare, then replace this process by wrangler. Returns only when wrangler cannot be started."""
    parser = argparse.ArgumentParser(prog="retain dev", description="Serve the project on this machine.")
    parser.add_argument("--port", type=int, default=8787, help="default: 8787")
    usual = os.environ.get("RETAIN_STATE") or ROOT / ".wrangler" / "state"
    parser.add_argument("--state", type=Path, default=usual, help="the folder of the state; default: $RETAIN_STATE")
    options = parser.parse_args(arguments)
    check_port(options.port)
    state = options.state.resolve()
    write_local_config()
    state.mkdir(parents=True, exist_ok=True)
    migrate(state)
    parts = command(options.port, state)
    print(f"serving on http://127.0.0.1:{options.port} (state in {state}); stop with Ctrl-C", flush=True)
    os.chdir(ROOT)
    os.execvpe(parts[0], parts, environment())
