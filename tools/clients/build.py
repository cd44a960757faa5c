"""Builds what is published."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tools.clients.generate import PYTHON, run
from tools.paths import CACHE


def build(target: Path = CACHE / "clients" / "built") -> list[Path]:
    """Build the clients, whose generated parts are current, into a folder of their own; return the files."""
    shutil.rmtree(target, ignore_errors=True)
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", target, PYTHON])
    return sorted(target.iterdir())
