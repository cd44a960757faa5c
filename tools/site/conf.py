"""Configuration of Sphinx."""

from __future__ import annotations

from typing import Any

from pygments.lexers.special import TextLexer

from retain.version import __version__
from tools.site.docstrings import as_rst

project = "Retain"
author = "the Retain contributors"
copyright = "the Retain contributors"  # noqa: A001 -- Sphinx's name
version = release = __version__
extensions = ["sphinx.ext.autodoc", "myst_parser", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = f"Retain {release}"
root_doc = "index"

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
suppress_warnings = ["myst.header"]

autodoc_default_options = {"members": True, "member-order": "bysource", "ignore-module-all": True}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True


def _docstring(_app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    lines[:] = as_rst(lines)


def setup(app: Any) -> None:
    """Register how docstrings are read, and show the steps in a browser (docs/support-chat.md) as text."""
    app.add_lexer("browser", TextLexer)
    app.connect("autodoc-process-docstring", _docstring)
