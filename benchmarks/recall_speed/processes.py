"""The processor time of the local server's processes. Linux only."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.harness.processes import cpu_by_role

APP = "Worker, D1 and the stand-in"
"""One workerd, one thread: the application's isolate, D1's SQLite and the vector stand-in."""


def used_ms(group: int, state: Path) -> Counter[str]:
    """Return the processor time of a group's processes in milliseconds, by what they do.

    state: the server's folder; the workerd with files in it is the one that runs the Worker.
    """
    return cpu_by_role(group, lambda pid: _role(Path("/proc") / str(pid), str(state)))


def _role(process: Path, state: str) -> str:
    command = (process / "cmdline").read_bytes().split(b"\0")[0].decode()
    if not command.endswith("workerd"):
        return "wrangler"
    opened = [str(file.readlink()) for file in (process / "fd").iterdir()]
    return APP if any(state in file and file.endswith(".sqlite") for file in opened) else "wrangler's proxy"
