"""The Retain project around the working directory: a folder with the Worker's configuration, its agents and its tools."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from retain.errors import Misconfigured
from retain.errors.codes import ForeignCode

_MARKS = ("wrangler.toml", "tools/stage.py")
_VARIABLE = re.compile(
    r"""^\s*(?:export\s+)?([A-Za-z0-9_.-]+)(?:\s*=\s*?|:\s+?)"""
    r"""(\s*'(?:\\'|[^'])*'|\s*"(?:\\"|[^"])*"|\s*`(?:\\`|[^`])*`|[^#\n]+)?\s*(?:#.*)?$""",
    re.MULTILINE,
)
"""A variable in a file: a value in quotes, which may have several lines, or one that ends with its line or with a `#`.

Source: https://github.com/motdotla/dotenv/blob/v16.4.7/lib/main.js
"""


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


def variables_of(text: str) -> dict[str, str]:
    """Return the variables in the text of a `.dev.vars`, as wrangler reads it: the last value of a name counts."""
    return {name: _without_quotes(value.strip()) for name, value in _VARIABLE.findall(text)}


def _without_quotes(value: str) -> str:
    if len(value) < 2 or value[0] != value[-1] or value[0] not in "'\"`":
        return value
    return value[1:-1].replace("\\n", "\n").replace("\\r", "\r") if value[0] == '"' else value[1:-1]
