"""The memories that run in processes of their own, and what asks them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.agents.own_process import VENV, python
from retain.json_text import read_own_json
from tools.paths import ROOT

HERE = Path(__file__).parent
TABLE = ROOT / "models" / "static-minilm-256-i8.bin"
RETAIN, LANGGRAPH, MEM0, FULL_TEXT = "Retain, in-process", "LangGraph, SqliteStore", "mem0", "full text alone"
KINDS: Mapping[str, str] = {RETAIN: "retain", LANGGRAPH: "langgraph", MEM0: "mem0", FULL_TEXT: "fulltext"}


@dataclass(frozen=True)
class MemoryProcess:
    """The process of one memory. folder: where it keeps what it is given."""

    program: subprocess.Popen[str]
    folder: Path


class Kept:
    """Implements `Contestant`: searches, or adds, in the process of one memory."""

    def __init__(self, name: str, process: MemoryProcess, what: str, texts: Iterator[str]) -> None:
        self.name = name
        self._process = process
        self._what = what
        self._texts = texts

    @property
    def processes(self) -> Mapping[str, Sequence[int]]:
        """See the protocol."""
        return {"python": [self._process.program.pid]}

    async def block(self, connections: int, calls: int) -> list[float]:
        """See the protocol. One at a time: neither store has more of one connection to a file."""
        assert connections == 1
        texts = [next(self._texts) for _ in range(calls)]
        return await asyncio.to_thread(asked, self._process, {self._what: texts})

    async def counters(self) -> Mapping[str, float]:
        """See the protocol."""
        return {}


@contextmanager
def running(names: Iterable[str]) -> Iterator[dict[str, MemoryProcess]]:
    """Run the processes of these memories, empty ones, until the block ends."""
    with ExitStack() as stack:
        processes = {}
        for name in names:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="retain-bench-"))
            program = stack.enter_context(_started(KINDS[name], folder))
            stack.callback(program.terminate)
            processes[name] = MemoryProcess(program, Path(folder))
        yield processes


def asked(process: MemoryProcess, message: Mapping[str, Sequence[str]]) -> list[float]:
    """Send a block and return its times. Raises: SystemExit when the process has ended."""
    answer = _answer(process, message)
    assert isinstance(answer, list)
    times_ms, hits = answer
    assert hits == len(times_ms) or "search" not in message, "every search finds something"
    return list(times_ms)


def found(process: MemoryProcess, questions: Sequence[tuple[str, int | None]]) -> list[list[int]]:
    """Return the numbers of the texts that each question finds, best first, of those before a number.

    Raises: SystemExit when the process has ended.
    """
    answer = _answer(process, {"find": questions})
    assert isinstance(answer, list)
    return answer


def _answer(process: MemoryProcess, message: object) -> object:
    program = process.program
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(json.dumps(message) + "\n")
    program.stdin.flush()
    line = program.stdout.readline()
    if not line:
        raise SystemExit("the process of a memory ended")
    return read_own_json(line)


def _started(kind: str, folder: str) -> subprocess.Popen[str]:
    """Start the process of one memory."""
    program = sys.executable
    if kind in ("langgraph", "mem0"):
        program = _loads_extensions() if kind == "langgraph" else str(python())
    packages = sorted(VENV.glob("lib/python*/site-packages")) if kind == "langgraph" else []
    paths = os.pathsep.join(map(str, [ROOT / "workers", *packages]))
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [program, str(HERE / "kept.py"), kind, folder, str(TABLE)]
    quiet = subprocess.DEVNULL if kind == "mem0" else None  # it says at each start what else could be installed
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, text=True, env=environment)


def _loads_extensions() -> str:
    """Return the interpreter for LangGraph's store, whose SQLite must load extensions, as not every build can.

    Raises: SystemExit where neither the environment's own nor the system's can.
    """
    own = str(python())
    test = "import sqlite3, sys; sys.exit(not hasattr(sqlite3.Connection, 'enable_load_extension'))"
    for program in (own, "/usr/bin/python3"):
        if Path(program).exists() and subprocess.run([program, "-c", test], check=False).returncode == 0:
            return program
    raise SystemExit("no interpreter here has a SQLite that loads extensions, which LangGraph's store needs")
