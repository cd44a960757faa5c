"""The migrations as lists of statements, which the nodes of a cluster apply."""

from __future__ import annotations

from pathlib import Path

from retain.host.sql import split_statements


def migration_list(folder: Path) -> list[dict[str, str | list[str]]]:
    """Return the migrations in their order, each as `{"name", "statements"}`."""
    return [
        {"name": path.name, "statements": list(split_statements(path.read_text()))}
        for path in sorted(folder.glob("*.sql"))
    ]
