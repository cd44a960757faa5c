"""ARCHITECTURE.md is the map: what it names exists, and it names every area of the library."""

from __future__ import annotations

import re

from tests.docs.markdown import page, spans
from tools.paths import ROOT, project_files

_LIBRARY = ROOT / "workers" / "retain"
_PATH = re.compile(r"\.?[a-z][a-z0-9_./]*(?:/|\.py|\.toml)")


def test_each_file_and_folder_that_the_map_names_exists() -> None:
    files = [path.relative_to(ROOT) for path in project_files()]
    known = {f"/{one.as_posix()}" for file in files for one in (file, *file.parents)}
    named = {name for name in spans(page("ARCHITECTURE.md").prose) if _PATH.fullmatch(name)}
    assert named
    assert [name for name in sorted(named) if not any(one.endswith(f"/{name.rstrip('/')}") for one in known)] == []


def test_each_area_of_the_library_is_on_the_map() -> None:
    areas = {path.parent.name for path in _LIBRARY.glob("*/__init__.py")}
    named = {
        name.removeprefix("workers/retain/")
        for name in spans(page("ARCHITECTURE.md").text.partition("\n## Folders\n")[2])
    }
    assert [area for area in sorted(areas) if f"{area}/" not in named] == []
