"""Writes that instances could not make: the rows of `outbox_failures`, each an entry of the error ledger as well.

The entry has ids and codes; the row has the write itself, with its texts, until it is replayed, dropped or too old.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from retain.ledgers.errors import ParkedError, Trouble, park
from retain.ports import Sql, Statement

_ROW = """
SELECT statement, error, failed_at_ms, length(CAST(parameters AS BLOB)) AS bytes FROM outbox_failures
WHERE instance_key = ? AND entry_id = ?
"""
_DROP = "DELETE FROM outbox_failures WHERE instance_key = ? AND entry_id = ?"
_MISSING = """
SELECT f.instance_key, f.entry_id, f.tenant_id, f.error, f.failed_at_ms FROM outbox_failures f WHERE NOT EXISTS (
  SELECT 1 FROM error_ledger e WHERE e.tenant_id = f.tenant_id AND e.stage = 'outbox'
    AND e.concerns = f.instance_key || '#' || f.entry_id)
ORDER BY f.failed_at_ms, f.instance_key, f.entry_id LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class PutAside:
    """A write that was put aside, without its texts. bytes: the length of its values."""

    statement: str
    code: str
    bytes: int
    failed_at_ms: int

    def to_json(self) -> dict[str, object]:
        """Return it as HTTP answers have it."""
        return asdict(self)


async def put_aside_for(sql: Sql, error: ParkedError) -> PutAside | None:
    """Return the write that an error of the stage `outbox` is about, None for another stage or when it is no longer kept."""
    if error.stage != "outbox":
        return None
    rows = (await sql.run(_ROW, *_place(error))).rows
    if not rows:
        return None
    row = rows[0]
    return PutAside(row["statement"], _code(row["error"]), int(row["bytes"]), int(row["failed_at_ms"]))


def dropping(error: ParkedError) -> list[Statement]:
    """Return the statements that drop the write that an error is about."""
    return [(_DROP, _place(error))] if error.stage == "outbox" else []


async def park_unlisted(sql: Sql, limit: int) -> int:
    """Park the writes that the ledger does not list, as it may be where D1 refused the entry; return how many."""
    troubles: list[Trouble] = []
    for row in (await sql.run(_MISSING, limit)).rows:
        agent_type, _, instance_id = row["instance_key"].split(":", 2)
        concerns = f"{row['instance_key']}#{row['entry_id']}"
        place = (row["tenant_id"], agent_type, instance_id)
        troubles.append(Trouble("outbox", concerns, _code(row["error"]), int(row["failed_at_ms"]), *place))
    if troubles:
        await park(sql, *troubles)
    return len(troubles)


def _place(error: ParkedError) -> tuple[str, int]:
    key, _, entry = error.concerns.rpartition("#")
    return key, int(entry)


def _code(text: str) -> str:
    return text.partition(":")[0]
