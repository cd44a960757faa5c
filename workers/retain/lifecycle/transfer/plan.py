"""The plan of an import, made from its lines and from what the tenant has. Planning reads, and changes nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retain.lifecycle.transfer.erased import KnownErasures, brought_back, erased_of, reading
from retain.lifecycle.transfer.lines import Line, RecordLine, ScopeLine, UserLine, bad_line
from retain.lifecycle.transfer.renaming import without_import
from retain.lifecycle.transfer.steps import ImportStep, content_of, duplicates_of
from retain.memory.indexer import Indexed, Indexer
from retain.memory.records.events import KnownRecord, LearningEvent, fold
from retain.memory.records.record import Record
from retain.memory.records.rows import (
    Written,
    append_event,
    change_of,
    event_of,
    record_of,
    remove_record,
    write_record,
)
from retain.memory.scope import user_scope_id
from retain.memory.search_rows import remove_rows
from retain.ports import Row, Sql, Statement
from retain.tenants.history import Change

_LISTED = "(SELECT value FROM json_each(?))"
_REGISTER = """
INSERT INTO scopes (tenant_id, scope_id, parent_id, kind, user_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_MEET = """
INSERT INTO users (tenant_id, user_id, name, locale, timezone, created_at_ms, last_run_at_ms, last_run_id)
VALUES (?, ?, ?, ?, ?, ?, ?, '')
ON CONFLICT (tenant_id, user_id) DO UPDATE SET
  name = COALESCE(name, excluded.name), locale = COALESCE(locale, excluded.locale),
  timezone = COALESCE(timezone, excluded.timezone), created_at_ms = MIN(created_at_ms, excluded.created_at_ms),
  last_run_at_ms = MAX(last_run_at_ms, excluded.last_run_at_ms)
"""
_RELEASE = "UPDATE memory_records SET content_hash = id WHERE id = ?"
_SCOPES = """
WITH RECURSIVE meant (scope_id, parent_id, user_id) AS (
  SELECT scope_id, parent_id, user_id FROM scopes WHERE tenant_id = ?1 AND scope_id IN (
    SELECT value FROM json_each(?2) UNION SELECT data ->> '$.scope_id' FROM memory_events INDEXED BY memory_events_by_record
    WHERE tenant_id = ?1 AND record_id IN (SELECT value FROM json_each(?3)) AND kind = 'stored')
  UNION SELECT s.scope_id, s.parent_id, s.user_id FROM meant m JOIN scopes s ON s.tenant_id = ?1 AND s.scope_id = m.parent_id
)
SELECT scope_id, parent_id, user_id FROM meant
UNION SELECT scope_id, parent_id, user_id FROM scopes WHERE tenant_id = ?1 AND scope_id >= 'agent.' AND scope_id < 'agent/'
"""
"""The named scopes, those of the records that the tenant has, and what encloses them; and agents', in which users have
scopes. Others are not read: a tenant has one for each user."""
_RECORDS = f"SELECT * FROM memory_records WHERE +tenant_id = ? AND id IN {_LISTED}"
_EVENTS = f"""
SELECT * FROM memory_events INDEXED BY memory_events_by_record
WHERE tenant_id = ? AND record_id IN {_LISTED} ORDER BY event_id
"""
_HOLDERS = """
SELECT r.id, r.scope_id, r.content_hash FROM json_each(?) c CROSS JOIN memory_records r ON r.tenant_id = ?
  AND r.scope_id = json_extract(c.value, '$[0]') AND r.content_hash = json_extract(c.value, '$[1]')
"""
_FOREIGN_EVENTS = f"""
SELECT e.event_id AS id FROM json_each(?) c JOIN memory_events e ON e.event_id = c.value
WHERE e.tenant_id <> ? OR e.record_id NOT IN {_LISTED}
"""
_FOREIGN_RECORDS = """
SELECT id FROM memory_records WHERE tenant_id <> ?1 AND id IN (SELECT value FROM json_each(?2))
UNION SELECT record_id FROM memory_events WHERE tenant_id <> ?1 AND record_id IN (SELECT value FROM json_each(?2))
"""


@dataclass(slots=True)
class ImportPlan:
    """What an import does. steps: one per record that is not a duplicate, in the order of the lines.

    users: a profile that the tenant has is kept, and completed. erased: lines left out, because what they have was erased.
    brought_back: records, and scopes of users, that were erased and are imported nevertheless.
    """

    scopes: list[Statement] = field(default_factory=list)
    users: list[Statement] = field(default_factory=list)
    steps: list[ImportStep] = field(default_factory=list)
    duplicates: int = 0
    erased: int = 0
    brought_back: list[str] = field(default_factory=list)

    @property
    def acting(self) -> list[ImportStep]:
        """The steps that change something."""
        return [step for step in self.steps if step.events]

    @property
    def records(self) -> list[Record]:
        """The records that the acting steps create or change, in their new state."""
        return [step.after for step in self.acting if step.after is not None]

    @property
    def known(self) -> list[KnownRecord]:
        """As `records`, each with its last event."""
        return [KnownRecord(step.after, step.last_event_id) for step in self.acting if step.after is not None]

    @property
    def removed(self) -> list[Record]:
        """The records that the acting steps remove, in their old state."""
        return [step.before for step in self.acting if step.before is not None and step.after is None]

    @property
    def replaced(self) -> list[Record]:
        """The records that the acting steps change or remove, in their old state."""
        return [step.before for step in self.acting if step.before is not None]

    @property
    def subjects(self) -> list[Record]:
        """The records whose vectors the index is owed."""
        return [step.subject for step in self.acting if step.subject is not None]

    def _released(self) -> list[str]:
        """Return the records whose contents others get, while they get another one."""
        taken = {content_of(record) for record in self.records}
        return [
            step.before.id
            for step in self.acting
            if step.before is not None
            and step.after is not None
            and not step.keeps_content
            and content_of(step.before) in taken
        ]

    def debts(self, indexer: Indexer, indexed: Mapping[str, Indexed], parts: Mapping[str, int]) -> list[Statement]:
        """Return the statements that note what the plan owes the vector index.

        indexed: the future index entries, by record. parts: how many vectors the index now has of each.
        """
        before = {record.id: record.content for record in self.replaced}
        vectors = {record_id: len(one.vectors) for record_id, one in indexed.items()}
        return [
            indexer.owe(
                record,
                max(parts.get(record.id, 0), vectors.get(record.id, 0)),
                changed=before.get(record.id, record.content) != record.content,
            )
            for record in self.subjects
        ]

    def change(
        self, indexer: Indexer, tenant_id: str, indexed: Mapping[str, Indexed], after: Sequence[Written | Statement]
    ) -> Change | None:
        """Return what the plan writes: first what frees a content, then what takes one, in whatever order records exchange
        contents. None when it writes nothing.

        after: what is written after it.
        """
        parts: list[Written | Statement] = [*self.scopes, *self.users]
        for step in self.acting:
            parts += [append_event(tenant_id, event) for event in step.events]
            if step.after is None and step.before is not None:
                parts += [*remove_rows(step.before.id), remove_record(step.before.id)]
        parts += [(_RELEASE, (record_id,)) for record_id in self._released()]
        for step in sorted(self.acting, key=lambda step: step.before is None):
            if step.after is not None:
                parts += [write_record(step.after), *indexer.rows(step.after, indexed[step.after.id])]
                if step.before is None:
                    parts.append(indexer.sent(step.after))
        parts += after
        change = change_of(parts)
        entries = [*change.entries, *map(brought_back, self.brought_back)]
        return Change(change.statements, entries) if parts else None


@dataclass(slots=True)
class _Tenant:
    """What the tenant has. scopes: those that matter to the lines, each with the user whose it is, or in whose it is.

    holders: scope and content hash to record id. foreign: ids that belong to something else. erased: what it has no more.
    """

    scopes: dict[str, str | None]
    records: dict[str, Record]
    events: dict[str, dict[str, LearningEvent]]
    holders: dict[tuple[str, str], str]
    foreign: frozenset[str]
    erased: KnownErasures


async def plan_import(sql: Sql, tenant_id: str, lines: Sequence[Line], *, include_erased: bool) -> ImportPlan:
    """Decide what each line does. include_erased: bring back what was erased in the tenant.

    Raises: InvalidInput (code `invalid_line`) for the first line that cannot be imported.
    """
    planning = _Planning(tenant_id, await _read(sql, tenant_id, lines), include_erased=include_erased)
    for line in lines:
        match line:
            case RecordLine():
                planning.take_record(line)
            case UserLine():
                planning.take_user(line)
            case ScopeLine():
                planning.take_scope(line)
    return planning.finish()


class _Planning:
    """Makes the plan of an import line by line; which records are duplicates follows from all lines together."""

    def __init__(self, tenant_id: str, tenant: _Tenant, *, include_erased: bool) -> None:
        self.plan = ImportPlan()
        self._steps: dict[str, ImportStep] = {}
        self._lines: Counter[str] = Counter()
        """How many lines have each record."""
        self._erased: set[str] = set()
        """Records that were erased and are imported nevertheless."""
        self._tenant_id = tenant_id
        self._tenant = tenant
        self._include_erased = include_erased
        self._waiting: dict[str, ScopeLine] = {}
        """Scopes of erased users: registered when a record is imported that was stored after the erasure."""
        self._unregistered: dict[str, dict[str, str]] = {}
        """The scopes that erased users had, by what encloses them. Each is a digest, and there may be thousands."""

    def take_scope(self, line: ScopeLine) -> None:
        tenant = self._tenant
        if line.scope_id in tenant.scopes:
            return
        owner = line.user_id or tenant.scopes.get(line.parent_id or "")
        if owner in tenant.erased.users and not self._include_erased:
            self._waiting[line.scope_id] = line
        else:
            self._register(line)
        tenant.scopes[line.scope_id] = owner

    def take_user(self, line: UserLine) -> None:
        erased = self._tenant.erased
        if erased.has_profile(line.user_id, line.created_at_ms):
            if not self._include_erased:
                self.plan.erased += 1
                return
            if line.user_id not in erased.known_users:
                self.plan.brought_back.append(user_scope_id("tenant", line.user_id))
        profile = (line.name, line.locale, line.timezone, line.created_at_ms, line.last_run_at_ms)
        self.plan.users.append((_MEET, (self._tenant_id, line.user_id, *profile)))

    def take_record(self, line: RecordLine) -> None:
        erased = self._is_erased(line)
        if erased and not self._include_erased:
            self.plan.erased += 1
            return
        step = _step(self._tenant, line)
        first = self._steps.get(line.record_id)  # another part of a long record
        self._steps[line.record_id] = step if first is None else first.then(step)
        self._lines[line.record_id] += 1
        if erased:
            self._erased.add(line.record_id)

    def finish(self) -> ImportPlan:
        """Return the plan. Of the records whose content the scope would have under another id, none is in it."""
        for record_id in duplicates_of(self._steps, self._tenant.holders):
            self.plan.duplicates += self._lines[record_id]
            del self._steps[record_id]
        self.plan.brought_back += sorted(self._erased & self._steps.keys())
        for step in self._steps.values():
            if step.after is not None:
                self._register_waiting(step.after.scope_id)
        self.plan.steps = list(self._steps.values())
        return self.plan

    def _is_erased(self, line: RecordLine) -> bool:
        """Return whether the line's record was erased: what is there of it now was stored after that, by another event."""
        tenant, stored = self._tenant, line.events[0]
        if stored.event_id in tenant.events.get(line.record_id, {}):
            return False
        scope_id = str(stored.data["scope_id"])
        owner = tenant.scopes[scope_id] if scope_id in tenant.scopes else self._erased_owner_of(scope_id)
        return tenant.erased.has_record(stored, owner)

    def _erased_owner_of(self, scope_id: str) -> str | None:
        """Return the erased user whose scope it was; None for every other scope that the tenant does not have.

        Its line may have been in an earlier request, of which no record was imported into it: it waits from now on.
        """
        for parent in self._tenant.scopes:
            if parent not in self._unregistered and (parent == "tenant" or parent.startswith("agent.")):
                self._unregistered[parent] = self._tenant.erased.scopes_in(parent)
        for parent, users in self._unregistered.items():
            if (owner := users.get(scope_id)) is not None:
                self._waiting[scope_id] = ScopeLine(0, scope_id, parent, "user", owner)
                self._tenant.scopes[scope_id] = owner
                return owner
        return None

    def _register_waiting(self, scope_id: str) -> None:
        line = self._waiting.pop(scope_id, None)
        if line is not None:
            self._register_waiting(line.parent_id or "")
            self._register(line)

    def _register(self, line: ScopeLine) -> None:
        scope = (line.scope_id, line.parent_id, line.kind, line.user_id)
        self.plan.scopes.append((_REGISTER, (self._tenant_id, *scope)))


def _step(tenant: _Tenant, line: RecordLine) -> ImportStep:
    """Return the line's step, after which the tenant has the record as the step leaves it."""
    before = tenant.records.get(line.record_id)
    had = tenant.events.get(line.record_id, {})
    new = _new_events(line, had, tenant.foreign)
    together = {event.event_id: event for event in sorted([*had.values(), *new], key=lambda event: event.event_id)}
    after = fold(together.values())
    if after is not None:
        if after.scope_id not in tenant.scopes:
            raise bad_line(line.number, [f"there is no scope {after.scope_id}; its line must come first"])
        tenant.records[line.record_id] = after
    else:
        tenant.records.pop(line.record_id, None)
    tenant.events[line.record_id] = together
    return ImportStep(before, after, new, max(together))


def _new_events(line: RecordLine, had: Mapping[str, LearningEvent], foreign: frozenset[str]) -> list[LearningEvent]:
    """Return the line's events that the tenant does not have. Raises: InvalidInput when an id is taken."""
    if line.record_id in foreign:
        raise bad_line(line.number, [f"the id {line.record_id} belongs to another tenant"])
    new: list[LearningEvent] = []
    for event in line.events:
        known = had.get(event.event_id)
        if event.event_id in foreign or (known is not None and not _is_same(known, event)):
            raise bad_line(line.number, [f"the id {event.event_id} belongs to another event"])
        if known is None:
            new.append(event)
    return new


def _is_same(known: LearningEvent, event: LearningEvent) -> bool:
    """Return whether an event is the known one. What another product has changed since it was imported stays as it was."""
    if without_import(known) == without_import(event):
        return True
    moved_in = event.kind == "stored" and event.event_id == event.record_id and event.source.get("origin") == "import"
    return moved_in and without_import(known).source == without_import(event).source


async def _read(sql: Sql, tenant_id: str, everything: Sequence[Line]) -> _Tenant:
    lines = [line for line in everything if isinstance(line, RecordLine)]
    users = [line.user_id for line in everything if isinstance(line, UserLine)]
    ids = json.dumps([line.record_id for line in lines])
    named = {"tenant", *(str(line.events[0].data["scope_id"]) for line in lines)}
    for line in everything:
        named |= {line.scope_id, line.parent_id or "tenant"} if isinstance(line, ScopeLine) else set()
    made = [record for line in lines if (record := fold(line.events)) is not None]
    contents = json.dumps([content_of(record) for record in made])
    event_ids = json.dumps([event.event_id for line in lines for event in line.events])
    scopes, records, events, holders, foreign_events, foreign_records, *erased = await sql.batch(
        [
            (_SCOPES, (tenant_id, json.dumps(sorted(named)), ids)),
            (_RECORDS, (tenant_id, ids)),
            (_EVENTS, (tenant_id, ids)),
            (_HOLDERS, (contents, tenant_id)),
            (_FOREIGN_EVENTS, (event_ids, tenant_id, ids)),
            (_FOREIGN_RECORDS, (tenant_id, ids)),
            *reading(tenant_id, [line.record_id for line in lines], users),
        ]
    )
    by_record: dict[str, dict[str, LearningEvent]] = {}
    for row in events.rows:
        by_record.setdefault(row["record_id"], {})[row["event_id"]] = event_of(row)
    return _Tenant(
        scopes=_owners(scopes.rows),
        records={row["id"]: record_of(row) for row in records.rows},
        events=by_record,
        holders={(row["scope_id"], row["content_hash"]): row["id"] for row in holders.rows},
        foreign=frozenset(row["id"] for row in [*foreign_events.rows, *foreign_records.rows]),
        erased=erased_of(*[found.rows for found in erased]),
    )


def _owners(scopes: Sequence[Row]) -> dict[str, str | None]:
    """Return each scope with the user whose it is, or in whose scope it is."""
    users: dict[str, str | None] = {row["scope_id"]: row["user_id"] for row in scopes}
    return {row["scope_id"]: row["user_id"] or users.get(row["parent_id"] or "") for row in scopes}
