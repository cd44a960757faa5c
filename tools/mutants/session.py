"""Judges mutants: gives each to the nursery with the tests of its wire."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from tools.mutants.mutation import DEFAULTS, EVERYWHERE, Mutant, mutants
from tools.mutants.wires import Wire
from tools.paths import CACHE, ROOT

Outcome = Literal["killed", "survived"]
BASELINE_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome of a mutant. before, after: the changed lines. by: the end of the output of the tests.

    under: the line above the change.
    """

    wire: str
    mutant: Mutant
    before: str
    after: str
    outcome: Outcome
    seconds: float
    by: str
    under: str = ""


class Nursery:
    """The process that forks. tests: judge every mutant. timeout_s, cpu_s: after which a mutant counts as killed."""

    def __init__(self, process: subprocess.Popen[str], tests: Sequence[str]) -> None:
        self._process = process
        self._tests = list(tests)
        self.timeout_s = self.cpu_s = BASELINE_TIMEOUT_S

    def ask(self, **request: object) -> dict[str, Any]:
        """Send a request and return the answer. Raises: RuntimeError when the process died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that runs the tests died")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, mutated: dict[str, str], *, loaded: bool = False) -> dict[str, Any]:
        """Run the tests with these sources; return pytest's status, the end of its output, and the seconds."""
        bounds = {"timeout_s": self.timeout_s, "cpu_s": math.ceil(self.cpu_s)}
        return self.ask(tests=self._tests, mutated=mutated, loaded=loaded, **bounds)


@contextmanager
def nursery(wire: Wire, files: Sequence[str]) -> Iterator[Nursery]:
    """Start the process that judges mutants of these files, and let the wire's tests pass once without a mutant.

    Raises: RuntimeError when they fail.
    """
    command = [sys.executable, "-m", "tools.mutants.nursery", *files]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT / "workers"), str(ROOT)))
    environment["PYTHONPYCACHEPREFIX"] = str(
        CACHE / "mutants" / "bytecode"
    )  # each process reads what the first compiled
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:
        started = Nursery(process, wire.tests)
        try:
            loaded = started.run({}, loaded=True)["loaded"]
            started.ask(preload=loaded)
            whole = started.run({})
            if whole["status"] != 0:
                raise RuntimeError(f"the tests of {wire.name} fail without a mutant:\n{whole['output']}")
            started.timeout_s, started.cpu_s = max(60.0, 10 * whole["seconds"]), max(5.0, 3 * whole["cpu_s"])
            yield started
        finally:
            process.kill()


def mutants_of(wire: Wire) -> list[Mutant]:
    """Return every mutant of a wire's files."""
    operators = DEFAULTS if wire.defaults else EVERYWHERE
    return [mutant for file in wire.files for mutant in mutants(file, (ROOT / file).read_text(), operators)]


def judged(wire: Wire, some: Sequence[Mutant]) -> Iterator[Judged]:
    """Yield the outcome of each of the wire's mutants. Raises: RuntimeError when the tests fail without a mutant."""
    if not some:
        return
    originals = {mutant.file: (ROOT / mutant.file).read_text() for mutant in some}
    with nursery(wire, list(originals)) as started:
        for mutant in some:
            ended = started.run({mutant.file: mutant.source})
            original = originals[mutant.file]
            before, after = mutant.lines(original)
            outcome: Outcome = "survived" if ended["status"] == 0 else "killed"
            seen = ended["seconds"], ended["output"]
            yield Judged(wire.name, mutant, before, after, outcome, *seen, mutant.under(original))
