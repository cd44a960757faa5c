"""The commands of a page's `sh` blocks, as a reader would paste them, and what `make` needs to run one."""

from __future__ import annotations

import os
import shlex

from tests.docs.markdown import Page


def commands(page: Page) -> list[str]:
    """Return the commands in order, each with the lines that its quotes and trailing backslashes take in.

    Comments are left out.
    """
    return [command for block in page.blocks("sh") for command in commands_in(block)]


def commands_in(block: str) -> list[str]:
    """Return the commands of one block, as `commands` does."""
    found: list[str] = []
    pending = ""
    for line in block.splitlines():
        pending += line + "\n"
        if line.endswith("\\"):
            continue
        try:
            words = shlex.split(pending, comments=True)
        except ValueError:  # a quote is still open
            continue
        if words:
            found.append(pending.strip())
        pending = ""
    assert not pending, f"a quote is never closed: {pending}"
    return found


def make_environment() -> dict[str, str]:
    """Return an environment for a `make` that is independent of `make test`: without its flags and its job server."""
    return {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
