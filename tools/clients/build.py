"""Builds what is published."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tools.clients.generate import PYTHON, TYPESCRIPT, run
from tools.paths import CACHE, NODE_BIN


def compile_typescript(target: Path) -> None:
    """Compile the TypeScript client, whose generated part is current. Raises: SystemExit for a wrong type."""
    run([NODE_BIN / "node", NODE_BIN / "tsc", "--project", TYPESCRIPT, "--outDir", target])


def build(target: Path = CACHE / "clients" / "built") -> list[Path]:
    """Build the clients, whose generated parts are current, into a folder of their own; return the files."""
    shutil.rmtree(target, ignore_errors=True)
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", target, PYTHON])
    compile_typescript(TYPESCRIPT / "dist")
    # Nothing is fetched, and its cache is where every user may write.
    own = ["--loglevel=error", f"--cache={CACHE / 'npm'}"]
    run(["npm", "pack", *own, "--pack-destination", target], cwd=TYPESCRIPT)
    return sorted(target.iterdir())
