"""A tenant's runs as they are listed and searched: newest first, from the index that fits best.

Conditions that this index does not answer are tried on at most `SCANNED` runs for a page, the text of a search among them.
So a page reads a bounded number of rows, and may have fewer runs than were asked for, or none, and a cursor all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from retain.errors import InvalidInput
from retain.ports import Row, Sql, SqlValue

STATUSES = ("queued", "running", "waiting", "completed", "failed", "cancelled")
OPEN: Final = "open"
"""Stands for each status of a run that has not ended."""
IN_QUEUE = "COALESCE(json_extract(waiting_for, '$.kind'), '') = 'queue'"
"""Which of the waiting runs are queued: D1 has them as runs that wait for their instance."""
SCANNED: Final = 500
"""On how many runs conditions without an index are tried for one page."""
_CONDITIONS: Mapping[str, str] = {
    **{status: f"status = '{status}'" for status in STATUSES},
    "queued": f"status = 'waiting' AND {IN_QUEUE}",
    "waiting": f"status = 'waiting' AND NOT {IN_QUEUE}",
    OPEN: "completed_at_ms IS NULL",
}
"""By status; with literals, so that the index of the waiting runs is used."""
_TEXT = """
instr(lower(COALESCE(json_extract(input, '$.input'), '')), lower(?)) > 0 OR instr(lower(COALESCE(output, '')), lower(?)) > 0
"""
_COLUMNS = (
    "run_id, tenant_id, agent_type, instance_id, parent_run_id, user_id, started_by, status, model, agent_version, steps,"
    " input_tokens, cached_input_tokens, output_tokens, waiting_for, created_at_ms, completed_at_ms"
)
_BY_TIME, _BY_ID = "created_at_ms DESC, run_id DESC", "run_id DESC"
_CURSOR = re.compile(r"([0-9]{1,15})\.([0-9A-Z]{26})")

_Condition = tuple[str, tuple[SqlValue, ...]]


@dataclass(frozen=True, slots=True)
class WantedRuns:
    """Which runs to list. None: any.

    instance_id: needs the agent_type. by: the principal that started them. user_id: for whom they acted. since_ms, until_ms:
    when they began; the second is not included. text: in the input or the answer, ASCII letters in either case; texts are
    kept for 90 days.
    """

    agent_type: str | None = None
    instance_id: str | None = None
    status: str | None = None
    by: str | None = None
    user_id: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        """Raises: InvalidInput (code `invalid_status`, `invalid_query`)."""
        if self.status is not None and self.status not in _CONDITIONS:
            raise InvalidInput(f"a run's status is one of {', '.join(_CONDITIONS)}", code="invalid_status")
        if self.instance_id is not None and self.agent_type is None:
            raise InvalidInput("an instance is one of an agent: name its agent_type, too", code="invalid_query")


@dataclass(frozen=True, slots=True)
class RunRows:
    """Rows of runs, newest first. cursor: of the next page, None on the last."""

    rows: list[Row]
    cursor: str | None


async def run_rows(sql: Sql, tenant_id: str, wanted: WantedRuns, *, limit: int, cursor: str | None) -> RunRows:
    """Return a page of runs. Raises: InvalidInput (code `invalid_cursor`); Unavailable."""
    index, order, indexed, rest = _plan(wanted)
    conditions: list[_Condition] = [("tenant_id = ?", (tenant_id,)), *indexed]
    if cursor is not None:
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise InvalidInput("the cursor is not valid", code="invalid_cursor")
        key: tuple[SqlValue, ...] = (int(found[1]), found[2])
        after = ("run_id < ?", key[1:]) if order == _BY_ID else ("(created_at_ms, run_id) < (?, ?)", key)
        conditions.append(after)
    where, values = _joined(conditions)
    source = f"FROM agent_runs INDEXED BY {index} WHERE {where} ORDER BY {order} LIMIT ?"
    if not rest:
        rows = (await sql.run(f"SELECT {_COLUMNS} {source}", *values, limit + 1)).rows
        return RunRows(list(rows[:limit]), _cursor(rows[limit - 1]) if len(rows) > limit else None)
    tried, given = _joined(rest)
    fitting, last = await sql.batch(
        [
            (
                f"WITH tried AS (SELECT run_id AS id, ({tried}) AS fits {source})"  # noqa: S608
                f" SELECT {_COLUMNS} FROM tried CROSS JOIN agent_runs ON run_id = id WHERE fits LIMIT ?",
                (*given, *values, SCANNED, limit + 1),
            ),
            (f"SELECT created_at_ms, run_id {source} OFFSET ?", (*values, 1, SCANNED - 1)),
        ]
    )
    if len(fitting.rows) > limit:
        return RunRows(list(fitting.rows[:limit]), _cursor(fitting.rows[limit - 1]))
    return RunRows(list(fitting.rows), _cursor(last.rows[0]) if last.rows else None)


def _cursor(row: Row) -> str:
    return f"{row['created_at_ms']}.{row['run_id']}"


def _plan(wanted: WantedRuns) -> tuple[str, str, list[_Condition], list[_Condition]]:
    """Return an index with its order, the conditions that it answers, and the others."""
    of_time: list[_Condition] = []
    if wanted.since_ms is not None:
        of_time.append(("created_at_ms >= ?", (wanted.since_ms,)))
    if wanted.until_ms is not None:
        of_time.append(("created_at_ms < ?", (wanted.until_ms,)))
    given: dict[str, _Condition] = {
        f"{column} = ?": (f"{column} = ?", (value,))
        for column, value in (
            ("agent_type", wanted.agent_type),
            ("instance_id", wanted.instance_id),
            ("user_id", wanted.user_id),
            ("started_by", wanted.by),
        )
        if value is not None
    }
    rest: list[_Condition] = []
    if wanted.status is not None:
        rest.append((_CONDITIONS[wanted.status], ()))
    if wanted.text is not None:
        rest.append((_TEXT, (wanted.text, wanted.text)))
    if wanted.instance_id is not None:
        indexed = [given.pop("agent_type = ?"), given.pop("instance_id = ?")]
        return "agent_runs_of_instance", _BY_ID, indexed, [*given.values(), *of_time, *rest]
    for column, index in (
        ("user_id", "agent_runs_by_user"),
        ("started_by", "agent_runs_by_starter"),
        ("agent_type", "agent_runs_by_agent"),
    ):
        if f"{column} = ?" in given:
            indexed = [given.pop(f"{column} = ?"), *of_time]
            return index, _BY_TIME, indexed, [*given.values(), *rest]
    if wanted.status in ("queued", "waiting"):
        return "agent_runs_waiting", _BY_TIME, [("status = 'waiting'", ()), *of_time], rest
    return "agent_runs_by_time", _BY_TIME, of_time, rest


def _joined(conditions: list[_Condition]) -> tuple[str, list[SqlValue]]:
    """Return the conditions as one, and their values."""
    text = " AND ".join(f"({condition})" for condition, _ in conditions)
    return text, [value for _, values in conditions for value in values]
