"""The files of the project, in a clone and in an archive of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.paths import project_files


def test_an_archive_has_the_files_of_a_clone(tmp_path: Path) -> None:
    for name in ("docs/b c.md", "a.py", "build/made.py", ".gitignore"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("build/\n")
    files = [tmp_path / name for name in (".gitignore", "a.py", "docs/b c.md")]
    assert project_files(tmp_path) == files
    assert not (tmp_path / ".git").exists()
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    assert project_files(tmp_path) == files
