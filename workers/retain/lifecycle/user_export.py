"""A user's export: all that is kept of one user, page by page, as JSON lines for that user.

First come the lines of a tenant's export, of the user's scopes and records alone, which can be imported; then what only a
person reads: conversations, messages, runs, episodes, decisions, schedules, what is known of attachments, and items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from retain.errors import InvalidInput
from retain.lifecycle.erasure.items import value_of
from retain.lifecycle.export import PAGE_BYTES, Extent, Page, export_line, export_lines
from retain.lifecycle.stores import Stores
from retain.limits.pages import cut, sized
from retain.ports import Row

ROWS = 25
"""Most rows on a page: a run's input may have 256 KiB."""

_MINE = """{key} IN (
  SELECT {key} FROM {table} INDEXED BY {index} WHERE tenant_id = ?1 AND user_id = ?2 AND {key} > ?3
  UNION ALL
  SELECT t.{key} FROM conversations c CROSS JOIN {table} t ON t.tenant_id = ?1 AND t.agent_type = c.agent_type
    AND t.instance_id = c.instance_id AND t.user_id IS NULL AND t.{key} > ?3
  WHERE c.tenant_id = ?1 AND c.user_id = ?2
)"""
"""The user's rows by an index of users, and those without a user by one of instances: a tenant has many more."""


def _mine(table: str, key: str, index: str) -> str:
    """Return the end of a page's query: the rows of a table that are the user's, by their key. index: of users."""
    return f"FROM {table} WHERE {_MINE.format(table=table, key=key, index=index)} ORDER BY {key} LIMIT ?4"


@dataclass(frozen=True, slots=True)
class _Texts:
    """A phase of texts. sql: the page after ?3, with at most ?4 rows; `place` is the position, the rest is exported.

    large: the columns that may be large.
    """

    kind: str
    sql: str
    large: tuple[str, ...] = ()


_PHASES: Mapping[str, _Texts] = {
    "conversations": _Texts(
        "conversation",
        "SELECT agent_type || '/' || instance_id AS place, agent_type, instance_id, title, summary,"
        " created_at_ms, last_run_at_ms, status FROM conversations"
        " WHERE tenant_id = ?1 AND user_id = ?2 AND agent_type || '/' || instance_id > ?3 ORDER BY place"
        " LIMIT ?4",
    ),
    "messages": _Texts(
        "message",
        "SELECT message_id AS place, message_id, agent_type, instance_id, run_id, role, content, at_ms, attachments"
        f" {_mine('conversation_messages', 'message_id', 'conversation_messages_of_user')}",
        ("content",),
    ),
    "runs": _Texts(
        "run",
        "SELECT run_id AS place, run_id, parent_run_id, agent_type, instance_id, status, output, error, model,"
        " created_at_ms, completed_at_ms, CASE WHEN json_valid(input) THEN json_extract(input, '$.input') END AS input,"
        " CASE WHEN json_valid(input) THEN json_extract(input, '$.metadata') END AS metadata"
        f" {_mine('agent_runs', 'run_id', 'agent_runs_by_user')}",
        ("input", "output", "metadata"),
    ),
    "episodes": _Texts(
        "episode",
        "SELECT episode_id AS place, episode_id, agent_type, instance_id, run_id, turn, content, created_at_ms"
        f" {_mine('memory_episodes', 'episode_id', 'memory_episodes_of_user')}",
    ),
    "decisions": _Texts(
        "decision",
        "SELECT decision_id AS place, decision_id, run_id, kind, decision, confidence, decided_by, tool, agent_type,"
        " instance_id, policy, agent_version, model, at_ms"
        f" {_mine('decision_log', 'decision_id', 'decision_log_of_users')}",
    ),
    "schedules": _Texts(
        "schedule",
        "SELECT schedule_id AS place, schedule_id, agent_type, instance_id, state, cron, timezone, at_ms, next_at_ms,"
        " last_run_id, last_at_ms, last_error, json_extract(request, '$.input') AS input,"
        " json_extract(request, '$.metadata') AS metadata, created_at_ms"
        f" {_mine('schedules', 'schedule_id', 'schedules_of_user')}",
    ),
    "attachments": _Texts(
        "attachment",
        "SELECT attachment_id AS place, attachment_id, name, media_type, bytes, sha256, created_at_ms FROM attachments"
        " WHERE tenant_id = ?1 AND user_id = ?2 AND sha256 IS NOT NULL AND attachment_id > ?3 ORDER BY attachment_id"
        " LIMIT ?4",
    ),
    "items": _Texts(
        "item",
        "SELECT key AS place, * FROM memory_items"
        " WHERE tenant_id = ?1 AND user_id = ?2 AND NOT deleted AND key > ?3 ORDER BY key LIMIT ?4",
        ("value",),
    ),
}
_OF_PAGE = ("place", "page_rows", "page_before")
_ITEM = ("key", "kind", "tier", "version", "expires_at_ms", "created_at_ms", "updated_at_ms")


async def export_user_page(stores: Stores, tenant_id: str, user_id: str, cursor: str | None) -> Page:
    """Return the page at the cursor, or the first page. Raises: InvalidInput (code `invalid_cursor`); as the sealer."""
    phase, dot, after = (cursor or "").partition(".")
    phases = list(_PHASES)
    if phase in _PHASES and dot:
        lines, end = await _texts(stores, tenant_id, user_id, phase, unquote(after))
    else:
        lines, following = await export_lines(stores.sql, Extent(tenant_id, user_id), cursor)
        if following is not None:
            return _page(tenant_id, lines, following)
        end = None
        phase = ""
    if end is not None:
        return _page(tenant_id, lines, f"{phase}.{quote(end, safe='')}")
    place = phases.index(phase) + 1 if phase else 0
    return _page(tenant_id, lines, f"{phases[place]}." if place < len(phases) else None)


def _page(tenant_id: str, lines: list[str], cursor: str | None) -> Page:
    return Page([*lines, export_line("page", tenant_id, {"cursor": cursor})], cursor)


async def _texts(stores: Stores, tenant_id: str, user_id: str, phase: str, after: str) -> tuple[list[str], str | None]:
    """Return the lines of a page of texts, and the position after which the phase continues, None when it is complete."""
    texts = _PHASES[phase]
    if len(after) > 1024:
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    page = sized(texts.sql, "place", *texts.large) if texts.large else texts.sql
    found = (await stores.sql.run(page, tenant_id, user_id, after, ROWS + 1)).rows
    rows, more = cut(found, ROWS) if texts.large else (found[:ROWS], len(found) > ROWS)
    lines: list[str] = []
    size = 0
    for row in rows:
        if size > PAGE_BYTES:
            return lines, str(rows[len(lines) - 1]["place"])
        shown = (
            await _item(stores, row) if phase == "items" else {name: row[name] for name in row if name not in _OF_PAGE}
        )
        lines.append(export_line(texts.kind, tenant_id, {texts.kind: shown}))
        size += len(lines[-1])
    return lines, str(rows[-1]["place"]) if more else None


async def _item(stores: Stores, row: Row) -> Mapping[str, object]:
    return {**{name: row[name] for name in _ITEM}, "value": await value_of(stores, row)}
