"""Contestants in Python: each a process of its own, which is asked for blocks of runs over its standard input."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from retain.json_text import read_own_json
from tools.paths import CACHE, ROOT

HERE = Path(__file__).parent
LOCK = ROOT / "locks" / "bench.txt"
VENV = CACHE / "bench-venv"


def is_installed() -> bool:
    """Return whether what is compared is installed as the lock has it."""
    ready = VENV / LOCK.name
    return ready.exists() and ready.read_bytes() == LOCK.read_bytes()


def python() -> Path:
    """Return the interpreter that has what is compared. The first call installs it. Raises: CalledProcessError."""
    if not is_installed():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
        pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)], check=True)
        (VENV / LOCK.name).write_bytes(LOCK.read_bytes())
    return VENV / "bin" / "python"


LANGGRAPH = "LangGraph, SQLite checkpoints"
PYDANTIC_AI = "pydantic-ai, DBOS on SQLite"
SCRIPTS = {LANGGRAPH: "langgraph_clerk.py", PYDANTIC_AI: "pydantic_ai_clerk.py"}


class OwnProcess:
    """Implements `Contestant`. Its times are those of calls in its own process: nothing of HTTP is in them."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._process = process

    @property
    def processes(self) -> Mapping[str, Sequence[int]]:
        """See the protocol."""
        return {"python": [self._process.pid]}

    async def block(self, connections: int, calls: int) -> list[float]:
        """See the protocol. Raises: SystemExit when the process has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"connections": connections, "calls": calls}).encode() + b"\n")
        times = await self.answer()
        assert isinstance(times, list)
        return times

    async def counters(self) -> Mapping[str, float]:
        """See the protocol."""
        return {}

    async def answer(self) -> object:
        """Return the next line that the process writes. Raises: SystemExit when it has ended."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.name} ended")
        return read_own_json(line.decode())


@asynccontextmanager
async def own_process(name: str) -> AsyncIterator[OwnProcess]:
    """Run the process of a contestant of `SCRIPTS` until the block ends, with an empty store."""
    pipe = asyncio.subprocess.PIPE
    with tempfile.TemporaryDirectory(prefix="retain-bench-") as folder:
        script = str(HERE / SCRIPTS[name])
        process = await asyncio.create_subprocess_exec(
            str(python()), script, folder, stdin=pipe, stdout=pipe, limit=1 << 24
        )
        try:
            contestant = OwnProcess(name, process)
            await contestant.answer()
            yield contestant
        finally:
            process.terminate()
            await process.wait()
