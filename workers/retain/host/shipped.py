"""The files that ship with the library: D1's schema and the local embedding table.

In a wheel they are in this package; in a checkout they are in the folders that the Worker's build reads.
"""

from __future__ import annotations

from pathlib import Path

from retain.errors import Misconfigured

_TABLE = "static-minilm-256-i8.bin"
_IN_THE_WHEEL = Path(__file__).with_name("shipped")
_CHECKOUT = Path(__file__).parents[3]


def migrations() -> Path:
    """Return the folder of D1's migrations, for `SqliteSql.migrate`. Raises: Misconfigured (code `file_missing`)."""
    return _existing(_IN_THE_WHEEL / "migrations", _CHECKOUT / "migrations")


def embedding_table() -> Path:
    """Return the file of the local embedding table, for `StaticEmbedder`. Raises: Misconfigured (code `file_missing`)."""
    return _existing(_IN_THE_WHEEL / _TABLE, _CHECKOUT / "models" / _TABLE)


def _existing(*places: Path) -> Path:
    for place in places:
        if place.exists():
            return place
    raise Misconfigured(f"{places[0].name} is missing from the installation", code="file_missing")
