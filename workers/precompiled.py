"""Take what modules would compile as they are imported from files that staging made.

That is the methods of dataclasses, which `dataclasses` writes as source and executes, and regular expressions. Compiling
is four fifths of what a dataclass takes in an isolate's interpreter. What is in no file is compiled as always, and so is
everything if a file is missing, or was made by another version of Python.
Source: https://github.com/python/cpython/blob/3.14/Lib/dataclasses.py (`_FuncBuilder.add_fns_to_class`) and
https://github.com/python/cpython/blob/3.14/Lib/re/_compiler.py (`compile`)
"""

from __future__ import annotations

import dataclasses
import marshal
import re
from collections.abc import Callable
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import FunctionType
from typing import Any

MAIN, LATER = "precompiled.marshal", "precompiled_later.marshal"
"""Next to this module: what the main module's imports compile, and what all others do. An isolate that only proxies never
reads the second. Each has the version of Python's bytecode, and two mappings that are marshalled. One has the code of the
function that a source of `dataclasses` defines, by that source; one what the compiler of `re` hands to its engine, by the
pattern and the flags. Each of their values is marshalled as well, as most isolates need few of them."""
_CREATING = "__create_fn__"
"""The function that a source defines, and that returns the methods."""


class _Recorded:
    """What was compiled before."""

    def __init__(self) -> None:
        self._methods: dict[str, bytes] = {}
        self._patterns: dict[tuple[Any, int], bytes] = {}
        self.later = False

    def read(self, name: str) -> bool:
        """Add what a file has; return False if it is missing or of another version."""
        file = Path(__file__).with_name(name)
        content = file.read_bytes() if file.exists() else b""
        if not content.startswith(MAGIC_NUMBER):
            return False
        methods, patterns = marshal.loads(memoryview(content)[len(MAGIC_NUMBER) :])  # noqa: S302 -- staging made it
        self._methods |= methods
        self._patterns |= patterns
        return True

    def method(self, source: str) -> bytes | None:
        """Return the code of a source. Reads the second file for the first source that is not in the first one.

        A pattern does not: calls of tools compile some, and define no class.
        """
        if source not in self._methods and self.later:
            self.later = False
            self.read(LATER)
        return self._methods.get(source)

    def pattern(self, pattern: Any, flags: int) -> bytes | None:
        """Return what the engine is given for a pattern."""
        return self._patterns.get((pattern, flags))


_recorded = _Recorded()


def install() -> None:
    """Answer for all classes and expressions from now on."""
    if _recorded.read(MAIN):
        dataclasses.exec = _executing(_recorded)  # type: ignore[attr-defined]
        compiler: Any = re._compiler  # type: ignore[attr-defined]
        compiler.compile = _compiling(_recorded, compiler.compile, compiler._sre.compile)


def expect_more() -> None:
    """Let the second file be read when a class needs it: the main module is loaded."""
    _recorded.later = True


def _executing(recorded: _Recorded) -> Callable[[str, dict[str, Any], dict[str, Any]], None]:
    """Return what stands for `exec` in `dataclasses`."""

    def execute(source: str, module: dict[str, Any], defined: dict[str, Any]) -> None:
        code = recorded.method(source)
        if code is None:
            # As `dataclasses` does, which has no feature of the future that the source would inherit.
            exec(compile(source, "<string>", "exec", dont_inherit=True), module, defined)  # noqa: S102
        else:
            defined[_CREATING] = FunctionType(marshal.loads(code), module, _CREATING)  # noqa: S302

    return execute


def _compiling(recorded: _Recorded, compile_any: Callable[..., Any], engine: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands for the compiler of `re`."""

    def compiled(pattern: Any, flags: int = 0) -> Any:
        code = recorded.pattern(pattern, int(flags))
        return compile_any(pattern, flags) if code is None else engine(pattern, *marshal.loads(code))  # noqa: S302

    return compiled
