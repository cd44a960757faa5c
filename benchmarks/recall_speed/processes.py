"""The processor time of the local server's processes. Linux only."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

APP = "Worker, D1 and the stand-in"
"""One workerd, one thread: the application's isolate, D1's SQLite and the vector stand-in."""


def used_ms(group: int, state: Path) -> Counter[str]:
    """Return the processor time of a group's processes in milliseconds, by what they do.

    state: the server's folder; the workerd with files in it is the one that runs the Worker.
    """
    found: Counter[str] = Counter()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                ticks = int(fields[11]) + int(fields[12])
                found[_role(process, str(state))] += round(ticks * 1000 / os.sysconf("SC_CLK_TCK"))
    return found


def _role(process: Path, state: str) -> str:
    command = (process / "cmdline").read_bytes().split(b"\0")[0].decode()
    if not command.endswith("workerd"):
        return "wrangler"
    opened = [str(file.readlink()) for file in (process / "fd").iterdir()]
    return APP if any(state in file and file.endswith(".sqlite") for file in opened) else "wrangler's proxy"
