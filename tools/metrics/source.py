"""The Python files that are measured: those of the working tree, or those of a commit."""

from __future__ import annotations

import ast
import io
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from tools.paths import ROOT

CODE = ("workers", "durable_objects")
"""The folders with the code that runs in production."""

TESTS = ("tests",)


@dataclass(frozen=True)
class SourceFile:
    """One Python file."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> int:
        """The number of its lines."""
        return len(self.text.splitlines())

    @property
    def module(self) -> str:
        """The dotted name by which other files import it."""
        folders = self.path.parts[1:] if self.path.parts[0] == "workers" else self.path.parts
        dotted = ".".join(PurePosixPath(*folders).with_suffix("").parts)
        return dotted.removesuffix(".__init__")


@dataclass(frozen=True)
class SourceTree:
    """The Python files of one state of the project."""

    code: tuple[SourceFile, ...]
    tests: tuple[SourceFile, ...]

    @classmethod
    def of(cls, files: Mapping[str, str]) -> SourceTree:
        """Return the tree of these files, given as path and text; files that are neither code nor tests are left out."""
        read = [SourceFile(PurePosixPath(path), text) for path, text in sorted(files.items())]

        def below(folders: tuple[str, ...]) -> tuple[SourceFile, ...]:
            return tuple(file for file in read if file.path.parts[0] in folders and file.path.suffix == ".py")

        return cls(below(CODE), below(TESTS))


def working_tree(root: Path = ROOT) -> SourceTree:
    """Read the files as they are on disk."""
    paths = [path for folder in CODE + TESTS for path in (root / folder).rglob("*.py")]
    return SourceTree.of({path.relative_to(root).as_posix(): path.read_text() for path in paths})


def at_commit(commit: str, root: Path = ROOT) -> SourceTree:
    """Read the files as they were at a commit.

    Raises:
        CalledProcessError: git does not know the commit, as in a shallow clone.
    """
    archive = subprocess.run(
        ["git", "archive", "--format=tar", commit], cwd=root, capture_output=True, check=True
    ).stdout
    files: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.name.endswith(".py") and (content := tar.extractfile(member)) is not None:
                files[member.name] = content.read().decode()
    return SourceTree.of(files)
