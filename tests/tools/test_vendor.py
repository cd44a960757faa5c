from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools import vendor as module
from tools.vendor import vendor


@dataclass
class Pip:
    """What stands in for pip: it installs a package with what a wheel carries, or fails."""

    commands: list[Sequence[str]] = field(default_factory=list)
    fails: bool = False

    def run(self, command: Sequence[str], *, check: bool) -> None:
        """Install."""
        assert check
        self.commands.append(command)
        [target] = [Path(part.removeprefix("--target=")) for part in command if part.startswith("--target=")]
        for name in (
            "package/__init__.py",
            "package/stubs.pyi",
            "package/__pycache__/module.pyc",
            "package-1.dist-info/METADATA",
            "package-1.dist-info/licenses/LICENSE",
            "bin/package",
        ):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_text(str(len(self.commands)))
        if self.fails:
            raise subprocess.CalledProcessError(1, command)


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock of a checkout in which nothing is vendored."""
    path = tmp_path / "worker.txt"
    path.write_text("package==1 --hash=sha256:00\n")
    monkeypatch.setattr(module, "LOCK", path)
    monkeypatch.setattr(module, "TARGET", tmp_path / "python_modules")
    return path


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Pip:
    """What stands in for pip."""
    stand_in = Pip()
    monkeypatch.setattr(subprocess, "run", stand_in.run)
    return stand_in


def files(folder: Path) -> set[str]:
    """Return the names of the files below the folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_lock_s_packages_are_installed_without_what_the_worker_does_not_need(lock: Path, pip: Pip) -> None:
    assert vendor()
    target = lock.with_name("python_modules")
    assert files(target) == {
        "package/__init__.py",
        "package-1.dist-info/METADATA",
        "package-1.dist-info/licenses/LICENSE",
        "pyvenv.cfg",
        ".lock-sha256",
    }
    assert (target / "pyvenv.cfg").read_text() == ""


def test_pip_takes_only_wheels_of_the_worker_s_platform_whose_hashes_the_lock_names(lock: Path, pip: Pip) -> None:
    vendor()
    [command] = pip.commands
    assert {"--require-hashes", "--no-deps", "--only-binary=:all:", f"--requirement={lock}"} <= set(command)
    assert [part for part in command if part.startswith("--platform=")] == ["--platform=pyemscripten_2026_0_wasm32"]


def test_what_is_vendored_is_not_vendored_again_until_the_lock_changes(lock: Path, pip: Pip) -> None:
    assert vendor()
    assert not vendor()
    lock.write_text("package==2 --hash=sha256:11\n")
    assert vendor()
    assert not vendor()
    target = lock.with_name("python_modules")
    assert (target / "package" / "__init__.py").read_text() == "2"
    assert (target / ".lock-sha256").read_text() == hashlib.sha256(lock.read_bytes()).hexdigest()


def test_an_installation_that_fails_leaves_what_was_there_and_is_tried_again(lock: Path, pip: Pip) -> None:
    vendor()
    lock.write_text("package==2 --hash=sha256:11\n")
    pip.fails = True
    with pytest.raises(subprocess.CalledProcessError):
        vendor()
    target = lock.with_name("python_modules")
    assert (target / "package" / "__init__.py").read_text() == "1"
    pip.fails = False
    assert vendor()
    assert (target / "package" / "__init__.py").read_text() == "3"
    assert not target.with_name("python_modules.partial").exists()
