"""Compile what the Worker imports before it is first started here, and the local runtime's standard library.

The last step of `make setup`.

The bytecode of the vendored packages is written next to them; that of Retain's own modules, and what they compile when
they are imported, is kept for `tools.stage`, which compiles nothing itself for a local server. What was kept for earlier
sources is removed.
"""

from __future__ import annotations

from pathlib import Path

from tools import bytecode, recorded_imports
from tools.bytecode import with_bytecode
from tools.offline_runtime import prepare
from tools.paths import PRODUCTION_CONFIG
from tools.stage import mirror, read_config, wanted_files, with_compiled
from tools.vendor import TARGET as PACKAGES


def precompile(packages: Path = PACKAGES) -> int:
    """Compile all that is not compiled yet; return how many files of the packages changed. Raises: SystemExit."""
    own = wanted_files(read_config(PRODUCTION_CONFIG))
    vendored = {
        path.relative_to(packages).as_posix(): path.read_bytes()
        for path in packages.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    changed = mirror(with_bytecode(vendored, compiled=True), packages)
    with_compiled(own, compiled=True)
    wanted = {bytecode.kept_at(name, content) for files in (own, vendored) for name, content in files.items()}
    wanted.add(recorded_imports.kept_at(own))
    for path in [*bytecode.KEPT.iterdir(), *recorded_imports.KEPT.glob("*")]:
        if path.is_file() and path not in wanted:
            path.unlink()
    return changed


if __name__ == "__main__":
    prepare()
    precompile()
