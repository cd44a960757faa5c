"""Runs tests on mutants, each in a process of its own that is forked from one which has imported what is not mutated.

Started by `tools.mutants` as `python -m tools.mutants.nursery FILE…`. It reads one request per line and answers with one
line, both JSON. A mutant is never written to disk: the forked process compiles it instead of the file.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

TEST_TIMEOUT_S = 30
"""After which a test fails: some mutants wait for what never comes."""
OPTIONS = (
    *(
        "-x",
        "-q",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:anyio",
        "-m",
        "not workerd",
        "--hypothesis-seed=0",
    ),
    *("-o", f"timeout={TEST_TIMEOUT_S}"),
    *("-W", "ignore:Module already imported so cannot be rewritten"),  # the plugins, which the first process imports
)
TAIL_CHARACTERS = 2_000


def modules_of(files: Sequence[str]) -> set[str]:
    """Return the names under which the files are imported."""
    paths = [Path(file).with_suffix("") for file in files]
    return {".".join(path.parts[1:] if path.parts[0] == "workers" else path.parts) for path in paths}


class _Withheld(MetaPathFinder):
    """Refuses to import modules, so that nothing that uses them is imported before they are mutated."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """Raise ImportError for a module that is withheld."""
        if fullname in self._names:
            raise ImportError(fullname)
        return None


PRELOADED = (
    "cryptography",
    "fastjsonschema",
    "hypothesis",
    "jwt",
    "pydantic",
    "pydantic_core",
    "retain",
    "ulid",
    "yaml",
)
"""Packages that are imported once: the largest. Not test modules, whose asserts pytest rewrites as it imports them."""


def preload(names: Sequence[str], withheld: set[str]) -> None:
    """Import those of the modules that are of `PRELOADED` and do not need a withheld one.

    Hypothesis's plugin comes before Hypothesis: loaded after it, as pytest would, it warns of what Hypothesis has read
    by then, and the warning is an error in pytest.
    """
    finder = _Withheld(withheld)
    sys.meta_path.insert(0, finder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("_hypothesis_pytestplugin", *names):
            if name.partition(".")[0] in (*PRELOADED, "_hypothesis_pytestplugin"):
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
    sys.meta_path.remove(finder)


def run(tests: Sequence[str], mutated: Mapping[str, str]) -> tuple[int, str]:
    """Run the tests in this process, with these sources instead of the files; return pytest's exit status and output."""
    original = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        relative = os.path.relpath(self.path)
        if relative in mutated:
            return compile(mutated[relative], self.path, "exec", dont_inherit=True)
        return original(self, fullname)

    setattr(SourceFileLoader, "get_code", get_code)  # noqa: B010 -- the type checker sees the base class's method
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        status = pytest.main([*OPTIONS, *tests])
    return int(status), output.getvalue()


def _forked(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request in a forked process, which is ended when it computes or takes too long.

    cpu_s: the bound for a mutant that never ends. It does not depend on what else the machine does, as `timeout_s` would.
    """
    reading, writing = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_s"], request["cpu_s"]))
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        status, output = run(request["tests"], request["mutated"])
        loaded = sorted(sys.modules) if request.get("loaded") else []
        answer = {"status": status, "output": output[-TAIL_CHARACTERS:], "loaded": loaded}
        with os.fdopen(writing, "w") as pipe:
            pipe.write(json.dumps(answer))
        os._exit(0)
    os.close(writing)

    def late(*_: object) -> None:
        os.killpg(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, request["timeout_s"])
    with os.fdopen(reading) as pipe:
        content = pipe.read()
    signal.setitimer(signal.ITIMER_REAL, 0)
    _, _, used = os.wait4(child, 0)
    times = {"seconds": time.monotonic() - started, "cpu_s": used.ru_utime + used.ru_stime}
    ended = json.loads(content) if content else {"status": -1, "output": "it took too long, or died", "loaded": []}
    return {**ended, **times}


def main() -> None:
    """Answer requests until the input ends."""
    withheld = modules_of(sys.argv[1:])
    for line in sys.stdin:
        request = json.loads(line)
        if "preload" in request:
            preload(request["preload"], withheld)
            answer: dict[str, Any] = {}
        else:
            answer = _forked(request)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
