"""The schema of a Durable Object's SQLite: brought up to date when the object is first called by newer code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from retain.errors import Misconfigured
from retain.ports import ObjectSql

Step = Sequence[str]
"""The statements that lead from one version to the next."""

_VERSION = (
    "CREATE TABLE IF NOT EXISTS schema_version (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL)"
)


def migrate(local: ObjectSql, steps: Sequence[Step]) -> None:
    """Apply the steps that the object has not had, in one transaction. A version is the number of steps.

    The first step must suit an object from before versions were kept.
    Raises: Misconfigured (code `newer_object`) for an object that newer code has migrated; nothing is changed.
    """
    local.run(_VERSION)
    rows = local.run("SELECT version FROM schema_version").rows
    version = int(rows[0]["version"]) if rows else 0
    if version > len(steps):
        raise Misconfigured(
            f"the object has schema {version}, and this Worker knows {len(steps)}: deploy the newer Worker again",
            code="newer_object",
        )
    if version == len(steps):
        return

    def apply() -> None:
        noted = f"INSERT OR REPLACE INTO schema_version VALUES (1, {len(steps)})"  # noqa: S608
        local.script([*chain.from_iterable(steps[version:]), noted])

    local.atomically(apply)
