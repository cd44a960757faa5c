"""The standard library of the local runtime: bytecode is added to it, and the real workerd takes it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.support.small_worker import answer_of
from tools.bytecode import MAIN
from tools.paths import ROOT
from tools.pyodide_bundle import LIBRARY_NAME
from tools.standard_library import with_bytecode

_ENTRY = b"""
import base64
import http.client
from workers import Response, WorkerEntrypoint

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        code = http.client.HTTPMessage.getallmatchingheaders.__code__
        return Response(" ".join((base64.__file__, http.client.__file__, code.co_filename)))
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of two modules and a file of data."""
    path = tmp_path / "library.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("package/", "")
        made.writestr("package/__init__.py", "A = 1\n")
        made.writestr("single.py", "B = 2\n")
        made.writestr("package/data.txt", "data")
    return path


def test_bytecode_is_next_to_the_modules_and_everything_else_stays(archive: Path, tmp_path: Path) -> None:
    made = with_bytecode(archive, tmp_path / "kept")
    with zipfile.ZipFile(made) as after, zipfile.ZipFile(archive) as before:
        assert after.testzip() is None
        assert set(after.namelist()) - set(before.namelist()) == {"package/__init__.pyc", "single.pyc"}
        assert {name: after.read(name) for name in before.namelist()} == {
            name: before.read(name) for name in before.namelist()
        }


def test_it_is_made_once_for_equal_content(archive: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    made = with_bytecode(archive, kept)
    before = made.stat().st_mtime_ns
    assert with_bytecode(archive, kept) == made
    assert made.stat().st_mtime_ns == before
    with zipfile.ZipFile(archive, "a") as more:
        more.writestr("third.py", "C = 3\n")
    assert with_bytecode(archive, kept) != made
    assert len(list(kept.iterdir())) == 2, "and nothing else is left there"


def test_a_library_that_cannot_be_compiled_is_not_kept(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "library.zip", "w") as made:
        made.writestr("wrong.py", "def (\n")
    with pytest.raises(SystemExit, match=r"wrong\.py"):
        with_bytecode(tmp_path / "library.zip", tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []


def test_every_module_of_pyodide_s_library_has_bytecode() -> None:
    made = with_bytecode(ROOT / "node_modules" / "pyodide" / LIBRARY_NAME, ROOT / ".cache" / "pyodide")
    with zipfile.ZipFile(made) as library:
        names = set(library.namelist())
    modules = [name for name in names if name.endswith(".py")]
    assert len(modules) > 500
    assert [name for name in modules if f"{name}c" not in names] == []


@pytest.mark.workerd
def test_workerd_takes_the_bytecode_of_the_library() -> None:
    folder = "/lib/python314.zip"
    taken = f"{folder}/base64.pyc {folder}/http/client.pyc {folder}/http/client.py"
    assert answer_of("standard-library", {MAIN: _ENTRY}) == (200, taken)
