"""Runs the generators, when the document or a source has changed since the last time."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.clients.synchronous import write_synchronous
from tools.openapi.document import document, with_plain_problems
from tools.openapi.schemas import Json
from tools.paths import CACHE, NODE_BIN, ROOT

PYTHON = ROOT / "clients" / "python"
TYPESCRIPT = ROOT / "clients" / "typescript"
_API = PYTHON / "retain_client" / "api"
_ASYNCHRONOUS = PYTHON / "retain_client" / "asynchronous"
_SYNCHRONOUS = PYTHON / "retain_client" / "synchronous"
_CONFIG = PYTHON / "generator.yaml"
_SCHEMA = TYPESCRIPT / "src" / "schema.ts"
_CURRENT = CACHE / "clients"
"""Has a digest of what each generated part was made from."""


def generate() -> list[Path]:
    """Make what is missing or was made from something else; return what was made."""
    made = []
    with _alone(), tempfile.TemporaryDirectory() as folder:
        shown = json.dumps(_for_generators(document()))
        described = Path(folder) / "openapi.json"
        described.write_text(shown)
        asynchronous = "".join(path.read_text() for path in sorted(_ASYNCHRONOUS.glob("*.py")))
        locks = "".join((ROOT / name).read_text() for name in ("locks/dev.txt", "package-lock.json"))
        parts: list[tuple[Path, str, Callable[[Path], None]]] = [
            (_API, shown + locks + _CONFIG.read_text(), lambda target: _write_api(described, target)),
            (_SCHEMA, shown + locks, lambda target: _write_schema(described, target)),
            (_SYNCHRONOUS, asynchronous, lambda target: write_synchronous(_ASYNCHRONOUS, target)),
        ]
        own = Path(__file__).read_text() + Path(__file__).with_name("synchronous.py").read_text()
        for target, source, write in parts:
            digest = hashlib.sha256((source + own).encode()).hexdigest()
            if target.exists() and _digest_of(target) == digest:
                continue
            new = Path(folder) / target.name
            write(new)
            _replace(target, new)
            (_CURRENT / target.name).write_text(digest)
            made.append(target)
    return made


def _for_generators(whole: Json) -> Json:
    """Return the document without what generators cannot read: a parameter that is JSON in a query is a text."""
    plainly = with_plain_problems(whole)
    for methods in plainly["paths"].values():
        for operation in methods.values():
            for parameter in operation["parameters"]:
                if parameter.pop("content", None) is not None:
                    parameter["schema"] = {"type": "string"}
    return plainly


def _write_api(described: Path, target: Path) -> None:
    generator = Path(sys.executable).with_name("openapi-python-client")
    options: list[str | Path] = ["--meta", "none", "--config", _CONFIG, "--fail-on-warning", "--output-path", target]
    run([generator, "generate", "--path", described, *options])

    for operation in target.glob("api/*/[!_]*.py"):
        operation.write_text(_with_checks(operation.read_text()))
    models = target / "models" / "__init__.py"
    models.write_text(_on_demand(models.read_text()))


def _with_checks(module: str) -> str:
    """Return the module of an operation as one that refuses what is not one part of its path, or not its answer.

    Raises: SystemExit for a module that the generator wrote in another way.
    """
    checked = re.sub(r'\bquote\(str\((\w+)\), safe=""\)', r"path_part(\1)", module)
    checked = checked.replace(
        "from urllib.parse import quote\n", "from retain_client.values import path_part, reading\n"
    )
    checked = checked.replace("\ndef _build_response(", "\n@reading\ndef _build_response(")
    if (
        re.search(r"\bquote\b", checked)
        or checked.count("\n@reading\n") != 1
        or "import path_part, reading\n" not in checked
    ):
        raise SystemExit("the generator writes operations in another way: the client's checks have no place in them")
    return checked


_ON_DEMAND = '''"""The models. Each is imported when it is first named: all of them take a quarter of a second."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
{imports}

_MODULES = {modules!r}
__all__ = {names!r}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    return getattr(import_module(_MODULES[name], __name__), name)
'''


def _on_demand(package: str) -> str:
    """Return a package that imports its modules, as one that imports each when it is needed."""
    modules = dict(re.findall(r"^from (\.\w+) import (\w+)$", package, re.MULTILINE))
    imports = "\n".join(f"    from {module} import {name} as {name}" for module, name in modules.items())
    by_name = {name: module for module, name in modules.items()}
    return _ON_DEMAND.format(imports=imports, modules=by_name, names=tuple(by_name))


def _write_schema(described: Path, target: Path) -> None:
    run([NODE_BIN / "node", NODE_BIN / "openapi-typescript", described, "--default-non-nullable=false", "-o", target])


def run(command: Sequence[str | Path], *, cwd: Path = ROOT) -> None:
    """Run a command. Raises: SystemExit with what it printed when it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)


@contextmanager
def _alone() -> Iterator[None]:
    """Let no two processes generate at a time."""
    _CURRENT.mkdir(parents=True, exist_ok=True)
    with (_CURRENT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _digest_of(target: Path) -> str:
    noted = _CURRENT / target.name
    return noted.read_text() if noted.exists() else ""


def _replace(target: Path, new: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        shutil.rmtree(target)
    shutil.move(new, target)
