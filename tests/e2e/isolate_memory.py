"""A Worker that says how much memory its isolate has taken: a route that only a staged copy has.

The memory of WebAssembly, in which Python lives, only grows: what it is after a load is the most that the load took.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.process_memory import processes_of
from tests.e2e.servers import client_of, staged
from tools.local_server import LocalServer, start, stop
from tools.paths import ROOT

_PATH = "/test-only/memory"
_STAGED = f'''
"""Answers how many bytes the memory of WebAssembly has."""

import js
import pyodide_js


def measured(inner):
    async def fetch(self, request):
        if request.url.endswith("{_PATH}"):
            return js.Response.new(str(pyodide_js._module.HEAPU8.length))
        return await inner(self, request)

    return fetch
'''
_ADDED = "\n\nfrom adapters.isolate_memory import measured\n\nDefault.fetch = measured(Default.fetch)\n"


class MeasuredServer:
    """A server whose isolate says how much memory it has. api: a client of it."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self.api = client_of(server)

    def python_bytes(self) -> int:
        """Return the size of the memory in which Python lives, which never shrinks."""
        answer = self.api.get(_PATH)
        assert answer.status_code == 200, answer.text
        return int(answer.text)

    def resident_bytes(self) -> int:
        """Return the resident memory of the process that runs the Worker: the larger workerd, since the other is a proxy."""
        return max(size for name, size in processes_of(self.server.process.pid) if name == "workerd")


@contextmanager
def measured_server(state: Path, overrides: Mapping[str, str] | None = None) -> Iterator[MeasuredServer]:
    """Serve a staged copy with that route on a migrated state until the block ends."""
    with staged("memory", overrides) as config:
        build = ROOT / f".build-memory-{os.getpid()}"
        (build / "adapters" / "isolate_memory.py").write_text(_STAGED.lstrip())
        entry = build / "entry.py"
        entry.write_text(f"{entry.read_text()}{_ADDED}")
        server = start(state, config=config)
        measured = MeasuredServer(server)
        try:
            yield measured
        finally:
            measured.api.close()
            stop(server)
