"""What processes use: processor time, memory, bytes written. Linux only."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used since it began. resident_bytes: now. written_bytes: to storage, not to sockets."""

    cpu_ms: float = 0.0
    resident_bytes: int = 0
    written_bytes: int = 0

    def since(self, earlier: Usage) -> Usage:
        """Return what was used since an earlier reading, with the memory of this one."""
        return Usage(
            self.cpu_ms - earlier.cpu_ms, self.resident_bytes, max(0, self.written_bytes - earlier.written_bytes)
        )


def usage_of(pids: Iterable[int]) -> Usage:
    """Return what these processes use together. One that has ended counts as nothing.

    Source: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html and proc_pid_io.5.html
    """
    cpu_ms, resident, written = 0.0, 0, 0
    for pid in pids:
        with suppress(OSError):
            fields = _stat(pid)
            io = dict(line.split(": ") for line in (_PROC / str(pid) / "io").read_text().splitlines())
            cpu_ms += time.clock_gettime_ns(_clock_of(pid)) / 1e6
            resident += int(fields[21]) * _PAGE_BYTES
            written += int(io["write_bytes"])
    return Usage(cpu_ms, resident, written)


def _clock_of(pid: int) -> int:
    """Return the clock of a process's processor time. That of /proc counts in ticks of 10 ms; this one in nanoseconds.

    Source: https://man7.org/linux/man-pages/man3/clock_getcpuclockid.3.html
    """
    return (~pid << 3) | 2


def of_group(group: int) -> list[int]:
    """Return the processes of a group."""
    return [pid for pid, fields in _all() if int(fields[2]) == group]


def with_descendants(pid: int) -> list[int]:
    """Return a process and everything that it started, directly or not."""
    parents = {each: int(fields[1]) for each, fields in _all()}
    found = [pid]
    for parent in found:  # grows while it is read
        found += [each for each, of in parents.items() if of == parent]
    return found


def cpu_by_role(group: int, role_of: Callable[[int], str]) -> Counter[str]:
    """Return the processor time of a group's processes in milliseconds, by the role of each."""
    found: Counter[str] = Counter()
    for pid in of_group(group):
        with suppress(OSError):  # it has just ended
            found[role_of(pid)] += round(usage_of([pid]).cpu_ms)
    return found


def _all() -> Iterator[tuple[int, list[str]]]:
    for process in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            yield int(process.name), _stat(int(process.name))


def _stat(pid: int) -> list[str]:
    """Return the fields of a process after its name: its state, parent, group, …"""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
