"""A test session that is killed leaves what it staged; the next one removes it, and nothing of one that still runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.servers import remove_leftovers


def test_what_a_killed_session_staged_is_removed_and_what_others_need_stays(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for name in ("shards-trial", "e2e"):
        for process in (ended.pid, os.getpid()):
            for folder in (f".build-{name}-{process}", f".build-{name}-{process}-public"):
                (tmp_path / folder).mkdir()
                (tmp_path / folder / "entry.py").touch()
            (tmp_path / f"wrangler.{name}-{process}.local.json").touch()
    others = {".build", ".build-local", ".build-ports", "wrangler.toml", "wrangler.ports.local.json", "pyproject.toml"}
    for name in others:
        (tmp_path / name).touch()
    before = {path.name for path in tmp_path.iterdir()}

    remove_leftovers(tmp_path)

    assert before - {path.name for path in tmp_path.iterdir()} == {name for name in before if str(ended.pid) in name}
    assert (tmp_path / f".build-e2e-{os.getpid()}" / "entry.py").exists()
