"""Retain on the local server, staged once: a file that somebody saves while the tests run does not restart it."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.docs.markdown import page
from tests.support.contract import check_exchange
from tools.local_config import shards_wanted, write_local_config
from tools.local_server import LocalServer, start, stop
from tools.paths import ROOT
from tools.public_files import folder_of, public_files
from tools.stage import mirror, read_config, wanted_files, with_compiled

one_database = pytest.mark.skipif(shards_wanted() > 1, reason="it reads the only database")
"""Marks a test that is about one database, where $RETAIN_SHARDS says that there are several."""


_OF_A_PROCESS = re.compile(r"(?:\.build-|wrangler\.)[a-z0-9-]+-(\d+)(?:-public|\.local\.json)?")


@contextmanager
def staged(
    name: str, overrides: Mapping[str, str] | None = None, packages: Sequence[str] = (), shards: int | None = None
) -> Iterator[Path]:
    """Stage the Worker with these variables and yield the configuration that serves it; remove both at the end.

    name: part of the files' names, with the process's number, so that two test sessions do not share them. packages: of
    this environment, which function tools of the tests import. shards: how many databases it has; None for as many as
    $RETAIN_SHARDS says, or one.
    """
    config = ROOT / f"wrangler.{name}-{os.getpid()}.local.json"
    target = ROOT / f".build-{name}-{os.getpid()}"
    remove_leftovers(ROOT)
    try:
        write_local_config(config, overrides={"ALLOW_MODEL_REQUESTS": "false", **(overrides or {})}, shards=shards)
        content = read_config(config)
        del content["build"]
        content["main"] = f"{target.name}/entry.py"
        content["assets"]["directory"] = folder_of(target).name
        content["rules"].append({"type": "Data", "globs": ["**/*.pem"], "fallthrough": True})
        config.write_text(json.dumps(content, indent=2) + "\n")
        with tempfile.TemporaryDirectory() as folder:
            staged = wanted_files(content, _agents(Path(folder))) | _package_files(packages)
            mirror(with_compiled(staged, compiled=False), target)
        mirror(public_files(), folder_of(target))
        yield config
    finally:
        config.unlink(missing_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        shutil.rmtree(folder_of(target), ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what was staged by processes that were killed and so did not remove it."""
    for path in folder.iterdir():
        named = _OF_A_PROCESS.fullmatch(path.name)
        if named is None or _is_alive(int(named[1])):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _package_files(packages: Sequence[str]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for name in packages:
        [folder] = importlib.import_module(name).__path__
        kept = [path for path in Path(folder).rglob("*") if path.suffix in (".py", ".pem")]
        files |= {f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in kept}
    return files


def _agents(folder: Path) -> Path:
    """Return the folder, with the shipped agents, those of the tests, and the one that the README adds."""
    for source in (ROOT / "agents", Path(__file__).with_name("agents")):
        shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for added in page("README.md").blocks("yaml"):
        (folder / added.splitlines()[0].removeprefix("# agents/")).write_text(added)
    return folder


@contextmanager
def serving(state: Path, config: Path) -> Iterator[LocalServer]:
    """Serve a staged configuration on a migrated state until the block ends."""
    server = start(state, config=config)
    try:
        yield server
    finally:
        stop(server)


def client_of(server: LocalServer) -> httpx.Client:
    """Return a client of the server, to be closed. It holds the server to its document.

    Each request has a connection of its own.
    The server may close a kept connection in the moment in which it is used again.
    """
    return httpx.Client(
        base_url=server.base_url,
        timeout=60,
        trust_env=False,
        limits=httpx.Limits(max_keepalive_connections=0),
        event_hooks={"response": [check_exchange]},
    )
