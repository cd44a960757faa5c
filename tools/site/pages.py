"""The Markdown pages of the project, with the links that only a forge can follow turned into plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tools.paths import ROOT, project_files

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_LEFT_OUT = (".github/",)

INDEX = """# Retain

```{{include}} README.md
:start-line: 1
```

```{{toctree}}
:hidden:
:caption: Guide

{guide}
```

```{{toctree}}
:hidden:
:caption: Reference

reference/index
{project}
```

```{{toctree}}
:hidden:
:caption: Decisions

{decisions}
```
"""


def staged_pages(root: Path = ROOT) -> dict[str, str]:
    """Return the text of each page by its path, and the index."""
    listed = [path.relative_to(root).as_posix() for path in project_files(root) if path.suffix == ".md"]
    names = [name for name in listed if not name.startswith(_LEFT_OUT)]
    pages = {name: with_links(name, (root / name).read_text(), set(names), root) for name in names}
    # The index shows README.md, so that both addresses work; only the index is in the table of contents.
    guide = [name for name in names if PurePosixPath(name).parent == PurePosixPath("docs")]
    decisions = [name for name in names if name.startswith("docs/decisions/")]
    project = [name for name in names if name not in (*guide, *decisions)]
    return {
        **pages,
        "index.md": INDEX.format(
            guide="\n".join(sorted(guide, key=lambda name: (name != "docs/README.md", name))),
            project="\n".join(project),
            decisions="\n".join(sorted(decisions, reverse=True, key=lambda name: name.endswith("README.md")) or []),
        ),
    }


def shown_pictures(pages: Mapping[str, str], root: Path = ROOT) -> set[str]:
    """Return the paths of the project's pictures that the pages show."""
    return {
        (root / name).parent.joinpath(target).resolve().relative_to(root.resolve()).as_posix()
        for name, text in pages.items()
        for target in _PICTURE.findall(_FENCE.sub("", text))
        if "://" not in target
    }


def with_links(name: str, text: str, pages: set[str], root: Path = ROOT) -> str:
    """Return a page whose relative links lead to other pages; a link to a folder leads to its README."""

    def resolved(link: re.Match[str]) -> str:
        target, _, anchor = link["target"].partition("#")
        if "://" in target or target.startswith("mailto:") or not target:
            return link[0]
        path = (root / name).parent.joinpath(target).resolve()
        if path.is_dir():
            path /= "README.md"
        inside = path.relative_to(root.resolve()).as_posix() if path.is_relative_to(root.resolve()) else ""
        if inside not in pages:
            return link["text"]
        up = "../" * (len(PurePosixPath(name).parts) - 1)
        return f"[{link['text']}]({up}{inside}{'#' + anchor if anchor else ''})"

    return "".join(part if part.startswith("```") else _LINK.sub(resolved, part) for part in _FENCE.split(text))
