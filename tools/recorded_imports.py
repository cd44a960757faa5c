"""Record what a Worker's modules compile when they are imported, for `workers/precompiled.py` to take instead.

That is the methods of dataclasses and regular expressions. The Worker's interpreter imports all of the Worker's modules
once, in Node.js, and what it is asked to compile is kept.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tools.bytecode import PARTIAL, PYODIDE, maker, write_whole
from tools.paths import CACHE, NODE_BIN
from tools.worker_modules import PACKAGES

READER = "precompiled.py"
"""The module of a Worker that takes what was recorded."""
MAIN, LATER = "precompiled.marshal", "precompiled_later.marshal"
"""The files that it takes it from: what the main module's imports compile, and what all others do."""
KEPT = CACHE / "recorded"
_IMPORTING = Path(__file__).with_suffix(".mjs")
_RECORDING = Path(__file__).with_name("import_recorder.py")


def with_recorded(files: Mapping[str, bytes], *, compiled: bool) -> dict[str, bytes]:
    """Return a Worker's files, by path, with what its modules compile, if the Worker takes that.

    compiled: whether the modules are imported, if they were not before. Else what was recorded last is taken: the same
    source has the same code, and one that was not there is compiled by the isolate.
    Raises: SystemExit when the interpreter fails.
    """
    if READER not in files:
        return dict(files)
    if compiled:
        taken = kept_at(files)
        if not taken.exists():
            _record(files, taken)
    else:
        whole = (path for path in KEPT.glob("*") if path.suffix != PARTIAL)
        kept = sorted(whole, key=lambda path: path.stat().st_mtime_ns)
        if not kept:
            return dict(files)
        taken = kept[-1]
    with zipfile.ZipFile(taken) as recorded:
        return {**files, **{name: recorded.read(name) for name in (MAIN, LATER)}}


def kept_at(files: Mapping[str, bytes]) -> Path:
    """Return the archive that keeps what a Worker's modules compile: it has them and the packages in its name."""
    digest = hashlib.sha256(b"\0".join((maker(), _IMPORTING.read_bytes(), _RECORDING.read_bytes())))
    modules = {name: content for name, content in files.items() if name.endswith(".py")}
    packages = {f"python_modules/{path.relative_to(PACKAGES)}": path for path in PACKAGES.rglob("*.py")}
    for name, content in sorted([*modules.items(), *((name, path.read_bytes()) for name, path in packages.items())]):
        digest.update(b"\0".join((name.encode(), hashlib.sha256(content).digest())))
    return KEPT / digest.hexdigest()


def _record(files: Mapping[str, bytes], kept: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        modules, target = Path(folder, "modules"), Path(folder, "target")
        target.mkdir()
        for name, content in files.items():
            (modules / name).parent.mkdir(parents=True, exist_ok=True)
            (modules / name).write_bytes(content)
        command = [NODE_BIN / "node", _IMPORTING, PYODIDE, _RECORDING, modules, PACKAGES, target, MAIN, LATER]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"the Worker's modules cannot be imported:\n{done.stdout}{done.stderr}")
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as recorded:
            for name in (MAIN, LATER):
                recorded.writestr(name, (target / name).read_bytes())
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_whole(kept, archive.getvalue())
