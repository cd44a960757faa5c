"""The error ledger: what went wrong and was given up for now, one row for each thing that it happened to.

A row has ids and codes, never a text or a secret. The part that gives something up parks it here; when it succeeds later, it
settles the row. Writing the ledger never fails its caller: a ledger that cannot be written is logged.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Literal, get_args

from retain.errors import InvalidInput, NotFound, RetainError
from retain.ledgers.pages import EntryPage, Look, entry_page
from retain.ports import Row, Sql, Statement

Stage = Literal[
    "outbox",
    "vectors",
    "documents",
    "ingest",
    "run",
    "tool",
    "learning",
    "consolidation",
    "demotion",
    "erasure",
    "reindexing",
    "backup",
    "evaluation",
    "case",
    "cron",
    "request",
]
"""Which part of Retain gave up. docs/lifecycle.md says what `concerns` names for each, and what a replay does."""
STAGES: tuple[Stage, ...] = get_args(Stage)
ErrorState = Literal["parked", "replayed", "dismissed"]
"""parked: nobody has dealt with it. replayed: it succeeded later. dismissed: a person decided that nothing is to be done."""
STATES: tuple[ErrorState, ...] = get_args(ErrorState)
ERROR_ID = re.compile(r"[0-9a-f]{32}")

PARK = """
INSERT INTO error_ledger (error_id, tenant_id, stage, concerns, code, agent_type, instance_id, user_id, run_id,
  attempts, first_at_ms, last_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,
  COALESCE(?8, (SELECT user_id FROM scopes WHERE tenant_id = ?2 AND scope_id = ?9)), ?10, COALESCE(?11, 1), ?12, ?12)
ON CONFLICT (error_id) DO UPDATE SET code = excluded.code, last_at_ms = excluded.last_at_ms, state = 'parked',
  attempts = COALESCE(?11, CASE state WHEN 'parked' THEN attempts + 1 ELSE 1 END), settled_at_ms = NULL, settled_by = NULL
WHERE excluded.last_at_ms > last_at_ms
"""
"""Parks an error. Written again with the same time, as an outbox may, it changes nothing."""
_SETTLE = """
UPDATE error_ledger SET state = ?, settled_at_ms = ?, settled_by = ? WHERE error_id = ? AND state = 'parked'
"""
_SETTLE_EARLIER = """
UPDATE error_ledger SET state = 'replayed', settled_at_ms = ?, settled_by = NULL
WHERE stage = ? AND state = 'parked' AND last_at_ms < ? AND tenant_id NOT IN (SELECT value FROM json_each(?))
"""
FIND = "SELECT * FROM error_ledger WHERE error_id = ?"
"""Finds an error by its id."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that was given up, as the ledger keeps it.

    concerns: the id of what it happened to. tenant_id: "" for the deployment's own work. scope_id: names the user, where
    the user's id is not known. attempts: how many were made, None to count one more.
    """

    stage: Stage
    concerns: str
    code: str
    at_ms: int
    tenant_id: str = ""
    agent_type: str | None = None
    instance_id: str | None = None
    user_id: str | None = None
    scope_id: str | None = None
    run_id: str | None = None
    attempts: int | None = None

    @property
    def values(self) -> tuple[str | int | None, ...]:
        """The values of `PARK`, in order."""
        return (
            error_id_of(self.tenant_id, self.stage, self.concerns),
            *(self.tenant_id, self.stage, self.concerns, self.code),
            *(self.agent_type, self.instance_id, self.user_id, self.scope_id),
            *(self.run_id, self.attempts, self.at_ms),
        )


@dataclass(frozen=True, slots=True)
class ParkedError:
    """A row of the ledger."""

    error_id: str
    tenant_id: str
    stage: Stage
    concerns: str
    code: str
    agent_type: str | None
    instance_id: str | None
    user_id: str | None
    run_id: str | None
    attempts: int
    state: ErrorState
    first_at_ms: int
    last_at_ms: int
    settled_at_ms: int | None
    settled_by: str | None

    def to_json(self) -> dict[str, object]:
        """Return the row as HTTP answers have it."""
        return dict(zip(self.__slots__, astuple(self), strict=True))


def error_id_of(tenant_id: str, stage: Stage, concerns: str) -> str:
    """Return the id of the row of this thing: equal each time that it goes wrong."""
    return hashlib.sha256(json.dumps([tenant_id, stage, concerns]).encode()).hexdigest()[:32]


async def park(sql: Sql, *troubles: Trouble, also: Sequence[Statement] = ()) -> None:
    """Write troubles into the ledger. Raises nothing: if D1 does not take them, that is logged.

    also: what is written in the same transaction.
    """
    await _written(sql, [*((PARK, trouble.values) for trouble in troubles), *also])


async def settle(
    sql: Sql, now_ms: int, *things: tuple[str, Stage, str], by: str | None = None, also: Sequence[Statement] = ()
) -> None:
    """Note that what was parked has succeeded. things: tenant, stage and `concerns` of each. Raises nothing.

    by: who replayed it, None if the part that owns it succeeded without being asked. What is not parked stays as it is.
    also: what is written in the same transaction.
    """
    await _written(sql, [*((_SETTLE, ("replayed", now_ms, by, error_id_of(*thing))) for thing in things), *also])


async def settle_earlier(sql: Sql, now_ms: int, stage: Stage, before_ms: int, *, failed: Sequence[str]) -> None:
    """Note that all work of a stage has succeeded, of every tenant but those that failed. Raises nothing.

    before_ms: when the work began. What was parked since then stays as it is.
    """
    await _written(sql, [(_SETTLE_EARLIER, (now_ms, stage, before_ms, json.dumps(failed)))])


async def dismiss(sql: Sql, now_ms: int, error_id: str, by: str, also: Sequence[Statement] = ()) -> None:
    """Note that nothing is to be done about an error. What is not parked stays as it is. Raises: Unavailable.

    also: what is removed in the same transaction.
    """
    await sql.batch([(_SETTLE, ("dismissed", now_ms, by, error_id)), *also])


async def find_error(sql: Sql, error_id: str, tenants: Sequence[str] | None = None) -> ParkedError:
    """Return a row: of several databases that have it, as work of the deployment has, one where it is still parked.

    tenants: those whose errors exist for the caller; None for every one.
    Raises: NotFound (code `no_such_error`).
    """
    rows = sorted((await sql.run(FIND, error_id)).rows, key=lambda row: row["state"] != "parked")
    if not rows or (tenants is not None and rows[0]["tenant_id"] not in tenants):
        raise NotFound("there is no such error in the ledger", code="no_such_error")
    return _parked_error(rows[0])


async def list_errors(
    sql: Sql,
    *,
    tenants: Sequence[str] | None = None,
    tenant_id: str | None = None,
    stage: Stage | None = None,
    state: ErrorState | None = None,
    code: str | None = None,
    agent_type: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> EntryPage[ParkedError]:
    """Return a page of the rows that meet every condition, the last to go wrong first.

    tenants: those whose errors exist for the caller; None for every one, and for the deployment's own work.
    Raises: InvalidInput (code `invalid_cursor`).
    """
    look = Look("error_ledger", ("last_at_ms", "error_id"), newest_first=True)
    if tenants is not None:
        look = look.where("tenant_id IN (SELECT value FROM json_each(?))", json.dumps(tenants))
    wanted = {"tenant_id": tenant_id, "stage": stage, "state": state, "code": code, "agent_type": agent_type}
    return await entry_page(sql, look.equal(wanted), limit, cursor, _parked_error)


def check_error_id(value: str) -> str:
    """Return an error's id unchanged. Raises: InvalidInput (code `invalid_error_id`)."""
    if ERROR_ID.fullmatch(value) is None:
        raise InvalidInput("an error's id must have 32 hexadecimal digits", code="invalid_error_id")
    return value


async def _written(sql: Sql, statements: Sequence[Statement]) -> None:
    try:
        await sql.batch(statements)
    except RetainError as error:
        _log.warning("the error ledger was not written", extra={"entries": len(statements), "code": error.code})


def _parked_error(row: Row) -> ParkedError:
    return ParkedError(**{name: row[name] for name in ParkedError.__slots__})
