"""The lines of an export: one JSON object each, with a `kind` and a `version`. docs/lifecycle.md documents them.

Every line names its tenant, so any run of lines can be imported on its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

from pydantic import ValidationError

from retain.errors import InvalidInput, LimitExceeded, RetainError
from retain.identifiers import check_id, check_profile, check_tenant, check_user_id
from retain.json_text import read_strict_json
from retain.lifecycle.transfer.items import ItemLine, read_item_line
from retain.lifecycle.transfer.kinds import ROW_KINDS
from retain.lifecycle.transfer.renaming import renamed_event, renamed_id
from retain.lifecycle.transfer.rows import RowLine, read_row_line
from retain.lifecycle.transfer.shapes import (
    EditedShape,
    InvalidatedShape,
    NothingShape,
    PageLineShape,
    ProfileShape,
    RecordLineShape,
    RestoredShape,
    ScopeLineShape,
    ScopeShape,
    StoredShape,
    SupersededShape,
    UserLineShape,
)
from retain.memory.records.events import EventKind, LearningEvent, apply
from retain.memory.records.limits import check
from retain.memory.records.record import Origin, Record
from retain.memory.scope import user_scope_id

VERSION = 1
MAX_LINES = 500
"""Lines of one page, and of one import."""
MAX_ITEM_LINES = 200
"""Lines of items among those of one import: each item is put alone, with some calls of D1, and an invocation has 1,000."""
MAX_BYTES = 1_048_576
"""Size of one import."""
CLOCKS_AGREE_MS = 30_000
"""Within how much the clocks of a deployment agree (docs/cluster.md): what another machine, or this one before its clock was
set back, has just recorded is not of the future."""

_SCOPE = re.compile(r"tenant|house\.[a-z][a-z0-9_]{0,31}|agent\.[a-z][a-z0-9_]{0,31}|(?:user|instance)\.[0-9a-f]{40}")
_PARENTS = {
    "tenant": (),
    "house": ("tenant",),
    "agent": ("tenant", "house"),
    "user": ("tenant", "agent"),
    "instance": ("agent", "user"),
}

_ORIGINS = (*get_args(Origin), "rule")
"""Who may have caused an event: whoever stores records, and the rules of consolidation."""
_EVENT_SHAPES: Mapping[EventKind, type[NothingShape]] = {
    "stored": StoredShape,
    "edited": EditedShape,
    "superseded": SupersededShape,
    "invalidated": InvalidatedShape,
    "restored": RestoredShape,
    "deleted": NothingShape,
}
"""The data of each kind of event."""


@dataclass(frozen=True, slots=True)
class ScopeLine:
    """A scope of the tenant. number: the line's, from 1."""

    number: int
    scope_id: str
    parent_id: str | None
    kind: str
    user_id: str | None


@dataclass(frozen=True, slots=True)
class UserLine:
    """A user's profile. number: the line's, from 1. last_run_at_ms: 0 before the first run."""

    number: int
    user_id: str
    name: str | None
    locale: str | None
    timezone: str | None
    created_at_ms: int
    last_run_at_ms: int


Line: TypeAlias = "ScopeLine | UserLine | RecordLine"
"""A line of what agents remember and of whom: planned together."""
AnyLine: TypeAlias = "Line | RowLine | ItemLine"


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record's events, oldest first, with ids for the importing tenant. number: the line's, from 1."""

    number: int
    record_id: str
    events: tuple[LearningEvent, ...]


def read_lines(text: str, tenant_id: str, now_ms: int, limit_bytes: int = MAX_BYTES) -> list[AnyLine]:
    """Return the lines of an export, checked, and with ids for the importing tenant.

    Raises: InvalidInput (code `invalid_line`, details `line` and `problems`), also for what was recorded in the future
        (nobody would recall it); LimitExceeded (codes `too_many_lines`, `import_too_large`).
    """
    if len(text.encode("utf-8", "replace")) > limit_bytes:
        raise LimitExceeded("the import is too large", code="import_too_large", limit_bytes=limit_bytes)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(lines) > MAX_LINES:
        raise LimitExceeded("an import has too many lines", code="too_many_lines", limit=MAX_LINES)
    found: list[AnyLine] = []
    for number, line in lines:
        try:
            read = _read_line(number, line, tenant_id, now_ms + CLOCKS_AGREE_MS)
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, one['loc'])) or 'line'}: {one['msg']}" for one in error.errors()]
            raise bad_line(number, problems) from error
        except RetainError as error:
            raise bad_line(number, [error.message]) from error
        if read is not None:
            found.append(read)
    if sum(isinstance(line, ItemLine) for line in found) > MAX_ITEM_LINES:
        raise LimitExceeded("an import has too many lines of items", code="too_many_lines", limit=MAX_ITEM_LINES)
    return found


def bad_line(number: int, problems: Sequence[str]) -> InvalidInput:
    """Return the error that names a line and its problems."""
    return InvalidInput(
        f"line {number}: {'; '.join(problems)}", code="invalid_line", line=number, problems=list(problems)
    )


def _read_line(number: int, line: str, tenant_id: str, latest_ms: int) -> AnyLine | None:
    value = _parsed(line)
    kind = value.get("kind")
    if isinstance(kind, str) and (kind == "item" or kind in ROW_KINDS):
        check_tenant(value.get("tenant"))
        if isinstance(at_ms := value.get("at_ms"), int) and at_ms > latest_ms:
            raise InvalidInput("its at_ms is in the future", code="invalid_line")
        if kind == "item":
            return read_item_line(number, value, tenant_id)
        return read_row_line(number, value, tenant_id, latest_ms)
    if kind == "page":
        PageLineShape.model_validate(value)
        return None
    if kind == "scope":
        return _scope_line(number, ScopeLineShape.model_validate(value).scope)
    if kind == "user":
        return _user_line(number, UserLineShape.model_validate(value).user, latest_ms)
    if kind != "record":
        raise InvalidInput("its kind is not one that an export has", code="invalid_line")
    read = RecordLineShape.model_validate(value)
    source_tenant = check_tenant(read.tenant)
    events = [
        LearningEvent(check_id(event.event_id), check_id(read.id), event.kind, event.data, event.source, event.at_ms)
        for event in read.events
    ]
    if [event.event_id for event in events] != sorted({event.event_id for event in events}):
        raise InvalidInput("its events must be in the order of their ids", code="invalid_line")
    for event in events:
        _check_recorded(event, latest_ms)
    record = _folded(events, source_tenant)
    shown = value.get("record")
    if isinstance(shown, Mapping):
        shown = {"gaps": [], "claims": [], **shown}  # an export of version 0.1.0 has neither
    if "record" in value and shown != (None if record is None else record.to_json()):
        raise InvalidInput("its record differs from the fold of its events", code="invalid_line")
    return RecordLine(
        number,
        renamed_id(read.id, source_tenant, tenant_id),
        tuple(renamed_event(event, source_tenant, tenant_id) for event in events),
    )


def _folded(events: Sequence[LearningEvent], tenant_id: str) -> Record | None:
    """Return the fold of the events, each checked as its original write was."""
    if events[0].kind != "stored":
        raise InvalidInput("its first event is not the one that stored it", code="invalid_line")
    record: Record | None = None
    for event in events:
        _check_event(event, tenant_id)
        record = apply(record, event)
        if record is not None:
            check(record)
    return record


def _parsed(line: str) -> Mapping[str, object]:
    try:
        value = read_strict_json(line)
    except UnicodeEncodeError as error:
        raise InvalidInput("it has text that is not Unicode", code="invalid_line") from error
    except ValueError as error:
        raise InvalidInput("it is not JSON", code="invalid_line") from error
    if not isinstance(value, dict):
        raise InvalidInput("it is not a JSON object", code="invalid_line")
    return value


def _scope_line(number: int, scope: ScopeShape) -> ScopeLine:
    parent = scope.parent_id
    kinds = _PARENTS[scope.kind]
    if _SCOPE.fullmatch(scope.scope_id) is None or scope.scope_id.partition(".")[0] != scope.kind:
        raise InvalidInput("it is not a scope", code="invalid_line")
    if (parent is None) != (not kinds) or (
        parent is not None and (_SCOPE.fullmatch(parent) is None or parent.partition(".")[0] not in kinds)
    ):
        raise InvalidInput("the scope cannot have this parent", code="invalid_line")
    if (scope.kind == "user") != (scope.user_id is not None):
        raise InvalidInput("a user's scope names its user, and no other scope does", code="invalid_line")
    if scope.user_id is not None and scope.scope_id != user_scope_id(parent, scope.user_id):
        raise InvalidInput("the scope is another user's", code="invalid_line")
    return ScopeLine(number, scope.scope_id, parent, scope.kind, scope.user_id)


def _user_line(number: int, user: ProfileShape, latest_ms: int) -> UserLine:
    check_profile(user.name, user.locale, user.timezone)
    if user.last_run_at_ms > latest_ms:  # the database's own clock gives created_at_ms
        raise InvalidInput("the user's last_run_at_ms is in the future", code="invalid_line")
    return UserLine(
        number,
        check_user_id(user.id),
        user.name,
        user.locale,
        user.timezone,
        user.created_at_ms,
        user.last_run_at_ms,
    )


def _check_event(event: LearningEvent, tenant_id: str) -> None:
    read = _EVENT_SHAPES[event.kind].model_validate(dict(event.data))
    if event.kind == "stored":
        if (event.data["tenant_id"], event.data["id"]) != (tenant_id, event.record_id):
            raise InvalidInput("a stored event belongs to another record", code="invalid_line")
        if _SCOPE.fullmatch(event.data["scope_id"]) is None:
            raise InvalidInput("a stored event names no scope", code="invalid_line")
    if event.kind == "edited" and not read.model_fields_set:
        raise InvalidInput("an edit must change something", code="invalid_line")
    if event.source.get("origin") not in _ORIGINS:
        raise InvalidInput("an event's source names no known origin", code="invalid_line")


def _check_recorded(event: LearningEvent, latest_ms: int) -> None:
    """Raise InvalidInput for an event that was recorded in the future. What it says of validity may be."""
    data = event.data if event.kind == "stored" else {}
    times = {"at_ms": event.at_ms} | {name: data.get(name) for name in ("recorded_at_ms", "updated_at_ms")}
    for name, at_ms in times.items():
        if isinstance(at_ms, int) and at_ms > latest_ms:
            raise InvalidInput(f"the {name} of event {event.event_id} is in the future", code="invalid_line")
