"""The documentation site holds every page with its links, and a reference of every module; docstrings stay as written."""

from __future__ import annotations

from pathlib import Path

import pytest

import retain
from tools.metrics.source import working_tree
from tools.paths import ROOT
from tools.site.__main__ import stage
from tools.site.docstrings import as_rst
from tools.site.pages import staged_pages, with_links
from tools.site.reference import reference_pages


def test_every_page_of_the_documentation_is_in_the_tree_of_the_site() -> None:
    index = staged_pages()["index.md"].split()
    assert {page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")} <= set(index)


def test_every_picture_that_a_page_shows_is_on_the_site(tmp_path: Path) -> None:
    stage(
        {"docs/console.md": (ROOT / "docs/console.md").read_text(), "docs/here.md": "![x](../docs/imports.svg)"},
        tmp_path,
    )
    console = {path.name for path in (ROOT / "docs/console").iterdir()}
    assert {path.name for path in (tmp_path / "docs/console").iterdir()} == console
    assert (tmp_path / "docs/imports.svg").read_bytes() == (ROOT / "docs/imports.svg").read_bytes()


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        pytest.param("[m](memory.md)", "[m](../docs/memory.md)", id="a page"),
        pytest.param("[m](memory.md#scopes)", "[m](../docs/memory.md#scopes)", id="an anchor"),
        pytest.param("[d](decisions/)", "[d](../docs/decisions/README.md)", id="a folder"),
        pytest.param("[up](../README.md)", "[up](../README.md)", id="a page of the root"),
        pytest.param("[code](../wrangler.toml)", "code", id="a file that is not a page"),
        pytest.param("[x](https://example.com/a.md)", "[x](https://example.com/a.md)", id="an address"),
        pytest.param("```\n[m](x.md)\n```", "```\n[m](x.md)\n```", id="code"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site_or_becomes_text(link: str, expected: str) -> None:
    pages = {"docs/memory.md", "docs/decisions/README.md", "README.md"}
    assert with_links("docs/here.md", link, pages) == expected


def test_the_reference_names_every_public_name_and_every_module() -> None:
    pages = reference_pages()
    assert all(f":: retain.{name}\n" in pages["reference/index.rst"] for name in retain.__all__ if name[0] != "_")
    text = "\n".join(pages.values())
    modules = [file.module for file in working_tree().code if file.module.startswith("retain.")]
    public = [name for name in modules if not name.rpartition(".")[2].startswith("_")]
    assert [name for name in public if f".. automodule:: {name}\n" not in text] == []


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        pytest.param("Give `x_` *all* it_ needs.", r"Give ``x_`` \*all\* it\_ needs.", id="marks and code"),
        pytest.param("One\nline.", "One line.", id="a paragraph"),
        pytest.param("First.\n\nRaises: A (code `b`).", "First.\n\n**Raises:** A (code ``b``).", id="a section"),
        pytest.param("Two:\n- a\n- b", "Two:\n\n- a\n\n- b", id="a list"),
        pytest.param("So:\n\n    code * 2", "So:\n\n::\n\n    code * 2", id="an example"),
    ],
)
def test_a_docstring_is_shown_as_it_is_written(docstring: str, expected: str) -> None:
    rst = "\n".join(as_rst(docstring.splitlines())).strip()
    assert [line.rstrip() for line in rst.splitlines() if line.strip()] == [
        line for line in expected.splitlines() if line.strip()
    ]
