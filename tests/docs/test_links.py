"""Links between pages lead somewhere, and every page can be reached from the README."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown import Page, pages
from tools.paths import ROOT, project_files

_OWN_ENTRANCE = {"CHANGELOG.md"}
"""Pages that forges and package registries link automatically."""


def _relative_links(page: Page) -> list[tuple[Path, str]]:
    """Return the files that the page links, each with the anchor or ""."""
    found: list[tuple[Path, str]] = []
    for link in page.links():
        if "://" not in link and not link.startswith("mailto:"):
            path, _, anchor = link.partition("#")
            found.append(((page.path.parent / path).resolve() if path else page.path, anchor))
    return found


@pytest.mark.parametrize("page", [page for page in pages() if _relative_links(page)], ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file_and_an_anchor(page: Page) -> None:
    known = set(project_files())
    folders = {parent for path in known for parent in path.parents}
    for path, anchor in _relative_links(page):
        assert path in known | folders, f"{page.name} links {path}, which does not exist"
        if anchor:
            assert anchor in Page(path).anchors(), f"{page.name} links #{anchor} in {path.name}, which it lacks"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        path = ahead.pop()
        if path.is_dir():
            path /= "README.md"
        if path not in reached and path.suffix == ".md" and path.exists():
            reached.add(path)
            ahead += [target for target, _ in _relative_links(Page(path))]
    assert {page.name for page in pages()} - _OWN_ENTRANCE <= {path.relative_to(ROOT).as_posix() for path in reached}
