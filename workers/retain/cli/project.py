"""The Retain project around the working directory: a folder with the Worker's configuration, its agents and its tools."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from retain.errors import Misconfigured
from retain.errors.codes import ForeignCode

_MARKS = ("wrangler.toml", "tools/stage.py")


@dataclass(frozen=True, slots=True)
class Project:
    """A checkout of Retain. root: an absolute path."""

    root: Path

    @property
    def production_config(self) -> Path:
        """The configuration that is deployed."""
        return self.root / "wrangler.toml"

    @property
    def local_config(self) -> Path:
        """The configuration that `retain dev` derives from it."""
        return self.root / "wrangler.local.json"

    @property
    def local_secrets(self) -> Path:
        """The secrets of the local server. Never uploaded."""
        return self.root / ".dev.vars"

    @property
    def node_bin(self) -> Path:
        """The folder with wrangler's executable."""
        return self.root / "node_modules" / ".bin"

    @property
    def agents(self) -> Path:
        """The folder of agent definitions."""
        return self.root / "agents"

    @property
    def datasets(self) -> Path:
        """The folder of evaluation datasets."""
        return self.root / "evals"

    def import_tools(self) -> None:
        """Make the project's own `tools` importable. Idempotent."""
        if str(self.root) not in sys.path:
            sys.path.insert(0, str(self.root))


def surrounding_project(start: Path | None = None) -> Project | None:
    """Return the project that contains the folder `start`, or None. start: None for the working directory."""
    folder = (start or Path.cwd()).resolve()
    for root in (folder, *folder.parents):
        if all((root / mark).is_file() for mark in _MARKS):
            return Project(root)
    return None


def require_project(start: Path | None = None) -> Project:
    """Return the project that contains the folder `start`. Raises: Misconfigured (code `no_project`)."""
    project = surrounding_project(start)
    if project is None:
        raise Misconfigured(
            "run this inside a Retain project: a folder with wrangler.toml and tools/, as a clone of Retain is",
            code=ForeignCode("no_project"),
        )
    return project
