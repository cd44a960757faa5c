"""The Makefile and the documentation name the same targets."""

from __future__ import annotations

import re
import subprocess

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


def test_every_target_is_documented() -> None:
    assert _listed() <= set().union(*map(_named, pages()))
