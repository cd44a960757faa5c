"""What a tenant spent: tokens by day, agent, purpose and model, counted by triggers.

Runs are counted when they end (migrations/0049_model_use.sql), other calls of models when they are answered
(migrations/0057_model_calls.sql). A page reads at most twice as many rows as it has, by the index that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Literal, get_args

from retain.errors import InvalidInput
from retain.ports import Row, Sql, SqlValue, Statement
from retain.retention import DAY_MS, RetentionRule

EPOCH: Final = date(1970, 1, 1)
_PRUNED = f"""
DELETE FROM model_use WHERE (tenant_id, day, agent_type, model) IN
  (SELECT tenant_id, day, agent_type, model FROM model_use WHERE day < CAST(? / {DAY_MS} AS INTEGER) ORDER BY day LIMIT ?)
RETURNING tenant_id
"""
_PRUNED_CALLS = f"""
DELETE FROM model_calls WHERE (tenant_id, day, agent_type, purpose, model) IN
  (SELECT tenant_id, day, agent_type, purpose, model FROM model_calls WHERE day < CAST(? / {DAY_MS} AS INTEGER)
   ORDER BY day LIMIT ?)
RETURNING tenant_id
"""
CallPurpose = Literal["ingest", "judge", "answer", "evaluation"]
"""Why a model is asked outside of a tenant's runs. evaluation: by the runs of cases, in scratch tenants."""
Purpose = Literal["run", CallPurpose]
"""For what a tenant spends. run: its runs, and what is learned from them."""
PURPOSES: Final[tuple[Purpose, ...]] = ("run", *get_args(CallPurpose))
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")
_OF_RUNS = ("runs", *_TOKENS, *(f"learning_{name}" for name in _TOKENS))
_OF_CALLS = ("calls", *_TOKENS)


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What was spent on one model on one day, for one purpose: by an agent's runs that ended then, or by other calls.

    agent_type: "" for what belongs to none. runs: that ended; 0 for another purpose than `run`. calls: how often the model
    was asked; None for runs. input_tokens, output_tokens: of the runs' own answers,
    delegated runs being runs of their own agents, or of the calls. cached_input_tokens: those of the input tokens that the
    cache of the model's server supplied. learning_…: what was learned from the runs afterwards.
    """

    day: date
    agent_type: str
    purpose: Purpose
    model: str
    runs: int = 0
    calls: int | None = None
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    learning_input_tokens: int = 0
    learning_cached_input_tokens: int = 0
    learning_output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class WantedUse:
    """Which use to list. None: any. since, until: days in UTC; the second is not included."""

    agent_type: str | None = None
    purpose: Purpose | None = None
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True)
class UsePage:
    """A page of use, the last day first; within it by agent, purpose and model. cursor: None on the last."""

    uses: Sequence[ModelUse]
    cursor: str | None


def use_rules(runs_kept_ms: int) -> tuple[RetentionRule, ...]:
    """Return the rule of what was spent: it is kept as long as the rows of the runs that spent it."""
    return (
        RetentionRule("model_use", runs_kept_ms, (_PRUNED,), 5000),
        RetentionRule("model_calls", runs_kept_ms, (_PRUNED_CALLS,), 5000),
    )


async def model_use(sql: Sql, tenant_id: str, wanted: WantedUse, *, limit: int, cursor: str | None) -> UsePage:
    """Return a page of what a tenant spent. Raises: InvalidInput (code `invalid_cursor`); Unavailable."""
    place = None if cursor is None else _read_cursor(cursor)
    asked = [
        _query(table, tenant_id, wanted, place, limit + 1)
        for table in ("model_use", "model_calls")
        if wanted.purpose is None or (wanted.purpose == "run") == (table == "model_use")
    ]
    found = [_use(row) for result in await sql.batch(asked) for row in result.rows]
    found.sort(key=_place, reverse=True)
    return UsePage(found[:limit], _cursor(found[limit - 1]) if len(found) > limit else None)


def _query(table: str, tenant_id: str, wanted: WantedUse, place: _Place | None, limit: int) -> Statement:
    """Return the statement for the first rows of a table after a place, in the order of a page."""
    of_runs, of_agent = table == "model_use", wanted.agent_type is not None
    order = [*([] if of_agent else ["agent_type"]), *([] if of_runs else ["purpose"]), "model"]
    conditions: list[tuple[str, tuple[SqlValue, ...]]] = [("tenant_id = ?", (tenant_id,))]
    if wanted.agent_type is not None:
        conditions.append(("agent_type = ?", (wanted.agent_type,)))
    if wanted.purpose is not None and not of_runs:
        conditions.append(("purpose = ?", (wanted.purpose,)))
    for bound, condition in ((wanted.since, "day >= ?"), (wanted.until, "day < ?")):
        if bound is not None:
            conditions.append((condition, ((bound - EPOCH).days,)))
    if place is not None:
        conditions.append(_after(place, order, of_runs=of_runs))
    columns = ", ".join(("day", "agent_type", "'run' AS purpose" if of_runs else "purpose", "model"))
    counts = ", ".join(_OF_RUNS if of_runs else _OF_CALLS)
    source = f"{table} INDEXED BY {table}_by_agent" if of_agent else table
    met = " AND ".join(condition for condition, _ in conditions)
    ordered = ", ".join(f"{column} DESC" for column in ("day", *order))
    values = [value for _, some in conditions for value in some]
    return f"SELECT {columns}, {counts} FROM {source} WHERE {met} ORDER BY {ordered} LIMIT ?", (*values, limit)


_Place = tuple[int, str, str, str]
"""Where a row is in the order: its day, agent, purpose and model."""


def _after(place: _Place, order: Sequence[str], *, of_runs: bool) -> tuple[str, tuple[SqlValue, ...]]:
    """Return the condition on the rows after a place. order: of the rows of one day."""
    day, agent_type, purpose, model = place
    columns, comparison = ["day", *order], "<"
    if of_runs and purpose != "run":  # all its rows of that day and agent are before that place, or all after it
        columns.remove("model")
        comparison = "<=" if purpose > "run" else "<"
    values: dict[str, SqlValue] = {"day": day, "agent_type": agent_type, "purpose": purpose, "model": model}
    marks = ", ".join("?" * len(columns))
    return f"({', '.join(columns)}) {comparison} ({marks})", tuple(values[column] for column in columns)


def _use(row: Row) -> ModelUse:
    day = EPOCH + timedelta(days=int(row["day"]))
    counts = {name: int(row[name]) for name in (_OF_RUNS if row["purpose"] == "run" else _OF_CALLS)}
    return ModelUse(day, row["agent_type"], row["purpose"], row["model"], **counts)


def _place(use: ModelUse) -> _Place:
    return (use.day - EPOCH).days, use.agent_type, use.purpose, use.model


def _cursor(use: ModelUse) -> str:
    return "/".join(map(str, _place(use)))


def _read_cursor(cursor: str) -> _Place:
    day, agent_type, purpose, model = (*cursor.split("/", 3), "", "", "")[:4]
    if not (day.isascii() and day.isdecimal() and len(day) <= 6 and purpose in PURPOSES and model):
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    return int(day), agent_type, purpose, model
