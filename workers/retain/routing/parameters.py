"""Path parameters: the grammar of each, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from retain import identifiers


@dataclass(frozen=True, slots=True)
class PathParameter:
    """One kind of path parameter.

    pattern: the regular expression that a value matches as a whole. check: returns a valid value or raises
    InvalidInput.
    """

    pattern: str
    check: Callable[[str], str]


SEGMENT = PathParameter(identifiers.SEGMENT.pattern, identifiers.check_segment)
_ID = PathParameter(identifiers.ULID.pattern, identifiers.check_id)

BY_NAME: Mapping[str, PathParameter] = {
    "tenant": PathParameter(identifiers.TENANT.pattern, identifiers.check_tenant),
    "agent_type": PathParameter(identifiers.NAME.pattern, identifiers.check_agent_type),
    "tool_name": PathParameter(identifiers.NAME.pattern, identifiers.check_tool_name),
    "instance_id": PathParameter(identifiers.INSTANCE.pattern, identifiers.check_instance_id),
    "user": PathParameter(identifiers.USER.pattern, identifiers.check_user_id),
    "id": _ID,
    "run_id": _ID,
    "against": _ID,
    "job_id": _ID,
    "receipt_id": _ID,
    "backup_id": _ID,
    "key_id": _ID,
    "move_id": _ID,
    "webhook_id": _ID,
    "schedule_id": _ID,
    "attachment_id": _ID,
    "version": PathParameter(identifiers.VERSION.pattern, identifiers.check_version),
    "message_id": PathParameter(identifiers.MESSAGE.pattern, identifiers.check_message_id),
}
"""The kind of a parameter by its name, unless the route says otherwise."""
