"""`adapters/exchange.mjs` itself, in Node: `platform/exchange.py` is only its counterpart."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tools.paths import NODE_BIN, ROOT

HERE = Path(__file__).parent
MODULE = ROOT / "workers" / "adapters" / "exchange.mjs"


def test_the_module_that_sends_requests() -> None:
    command: list[str | Path] = [NODE_BIN / "node", "--test", "--test-reporter=tap", HERE / "exchange.test.mjs"]
    environment = {**os.environ, "MODULE": str(MODULE)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 15" in done.stdout, done.stdout
