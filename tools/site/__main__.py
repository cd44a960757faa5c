"""Build the site into `.cache/site`. A warning fails the build."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.paths import CACHE, ROOT
from tools.site.pages import staged_pages
from tools.site.reference import reference_pages

SOURCE = CACHE / "site-source"
SITE = CACHE / "site"


def build() -> int:
    """Stage the pages and build them with Sphinx. Returns its exit code."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    for name, text in {**staged_pages(), **reference_pages()}.items():
        path = SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for picture in (ROOT / "docs").glob("*.svg"):
        shutil.copy(picture, SOURCE / "docs")
    configuration = Path(__file__).parent
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going"]
    return subprocess.run([*command, "-c", str(configuration), str(SOURCE), str(SITE)], check=False).returncode


if __name__ == "__main__":
    code = build()
    if code == 0:
        print(SITE / "index.html")
    sys.exit(code)
