"""Compile the Worker's modules to bytecode, which is uploaded next to them, where Python looks for it.

An isolate that imports a module without bytecode compiles its source, which is half of what a first run takes. This
bytecode is never compared with its source when it is loaded, so it is kept by the content that it was made from, in
`.cache/bytecode/`. An interpreter of another version ignores it.
Source: https://docs.python.org/3/reference/import.html#cached-bytecode-invalidation
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tools.paths import CACHE, NODE_BIN, ROOT

TAG = "cpython-314"
"""What names of bytecode end with, for the interpreter that the compatibility date chooses."""
MAIN = "entry.py"
KEPT = CACHE / "bytecode"
PARTIAL = ".partial"
"""What the name of a file ends with while it is written."""
PYODIDE = ROOT / "node_modules" / "pyodide"
_COMPILER = Path(__file__).with_suffix(".mjs")
_AS_SOURCE = (MAIN, "pydantic/v1/")
"""What goes without: what the platform executes as its source, and what nothing in Retain imports."""


def with_bytecode(files: Mapping[str, bytes], *, compiled: bool) -> dict[str, bytes]:
    """Return files, by path, with the bytecode of their modules of Python.

    compiled: whether a module whose bytecode is not kept is compiled, or goes without.
    Raises: SystemExit for a module that cannot be compiled.
    """
    kept = {
        name: kept_at(name, content)
        for name, content in files.items()
        if name.endswith(".py") and not name.startswith(_AS_SOURCE)
    }
    if compiled:
        _compile({name: files[name] for name, path in kept.items() if not path.exists()})
    return {**files, **{cached(name): path.read_bytes() for name, path in kept.items() if path.exists()}}


def cached(name: str) -> str:
    """Return where Python looks for the bytecode of a module. Source: https://docs.python.org/3/library/importlib.html#importlib.util.cache_from_source"""
    path = PurePosixPath(name)
    return str(path.parent / "__pycache__" / f"{path.stem}.{TAG}.pyc")


def kept_at(name: str, content: bytes) -> Path:
    """Return the file that keeps the bytecode of a module. It has the module's name in it."""
    return KEPT / hashlib.sha256(b"\0".join((maker(), name.encode(), content))).hexdigest()


@functools.cache
def maker() -> bytes:
    """Return what the bytecode of a module depends on besides the module."""
    return b"\0".join((TAG.encode(), _COMPILER.read_bytes(), (PYODIDE / "package.json").read_bytes()))


def compile_modules(modules: Mapping[str, bytes], folder: str = "") -> dict[str, bytes]:
    """Return the bytecode of modules of Python, by path. folder: what comes before the path in tracebacks.

    Raises: SystemExit for a module that cannot be compiled.
    """
    with tempfile.TemporaryDirectory() as parent:
        sources, target = Path(parent, "sources"), Path(parent, "target")
        for name, content in modules.items():
            for root in (sources, target):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_bytes(content)
        command = [NODE_BIN / "node", _COMPILER, PYODIDE, TAG, sources, target, folder]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"the Worker's modules cannot be compiled:\n{done.stdout}{done.stderr}")
        return {name: (target / f"{name}c").read_bytes() for name in modules}


def _compile(modules: Mapping[str, bytes]) -> None:
    if not modules:
        return
    KEPT.mkdir(parents=True, exist_ok=True)
    for name, compiled in compile_modules(modules).items():
        write_whole(kept_at(name, modules[name]), compiled)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that other processes may be writing or reading: they see all of it, or none."""
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=PARTIAL, delete=False) as partial:
        partial.write(content)
    Path(partial.name).replace(path)
