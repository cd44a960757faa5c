"""Retention: what is removed from D1 when it reaches an age, in slices that any later call continues.

Each area declares the rules of its tables. The cost follows what is old: one statement finds out that nothing is,
whatever the number of tenants.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from retain.errors import RetainError
from retain.ports import Sql

_log = logging.getLogger(__name__)

DAY_MS = 24 * 3600 * 1000
TEXT_KEPT_MS = 90 * DAY_MS
"""How long the text of a turn is kept, wherever it is: 90 days."""
STATEMENTS = 48
"""Most statements of one pruning: the free plan allows a Worker 50 queries per invocation, the paid one 1,000.

Source: https://developers.cloudflare.com/d1/platform/limits/
"""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Rows that are removed, or lose their text, when they reach an age.

    kept_ms: the age. statements: run as one transaction, each with two values, the time before which a row is too old and
    `rows`; the last statement returns the `tenant_id` of every row that it removed, and an index gives it the old rows.
    rows: how many one transaction takes at most.
    """

    name: str
    kept_ms: int
    statements: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What one pruning removed: rows by rule and tenant; tenants that lost nothing are not named.

    complete: False when the statements did not suffice, and the next call continues.
    """

    by_rule: Mapping[str, Mapping[str, int]]
    statements: int
    complete: bool

    def to_json(self) -> dict[str, object]:
        """Return the pruning as reports have it."""
        return {
            "rows": {rule: sum(tenants.values()) for rule, tenants in self.by_rule.items()},
            "tenants": {rule: dict(sorted(tenants.items())) for rule, tenants in self.by_rule.items() if tenants},
            "statements": self.statements,
            "complete": self.complete,
        }


def old_by_days(table: str, *keys: str) -> str:
    """Return the statement of a rule for a table whose days `days_kept` has (migrations/0059_fewer_rows_of_runs.sql).

    The table has a column `at_ms`, and an index over `tenant_id` and it. keys: the columns that identify a row.
    """
    key = ", ".join(keys)
    kept = ", ".join(f"kept.{column}" for column in keys)
    return f"""
    DELETE FROM {table} WHERE ({key}) IN (
      SELECT {kept} FROM days_kept d CROSS JOIN {table} kept ON kept.tenant_id = d.tenant_id
        AND kept.at_ms >= d.day * {DAY_MS} AND kept.at_ms < MIN(?1, (d.day + 1) * {DAY_MS})
      WHERE d.relation = '{table}' AND d.day <= CAST(?1 / {DAY_MS} AS INTEGER) ORDER BY d.day LIMIT ?2)
    RETURNING tenant_id
    """  # noqa: S608


async def prune(sql: Sql, now_ms: int, rules: Iterable[RetentionRule], statements: int = STATEMENTS) -> Pruned:
    """Remove what is too old, a slice of each rule in turn; return what was removed.

    statements: how many this call may run, no fewer than a slice of each rule has. Idempotent and resumable: a slice is
    one transaction, and nothing else records the progress. A rule that fails does not stop the others.
    Raises: the first error, when the slices of all other rules are done.
    """
    waiting = deque(rules)
    removed: dict[str, Counter[str]] = {rule.name: Counter() for rule in waiting}
    spent, errors = 0, list[RetainError]()
    while waiting and spent + len(waiting[0].statements) <= statements:
        rule = waiting.popleft()
        values = (now_ms - rule.kept_ms, rule.rows)
        spent += len(rule.statements)
        try:
            *_, last = await sql.batch([(statement, values) for statement in rule.statements])
        except RetainError as error:
            _log.error("a rule of retention failed", extra={"rule": rule.name, "code": error.code})
            errors.append(error)
            continue
        removed[rule.name].update(row["tenant_id"] for row in last.rows)
        if len(last.rows) >= rule.rows:
            waiting.append(rule)
    if errors:
        raise errors[0]
    return Pruned(removed, spent, complete=not waiting)
