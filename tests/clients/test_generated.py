"""The generated parts are those of today's document, whole, and the surface fits them."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import page
from tools.clients import PYTHON, TYPESCRIPT, build, generate
from tools.clients.synchronous import synchronous
from tools.openapi import operations
from tools.paths import CACHE, ROOT

pytestmark = pytest.mark.usefixtures("generated")


def test_each_operation_of_the_document_is_generated() -> None:
    modules = {path.stem for path in PYTHON.glob("retain_client/api/api/*/*.py")} - {"__init__"}
    assert modules == operations().keys()
    schema = (TYPESCRIPT / "src" / "schema.ts").read_text()
    assert set(re.findall(r"^    (\w+): \{$", schema.partition("export interface operations {")[2], re.MULTILINE)) == (
        operations().keys()
    )


def test_each_operation_of_the_python_client_checks_its_ids_and_its_answer() -> None:
    for path in PYTHON.glob("retain_client/api/api/*/[!_]*.py"):
        module = path.read_text()
        ids = re.search(r'"url": "[^"]*"\.format\((.*)\)', module)
        assert ids is None or re.fullmatch(r"(?:\w+=path_part\(\w+\),)+", ids[1]), path
        assert module.count("@reading\ndef _build_response(") == 1, path


def test_what_was_made_from_something_else_is_made_again_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert generate() == []
    # Notes of its own: tests in other processes generate at any time.
    noted = shutil.copytree(ROOT / ".cache" / "clients", tmp_path / "clients")
    monkeypatch.setattr(importlib.import_module("tools.clients.generate"), "_CURRENT", noted)
    changed = PYTHON / "retain_client" / "synchronous"
    (noted / changed.name).write_text("the digest of another source")
    assert generate() == [changed]
    assert generate() == []


def test_the_types_of_the_python_client_fit_the_document_and_those_of_its_readme_fit_it(tmp_path: Path) -> None:
    readme = tmp_path / "readme.py"
    readme.write_text("".join(page("clients/python/README.md").blocks("python")))
    checked = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "retain_client", str(readme)]
    done = subprocess.run(checked, cwd=PYTHON, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_importing_the_python_client_reads_only_the_models_that_it_needs() -> None:
    script = (
        "import sys, retain_client; print(sum(name.startswith('retain_client.api.models.') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=PYTHON, capture_output=True, text=True, check=True)
    written = len(list(PYTHON.glob("retain_client/api/models/*.py")))
    assert int(done.stdout) < written / 2
    named = "from retain_client.api.models import Drift; print(Drift.__name__)"
    done = subprocess.run([sys.executable, "-c", named], cwd=PYTHON, capture_output=True, text=True, check=True)
    assert done.stdout == "Drift\n"


def test_the_synchronous_client_waits_for_nothing() -> None:
    text = synchronous("async def f() -> AsyncIterator[int]:\n    async for x in await AsyncRuns(h).aclose(): ...\n")
    assert text == "def f() -> Iterator[int]:\n    for x in Runs(h).close(): ...\n"
    for path in sorted(Path(PYTHON / "retain_client" / "synchronous").glob("*.py")):
        assert not re.search(r"\b(async|await|Async\w+|Awaitable|asyncio\w*)\b", path.read_text()), path.name


def test_the_typescript_client_is_tried_with_the_packages_that_it_names() -> None:
    named = json.loads((TYPESCRIPT / "package.json").read_text())["dependencies"]
    tried = json.loads((ROOT / "package.json").read_text())["devDependencies"]
    assert named == {"openapi-fetch": tried["openapi-fetch"]}


def test_the_package_is_made_by_a_user_without_a_home_and_a_failure_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\ncase "$*" in *--silent*) ;; *) echo "npm error: $*" ;; esac; exit 1\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(build, "compile_typescript", lambda _: None)
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    with pytest.raises(SystemExit, match=rf"npm error: pack .*--cache={CACHE}"):
        build.build(tmp_path / "built")
