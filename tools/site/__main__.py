"""Build the site into `.cache/site`. A warning fails the build."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.paths import CACHE, ROOT
from tools.site.pages import shown_pictures, staged_pages
from tools.site.reference import reference_pages

SOURCE = CACHE / "site-source"
SITE = CACHE / "site"


def build() -> int:
    """Stage the pages and build them with Sphinx. Returns its exit code."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    stage({**staged_pages(), **reference_pages()}, SOURCE)
    configuration = Path(__file__).parent
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going"]
    return subprocess.run([*command, "-c", str(configuration), str(SOURCE), str(SITE)], check=False).returncode


def stage(pages: Mapping[str, str], source: Path) -> None:
    """Write the pages into a folder, with the pictures that they show."""
    for name, text in pages.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for picture in shown_pictures(pages):
        (source / picture).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / picture, source / picture)


if __name__ == "__main__":
    code = build()
    if code == 0:
        print(SITE / "index.html")
    sys.exit(code)
