"""Rules of the house that a program can check and no other tool does."""

from __future__ import annotations

import re
from pathlib import Path

from tools.http_docs import PAGE
from tools.paths import ROOT, project_files

_WRITTEN_BY_HAND = {".py", ".js", ".mjs", ".sql", ".md", ".yaml", ".toml"}
_MAX_LINES = 600
# Home folders and mount points: what such a path names exists on one machine only.
_ON_ONE_MACHINE = re.compile(rb"(?<![\w.~$})-])/(?:home|Users|root|work|mnt|media|srv)/\w|\b[A-Z]:\\\\?Users\b")


def test_no_file_has_more_than_600_lines() -> None:
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for path in project_files()
        if path.suffix in _WRITTEN_BY_HAND and path != PAGE and (lines := path.read_bytes().count(b"\n")) > _MAX_LINES
    }
    assert long == {}


def test_no_file_holds_an_absolute_path_of_a_machine() -> None:
    here = [str(ROOT).encode(), str(Path.home()).encode() + b"/"]
    found = [
        path.relative_to(ROOT).as_posix()
        for path in project_files()
        if (content := path.read_bytes())
        and (_ON_ONE_MACHINE.search(content) or any(place in content for place in here))
    ]
    assert found == []
