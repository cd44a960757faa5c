"""Modules of a staged Worker, changed for a test."""

from __future__ import annotations

from pathlib import Path

from tools.bytecode import cached


def add_to(module: Path, text: str) -> None:
    """Add text to a staged module, whose bytecode is of what it was and would be taken instead."""
    module.write_text(module.read_text() + text)
    (module.parent / cached(module.name)).unlink(missing_ok=True)
