"""Take what modules would compile as they are imported from a file that staging made.

That is the methods of dataclasses, which `dataclasses` writes as source and executes, and regular expressions. Compiling
is four fifths of what a dataclass takes in an isolate's interpreter. What is not in the file is compiled as always, and so
is everything if the file is missing, or was made by another version of Python.
Source: https://github.com/python/cpython/blob/3.14/Lib/dataclasses.py (`_FuncBuilder.add_fns_to_class`) and
https://github.com/python/cpython/blob/3.14/Lib/re/_compiler.py (`compile`)
"""

from __future__ import annotations

import dataclasses
import marshal
import re
from collections.abc import Callable, Mapping
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import FunctionType
from typing import Any

FILE = "precompiled.marshal"
"""Next to this module: the version of Python's bytecode, and two mappings that are marshalled. One has the code of the
function that a source of `dataclasses` defines, by that source; one what the compiler of `re` hands to its engine, by the
pattern and the flags. Each of their values is marshalled as well, as most isolates need few of them."""
_CREATING = "__create_fn__"
"""The function that a source defines, and that returns the methods."""


def install() -> None:
    """Answer for all classes and expressions from now on."""
    file = Path(__file__).with_name(FILE)
    content = file.read_bytes() if file.exists() else b""
    if content.startswith(MAGIC_NUMBER):
        methods, patterns = marshal.loads(content[len(MAGIC_NUMBER) :])  # noqa: S302 -- staging made it
        dataclasses.exec = _executing(methods)  # type: ignore[attr-defined]
        compiler: Any = re._compiler  # type: ignore[attr-defined]
        compiler.compile = _compiling(patterns, compiler.compile, compiler._sre.compile)


def _executing(methods: Mapping[str, bytes]) -> Callable[[str, dict[str, Any], dict[str, Any]], None]:
    """Return what stands for `exec` in `dataclasses`."""

    def execute(source: str, module: dict[str, Any], defined: dict[str, Any]) -> None:
        code = methods.get(source)
        if code is None:
            # As `dataclasses` does, which has no feature of the future that the source would inherit.
            exec(compile(source, "<string>", "exec", dont_inherit=True), module, defined)  # noqa: S102
        else:
            defined[_CREATING] = FunctionType(marshal.loads(code), module, _CREATING)  # noqa: S302

    return execute


def _compiling(
    patterns: Mapping[tuple[Any, int], bytes], compile_any: Callable[..., Any], engine: Callable[..., Any]
) -> Callable[..., Any]:
    """Return what stands for the compiler of `re`."""

    def compiled(pattern: Any, flags: int = 0) -> Any:
        code = patterns.get((pattern, int(flags)))
        return compile_any(pattern, flags) if code is None else engine(pattern, *marshal.loads(code))  # noqa: S302

    return compiled
