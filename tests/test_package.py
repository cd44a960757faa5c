"""A wheel of the project holds the library and nothing else, and a program that embeds it runs in an empty environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import retain
from tests.docs.test_library import first_program
from tools.paths import ROOT, project_files

_ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def _pip(python: Path | str, *arguments: str, cwd: Path) -> None:
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, cwd=cwd, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a clean copy of the project by the locked backend."""
    folder = tmp_path_factory.mktemp("wheel")
    for path in project_files():
        copy = folder / "clone" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    _pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "built", "./clone", cwd=folder)
    [built] = (folder / "built").iterdir()
    return built


def test_the_wheel_holds_the_library_and_not_the_workers_shell(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = message_from_bytes(archive.read(f"retain-{retain.__version__}.dist-info/METADATA"))
        scripts = archive.read(f"retain-{retain.__version__}.dist-info/entry_points.txt").decode()
    library = {path.relative_to(ROOT / "workers").as_posix() for path in (ROOT / "workers/retain").rglob("*.py")}
    schema = {f"retain/host/shipped/migrations/{path.name}" for path in (ROOT / "migrations").glob("*.sql")}
    data = {"retain/py.typed", "retain/host/shipped/static-minilm-256-i8.bin"}
    assert {name for name in names if ".dist-info/" not in name} == library | schema | data
    assert metadata["Version"] == retain.__version__
    assert "retain = retain.cli.command:main" in scripts
    assert {name.rpartition("/")[2] for name in names if "/licenses/" in name} == {"LICENSE", "NOTICE.md"}


def test_the_version_is_written_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    assert f"\n## {retain.__version__} " in (ROOT / "CHANGELOG.md").read_text(), "the changelog has the version"


@pytest.mark.timeout(300)
def test_the_first_program_of_the_documentation_runs_with_the_wheel_in_an_empty_environment(
    wheel: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty" / "bin" / "python"
    _pip(sys.executable, f"--python={python}", "install", f"{wheel}[host]", cwd=tmp_path)
    (tmp_path / "first.py").write_text(first_program())
    done = subprocess.run(
        [python, "first.py"], cwd=tmp_path, env=_ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "Ana must not eat peanuts.\n", done.stderr
    shipped = subprocess.run(
        [python, "-c", "from retain.host.shipped import migrations; import httpx, cryptography; print(migrations())"],
        cwd=tmp_path,
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    version = subprocess.run(
        [python.with_name("retain"), "--version"], env=_ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert version.stdout == f"retain {retain.__version__}\n", "the command needs its extra only for its subcommands"
    assert Path(shipped.stdout.strip()).is_relative_to(tmp_path / "empty")
