"""Bytecode of the Worker's modules: it is made from their content, and the real workerd takes it instead of their source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_worker import answer_of
from tools import bytecode, precompile, recorded_imports
from tools.bytecode import MAIN, TAG, cached, kept_at, with_bytecode
from tools.paths import PRODUCTION_CONFIG
from tools.stage import read_config, stage, wanted_files
from tools.worker_modules import python_packages

_ENTRY = b"""
from workers import Response, WorkerEntrypoint

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        from package import earlier, plain, taken
        return Response(" ".join((taken.VALUE, earlier.VALUE, plain.VALUE)))
"""


@pytest.fixture
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a checkout in which nothing was compiled yet."""
    folder = tmp_path / "kept"
    monkeypatch.setattr(bytecode, "KEPT", folder)
    monkeypatch.setattr(recorded_imports, "KEPT", tmp_path / "methods")
    return folder


@pytest.mark.usefixtures("nothing_kept")
def test_modules_are_compiled_and_the_main_module_and_other_files_are_not() -> None:
    files = {MAIN: b"", "agents.json": b"{}", "own.py": b"A = 1\n", "package/__init__.py": b"", "package/deep.py": b""}
    assert with_bytecode(files, compiled=False) == files, "nothing is kept yet"
    compiled = with_bytecode(files, compiled=True)
    added = {f"__pycache__/own.{TAG}.pyc", *(f"package/__pycache__/{name}.{TAG}.pyc" for name in ("__init__", "deep"))}
    assert compiled.keys() - files.keys() == added
    assert {name: compiled[name] for name in files} == files
    assert with_bytecode(files, compiled=False) == compiled, "what is kept is used"


@pytest.mark.usefixtures("nothing_kept")
def test_what_was_compiled_from_another_content_is_not_used() -> None:
    with_bytecode({"package/own.py": b"A = 1\n"}, compiled=True)
    for changed in ({"package/own.py": b"A = 2\n"}, {"elsewhere/own.py": b"A = 1\n"}):
        assert with_bytecode(changed, compiled=False) == changed


def test_the_same_module_gives_the_same_bytecode(nothing_kept: Path) -> None:
    module = {"package/own.py": b"def known(word):\n    return word in {'one', 'two', 'three', 'four', 'five'}\n"}
    first = with_bytecode(module, compiled=True)
    kept_at("package/own.py", module["package/own.py"]).unlink()
    assert with_bytecode(module, compiled=True) == first
    assert len(list(nothing_kept.iterdir())) == 1, "and nothing else is left there"


@pytest.mark.usefixtures("nothing_kept")
def test_a_module_that_cannot_be_compiled_is_named() -> None:
    with pytest.raises(SystemExit, match=r"package/wrong\.py"):
        with_bytecode({"package/wrong.py": b"def (\n"}, compiled=True)


def test_setup_compiles_packages_and_forgets_what_earlier_sources_were_compiled_to(
    nothing_kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"package/own.py": b"A = 1\n", MAIN: b""}
    monkeypatch.setattr(precompile, "wanted_files", lambda _: own)
    packages = tmp_path / "python_modules"
    for name in ("library/__init__.py", "library/data.txt", f"library/__pycache__/removed.{TAG}.pyc", "pyvenv.cfg"):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text("")
    nothing_kept.mkdir()
    (nothing_kept / "earlier").write_bytes(b"")
    precompile.precompile(packages)
    found = {path.relative_to(packages).as_posix() for path in packages.rglob("*") if path.is_file()}
    assert found == {"library/__init__.py", "library/data.txt", cached("library/__init__.py"), "pyvenv.cfg"}
    assert {path.name for path in nothing_kept.iterdir()} == {
        kept_at("package/own.py", b"A = 1\n").name,
        kept_at("library/__init__.py", b"").name,
    }
    assert precompile.precompile(packages) == 0, "a second time nothing changes"


def test_what_is_deployed_has_the_bytecode_of_every_module(tmp_path: Path) -> None:
    config = read_config(PRODUCTION_CONFIG)
    stage(config, tmp_path / "built")
    modules = [name for name in wanted_files(config) if name.endswith(".py") and name != MAIN]
    assert len(modules) > 500
    assert [name for name in modules if not (tmp_path / "built" / cached(name)).exists()] == []
    packages = python_packages()
    assert [name for name in packages if _imported(name) and cached(name) not in packages] == []
    assert config["python_modules"]["exclude"] == [], "by default wrangler leaves bytecode out"


def _imported(name: str) -> bool:
    return name.endswith(".py") and not name.startswith("python_modules/pydantic/v1/")


@pytest.mark.workerd
@pytest.mark.usefixtures("nothing_kept")
def test_workerd_takes_bytecode_unless_it_is_of_another_version() -> None:
    files: dict[str, bytes] = {MAIN: _ENTRY, "package/__init__.py": b""}
    files |= {f"package/{name}.py": b"VALUE = 'source'\n" for name in ("taken", "earlier", "plain")}
    for name in ("taken", "earlier"):
        path = f"package/{name}.py"
        files[cached(path)] = with_bytecode({path: b"VALUE = 'bytecode'\n"}, compiled=True)[cached(path)]
    magic = files[cached("package/earlier.py")]
    files[cached("package/earlier.py")] = bytes([magic[0] ^ 1]) + magic[1:]
    assert answer_of("bytecode", files) == (200, "bytecode source source")
