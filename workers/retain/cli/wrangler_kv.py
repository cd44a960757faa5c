"""KV through wrangler: a deployment's, or the local server's."""

from __future__ import annotations

import builtins
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from retain.cli.project import Project
from retain.errors import Unavailable
from retain.errors.codes import ForeignCode
from retain.json_text import read_json
from retain.ports import KeyPage

_BULK_KEYS = 100
_FAILED = ForeignCode("wrangler_failed")
_VALUE = re.compile(r"^[\[{]", re.MULTILINE)

Run = Callable[[Sequence[str]], str]
"""Runs wrangler with these arguments and returns its standard output. Raises: Unavailable."""


def wrangler_of(project: Project) -> Run:
    """Return a function that runs the project's wrangler. It raises Unavailable (code `wrangler_failed`)."""

    def run(arguments: Sequence[str]) -> str:
        path = f"{project.node_bin}{os.pathsep}{os.environ['PATH']}"
        try:
            done = subprocess.run(
                [str(project.node_bin / "wrangler"), *arguments],
                env={**os.environ, "PATH": path, "WRANGLER_SEND_METRICS": "false"},
                cwd=project.root,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise Unavailable(f"wrangler cannot be run ({error}): `make setup` installs it", code=_FAILED) from error
        if done.returncode != 0:
            raise Unavailable(f"wrangler failed:\n{done.stderr or done.stdout}", code=_FAILED)
        return done.stdout

    return run


class WranglerKv:
    """Implements `retain.ports.Kv` with `wrangler kv`. where: the options that name the namespace."""

    def __init__(self, run: Run, where: Sequence[str]) -> None:
        self._run = run
        self._where = tuple(where)

    async def get(self, key: str) -> str | None:
        """Return the value, or None. See the port."""
        return (await self.values([key]))[key]

    async def values(self, keys: Sequence[str]) -> dict[str, str | None]:
        """Return the values of any number of keys."""
        # Not `key get`: for a missing key it prints a sentence as if that were the value.
        found: dict[str, str | None] = {}
        for start in range(0, len(keys), _BULK_KEYS):
            wanted = list(keys[start : start + _BULK_KEYS])
            with _private_file(json.dumps(wanted)) as file:
                answer = _json_in(self._run(["kv", "bulk", "get", file.name, *self._where]))
            found.update({key: (answer.get(key) or {}).get("value") for key in wanted})
        return found

    async def get_many(self, keys: Sequence[str]) -> builtins.list[str | None]:
        """Return the values of keys. See the port."""
        found = await self.values(keys)
        return [found[key] for key in keys]

    async def put(self, key: str, value: str, *, ttl_s: int | None = None) -> None:
        """Write the value. See the port."""
        lifetime = [] if ttl_s is None else ["--ttl", str(ttl_s)]
        # From a file: other users of the machine can read a command's arguments.
        with _private_file(value) as file:
            self._run(["kv", "key", "put", key, "--path", file.name, *lifetime, *self._where])

    async def delete(self, key: str) -> None:
        """Remove the key. See the port."""
        self._run(["kv", "key", "delete", key, *self._where])

    async def list(self, prefix: str, *, cursor: str | None = None, limit: int = 1000) -> KeyPage:
        """Return all keys that start with `prefix`: wrangler reads all pages. See the port."""
        listed = _json_in(self._run(["kv", "key", "list", "--prefix", prefix, *self._where]))
        names = [entry["name"] for entry in listed]
        rest = sorted(name for name in names if cursor is None or name > cursor)
        return KeyPage(rest[:limit], rest[limit - 1] if len(rest) > limit else None)


def _json_in(printed: str) -> Any:
    """Return the value that wrangler printed, after lines of its own. Raises: Unavailable when there is none."""
    for begun in _VALUE.finditer(printed):
        try:
            return read_json(printed[begun.start() :])
        except ValueError:
            continue
    raise Unavailable(f"wrangler printed no JSON:\n{printed}", code=_FAILED)


def _private_file(content: str) -> tempfile._TemporaryFileWrapper[str]:
    """Return an open temporary file that only this user can read."""
    file = tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8")  # noqa: SIM115 -- the caller closes it
    file.write(content)
    file.flush()
    return file
