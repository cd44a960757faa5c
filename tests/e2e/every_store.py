"""Every row of every store that the local server keeps on disk, for a search of what must not be there."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path


def places(root: Path, sought: str) -> set[str]:
    """Return the tables and files that contain a text in any case, as `<store>/<table>`. root: of the local state.

    The server's own record of requests (`observability`) is not a store.
    """
    wanted = sought.lower().encode()
    found: set[str] = set()
    for path in sorted(path for kind in ("d1", "kv", "r2", "do") for path in (root / "v3" / kind).rglob("*")):
        if path.suffix == ".sqlite":
            found |= {f"{_store(root, path)}/{table}" for table, value in _values(path) if wanted in value.lower()}
        elif "blobs" in path.parts and path.is_file() and wanted in path.read_bytes().lower():
            found.add(f"{_store(root, path)}/blobs")
    return found


def _store(root: Path, path: Path) -> str:
    kind, *names = path.relative_to(root / "v3").parts
    return kind if kind != "do" else f"do:{names[0]}"


def _values(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the text and bytes of every row, with the table's name. Virtual tables are read in their own tables."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as database:
        database.text_factory = bytes
        tables = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        for (name,) in tables:
            for row in database.execute(f'SELECT * FROM "{name.decode()}"'):
                for value in row:
                    if isinstance(value, bytes):
                        yield name.decode(), value
