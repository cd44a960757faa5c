"""The pages of the API reference: the public names, then a page for each package with all of its modules."""

from __future__ import annotations

from collections import defaultdict

import retain
from tools.metrics.source import working_tree

_HEAD = """API reference
=============

.. module:: retain
   :no-index:

The public names
----------------

A program needs only these; :doc:`/docs/library` shows them at work. They are stable within a minor version.

{names}

The packages
------------

The following is everything else, for developers of Retain. It may change in any release.

.. toctree::
   :maxdepth: 1

{pages}
"""


def reference_pages() -> dict[str, str]:
    """Return the pages in reStructuredText, by path."""
    packages: dict[str, list[str]] = defaultdict(list)
    for file in working_tree().code:
        parts = file.module.split(".")
        if parts[0] == "retain" and len(parts) > 1 and not parts[-1].startswith("_"):
            packages[parts[1]].append(file.module)
    pages = {f"reference/{name}.rst": _page(name, modules) for name, modules in packages.items()}
    names = "\n\n".join(
        f".. auto{_directive(name)}:: retain.{name}\n   :no-index:" for name in retain.__all__ if name != "__version__"
    )
    index = _HEAD.format(names=names, pages="\n".join(f"   {name}" for name in sorted(packages)))
    return {**pages, "reference/index.rst": index}


def _directive(name: str) -> str:
    value = getattr(retain, name)
    if isinstance(value, type):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else "data"


def _page(package: str, modules: list[str]) -> str:
    title = f"retain.{package}"
    parts = [f"{title}\n{'=' * len(title)}"]
    for module in sorted(modules):
        if module != title:
            parts.append(f"{module}\n{'-' * len(module)}")
        parts.append(f".. automodule:: {module}")
    return "\n\n".join([*parts, ""])
