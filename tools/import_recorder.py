"""Import every module of a Worker, and record what they compile: methods of dataclasses, and regular expressions.

What a module compiles when it is used is recorded as well, if it has a function `compile_ahead` that compiles it.

Run by the Worker's interpreter in Node.js. What the SDK offers is replaced by empty classes, as it needs workerd. What is
not seen so, of the SDK's few dataclasses and of a module that cannot be imported here, is compiled by the isolate.
"""

from __future__ import annotations

import dataclasses
import importlib
import marshal
import re
import sys
from collections.abc import Iterable
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import ModuleType
from typing import Any

_compiler: Any = re._compiler  # type: ignore[attr-defined]


AHEAD = "compile_ahead"
"""The function of a module that compiles what the module compiles only when it is used, and most isolates use."""


def _nothing() -> None:
    """Stand for the function of a module that has none."""


class _Sdk(ModuleType):
    """The SDK, of which every name is an empty class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Recorder:
    """What was compiled, as `workers/precompiled.py` takes it."""

    def __init__(self) -> None:
        self.methods: dict[str, bytes] = {}
        self.patterns: dict[tuple[str | bytes, int], bytes] = {}
        self._written: set[object] = set()

    def write(self, file: Path) -> None:
        """Write what was compiled since the last time."""
        recorded = (dict(sorted(self.methods.items())), dict(sorted(self.patterns.items(), key=repr)))
        file.write_bytes(MAGIC_NUMBER + marshal.dumps(recorded))
        self._written |= self.methods.keys() | self.patterns.keys()
        self.methods, self.patterns = {}, {}

    def execute(self, source: str, module: dict[str, Any], defined: dict[str, Any]) -> None:
        """Stand for `exec` in `dataclasses`."""
        # As `dataclasses` does, which has no feature of the future that the source would inherit.
        exec(compile(source, "<string>", "exec", dont_inherit=True), module, defined)  # noqa: S102
        if source not in self._written:
            self.methods[source] = marshal.dumps(defined["__create_fn__"].__code__)

    def compile(self, pattern: str | bytes, flags: int = 0) -> re.Pattern[Any]:
        """Stand for the compiler of `re`, whose steps these are."""
        parsed = _compiler._parser.parse(pattern, flags)
        names: list[str | None] = [None] * parsed.state.groups
        for name, number in parsed.state.groupdict.items():
            names[number] = name
        code = [int(word) for word in _compiler._code(parsed, flags)]
        made = (int(flags | parsed.state.flags), code, len(names) - 1, parsed.state.groupdict, tuple(names))
        if (pattern, int(flags)) not in self._written:
            self.patterns[pattern, int(flags)] = marshal.dumps(made)
        compiled: re.Pattern[Any] = _compiler._sre.compile(pattern, *made)
        return compiled


def record(modules: str, packages: str, main: str, later: str) -> None:
    """Import the modules of a folder, with the packages of another, and write both files. Prints what cannot be imported.

    main: what the imports of `entry` compile. later: what those of all other modules do.
    """
    recorder = _Recorder()
    sys.path[:0] = [modules, packages]
    sys.dont_write_bytecode = True  # next to the packages: it would be uploaded with them
    sys.modules["workers"] = _Sdk("workers")
    dataclasses.exec = recorder.execute  # type: ignore[attr-defined]
    _compiler.compile = recorder.compile
    paths = sorted(path.relative_to(modules) for path in Path(modules).rglob("*.py"))
    names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths]
    _import([name for name in names if name == "entry"])
    recorder.write(Path(main))
    _import([name for name in names if name != "entry"])
    recorder.write(Path(later))


def _import(names: Iterable[str]) -> None:
    for name in names:
        try:
            getattr(importlib.import_module(name), AHEAD, _nothing)()
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- function tools are anybody's code
            print(f"{name}: {error!r}")
