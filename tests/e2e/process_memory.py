"""How much memory a running server takes, sampled while something happens."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

_PAGE = os.sysconf("SC_PAGE_SIZE")


def processes_of(group: int) -> Iterator[tuple[str, int]]:
    """Yield the name and the resident memory, in bytes, of each process of a group. Linux only."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            name, _, rest = (folder / "stat").read_text().rpartition(")")
            if int(rest.split()[2]) == group:
                yield name.partition("(")[2], int((folder / "statm").read_text().split()[1]) * _PAGE
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue


def resident_bytes(group: int) -> int:
    """Return the resident memory of all processes of a group. Linux only."""
    return sum(size for _, size in processes_of(group))


class Growth:
    """Samples the memory of a process group until the block ends. peak_bytes: the most above the block's beginning."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._ended = threading.Event()
        self._sampling = threading.Thread(target=self._sample)
        self.peak_bytes = 0

    def __enter__(self) -> Growth:
        self._before = resident_bytes(self._group)
        self._sampling.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._sampling.join()

    def _sample(self) -> None:
        while not self._ended.wait(0.02):
            self.peak_bytes = max(self.peak_bytes, resident_bytes(self._group) - self._before)
