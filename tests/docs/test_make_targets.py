"""The Makefile and the documentation name the same targets."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import Page, pages
from tests.docs.shell import make_environment
from tools.paths import ROOT

_NAMED = re.compile(r"\bmake ([a-z][a-z-]*)")


def _listed() -> set[str]:
    done = subprocess.run(
        ["make", "help"], cwd=ROOT, env=make_environment(), capture_output=True, text=True, check=True
    )
    return {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")}


def _named(page: Page) -> set[str]:
    return {target for code in page.code() for target in _NAMED.findall(code)}


def test_make_help_lists_every_target_of_the_makefile() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert _listed() == set(phony[1].split())


@pytest.mark.parametrize("page", [page for page in pages() if _named(page)], ids=lambda page: page.name)
def test_every_target_that_a_page_names_exists(page: Page) -> None:
    assert _named(page) <= _listed()


def test_an_old_python_is_refused_before_an_environment_is_made(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "dev.txt").touch()
    old = tmp_path / "python3.10"
    old.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'import sys; sys.version_info = (3, 10, 4); exec(sys.argv[1])' \"$2\"\n"
    )
    old.chmod(0o755)
    command = ["make", ".venv/.ready", f"PYTHON={old}"]
    done = subprocess.run(command, cwd=tmp_path, env=make_environment(), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"Retain needs Python 3.11 or newer, and {old} is 3.10" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_every_target_is_documented() -> None:
    assert _listed() <= set().union(*map(_named, pages()))
