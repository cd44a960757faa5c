"""Add bytecode to the standard library of the local runtime, so that an interpreter that starts does not compile it.

Pyodide's archive has sources alone. Half of an interpreter's start was their compilation, in every isolate that a local
server, the tests and the benchmarks start.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

from tools.bytecode import compile_modules, maker, write_whole

_MOUNTED = "/lib/python314.zip/"
"""Where Pyodide has the archive, which tracebacks name."""


def with_bytecode(archive: Path, folder: Path) -> Path:
    """Return the archive with the bytecode of each module next to it, where `zipimport` looks first.

    It is kept in the folder, by the content of the archive. Raises: SystemExit for a module that cannot be compiled.
    """
    content = archive.read_bytes()
    kept = folder / f"{hashlib.sha256(maker() + content).hexdigest()[:16]}.zip"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(kept, _compiled(content))
    return kept


def _compiled(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        modules = {name: archive.read(name) for name in archive.namelist() if name.endswith(".py")}
        for entry in archive.infolist():
            target.writestr(entry, archive.read(entry))
        for name, compiled in compile_modules(modules, _MOUNTED).items():
            target.writestr(zipfile.ZipInfo(f"{name}c"), compiled, zipfile.ZIP_DEFLATED)
    return made.getvalue()
