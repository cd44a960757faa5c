"""What a tenant's agents spent: tokens by day, agent and model, counted by triggers (migrations/0049_model_use.sql).

A page reads as many rows as it has, by the index that fits, however many runs there were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from retain.errors import InvalidInput
from retain.ports import Row, Sql, SqlValue
from retain.retention import DAY_MS, RetentionRule

EPOCH: Final = date(1970, 1, 1)
_PRUNED = f"""
DELETE FROM model_use WHERE (tenant_id, day, agent_type, model) IN
  (SELECT tenant_id, day, agent_type, model FROM model_use WHERE day < CAST(? / {DAY_MS} AS INTEGER) ORDER BY day LIMIT ?)
RETURNING tenant_id
"""
_COLUMNS = "day, agent_type, model, runs, input_tokens, output_tokens, learning_input_tokens, learning_output_tokens"
_TOKENS = ("runs", "input_tokens", "output_tokens", "learning_input_tokens", "learning_output_tokens")


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What one agent's runs that ended on one day spent on one model.

    input_tokens, output_tokens: of the runs' own answers; delegated runs are runs of their own agents. learning_…: what was
    learned from them afterwards.
    """

    day: date
    agent_type: str
    model: str
    runs: int
    input_tokens: int
    output_tokens: int
    learning_input_tokens: int
    learning_output_tokens: int


@dataclass(frozen=True, slots=True)
class WantedUse:
    """Which use to list. None: any. since, until: days in UTC; the second is not included."""

    agent_type: str | None = None
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True)
class UsePage:
    """A page of use, the last day first. cursor: of the next page, None on the last."""

    uses: Sequence[ModelUse]
    cursor: str | None


def use_rules(runs_kept_ms: int) -> tuple[RetentionRule, ...]:
    """Return the rule of what was spent: it is kept as long as the rows of the runs that spent it."""
    return (RetentionRule("model_use", runs_kept_ms, (_PRUNED,), 5000),)


async def model_use(sql: Sql, tenant_id: str, wanted: WantedUse, *, limit: int, cursor: str | None) -> UsePage:
    """Return a page of what a tenant spent. Raises: InvalidInput (code `invalid_cursor`); Unavailable."""
    conditions, values = ["tenant_id = ?"], [*_of(tenant_id)]
    index, order = "", "day DESC, agent_type DESC, model DESC"
    if wanted.agent_type is not None:
        conditions.append("agent_type = ?")
        values.append(wanted.agent_type)
        index, order = "INDEXED BY model_use_by_agent", "day DESC, model DESC"
    for bound, condition in ((wanted.since, "day >= ?"), (wanted.until, "day < ?")):
        if bound is not None:
            conditions.append(condition)
            values.append((bound - EPOCH).days)
    if cursor is not None:
        day, agent_type, model = _read_cursor(cursor)
        of_agent = wanted.agent_type is not None
        conditions.append("(day, model) < (?, ?)" if of_agent else "(day, agent_type, model) < (?, ?, ?)")
        values += [day, model] if of_agent else [day, agent_type, model]
    query = f"SELECT {_COLUMNS} FROM model_use {index} WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT ?"
    rows = (await sql.run(query, *values, limit + 1)).rows
    return UsePage([_use(row) for row in rows[:limit]], _cursor(rows[limit - 1]) if len(rows) > limit else None)


def _of(tenant_id: str) -> tuple[SqlValue]:
    return (tenant_id,)


def _use(row: Row) -> ModelUse:
    day = EPOCH + timedelta(days=int(row["day"]))
    return ModelUse(day, row["agent_type"], row["model"], *(int(row[name]) for name in _TOKENS))


def _cursor(row: Row) -> str:
    return f"{row['day']}/{row['agent_type']}/{row['model']}"


def _read_cursor(cursor: str) -> tuple[int, str, str]:
    day, _, rest = cursor.partition("/")
    agent_type, slash, model = rest.partition("/")
    if not (day.isascii() and day.isdecimal() and len(day) <= 6 and slash):
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    return int(day), agent_type, model
