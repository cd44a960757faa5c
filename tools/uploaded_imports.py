"""What a function tool imports, against what is uploaded: the environment of development has more packages."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.paths import ROOT

_UPLOADED = (ROOT / "python_modules", ROOT / "workers")
_STAGED = frozenset({"agents", "durable_objects"})


def missing_import(source: str | bytes, folders: tuple[Path, ...] = _UPLOADED) -> tuple[int, str] | None:
    """Return the line and the name of the first module that the Worker will not find as it imports the source, or None.

    An import that may fail (in `try`), or that is only for types or inside a function, is not looked at. folders: with
    the modules that are uploaded.
    """
    for line, name in _imported(ast.parse(source).body):
        first = name.partition(".")[0]
        known = first in sys.stdlib_module_names or first in _STAGED
        if not known and not any(_holds(folder, first) for folder in folders):
            return line, first
    return None


def _holds(folder: Path, name: str) -> bool:
    return (folder / name).is_dir() or (folder / f"{name}.py").exists() or any(folder.glob(f"{name}.*.so"))


def _imported(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each module that is imported whenever these statements are executed."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from ((statement.lineno, alias.name) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module:
            yield statement.lineno, statement.module
        elif isinstance(statement, ast.ClassDef | ast.With):
            yield from _imported(statement.body)
