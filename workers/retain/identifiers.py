"""Identifiers: their grammar, and new ones.

`:` is a delimiter only. Ids are ULIDs: 26 characters, ordered by time.
Source: https://github.com/ulid/spec
"""

from __future__ import annotations

import re
from hashlib import sha256

from retain.errors import InvalidInput
from retain.errors.codes import InvalidInputCode

TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
INSTANCE = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}")
USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+|=-]{0,127}")
MAX_NAME = 200
"""Longest name of a user, in characters."""
_LOCALE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,7}")
_TIMEZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9_+-]{1,31}){0,2}")
SEGMENT = re.compile(r"[A-Za-z0-9._@+-]{1,64}")
ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
MESSAGE = re.compile(rf"msg_{ULID.pattern}(?:_[0-9]{{1,4}}_[0-9]{{1,4}})?")
VERSION = re.compile(r"[1-9][0-9]{0,8}")
_GREATEST = (1 << 128) - 1
_STEP_BYTES = 6
"""How far an id goes beyond one that it must follow: far enough that two never meet, within the millisecond."""


def _checked(pattern: re.Pattern[str], value: object, grammar: str, what: str, code: InvalidInputCode) -> str:
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise InvalidInput(f"not a valid {what}: it must match {grammar}", code=code)
    return value


def check_tenant(value: object) -> str:
    """Return the tenant id, or raise InvalidInput. At most 40 bytes, so `agent_memory_semantic:{tenant}` fits 64."""
    return _checked(TENANT, value, TENANT.pattern, "tenant", "invalid_tenant")


def check_agent_type(value: object) -> str:
    """Return the agent type, or raise InvalidInput."""
    return _checked(NAME, value, NAME.pattern, "agent type", "invalid_agent_type")


def check_tool_name(value: object) -> str:
    """Return the tool name, or raise InvalidInput."""
    return _checked(NAME, value, NAME.pattern, "tool name", "invalid_tool_name")


def is_tool_name(value: str) -> bool:
    """Return whether a text can be the name of a tool."""
    return NAME.fullmatch(value) is not None


def check_instance_id(value: object) -> str:
    """Return the instance id, or raise InvalidInput."""
    return _checked(INSTANCE, value, INSTANCE.pattern, "instance id", "invalid_instance_id")


def check_user_id(value: object) -> str:
    """Return the user id, or raise InvalidInput. The application's own ids fit: UUIDs, addresses, `auth0|507f1f77`."""
    return _checked(USER, value, USER.pattern, "user id", "invalid_user")


def check_profile(name: str | None, locale: str | None, timezone: str | None) -> None:
    """Check what an application says of a user: a name, a BCP 47 tag, and an IANA name, or None for what it does not say.

    Raises: InvalidInput (code `invalid_user`).
    """
    if name is not None and not (0 < len(name) <= MAX_NAME and name.isprintable() and name.strip()):
        raise InvalidInput(f"a user's name has 1 to {MAX_NAME} printable characters", code="invalid_user")
    if locale is not None and _LOCALE.fullmatch(locale) is None:
        raise InvalidInput("a user's locale must be a BCP 47 tag, such as fr-CH", code="invalid_user")
    if timezone is not None and _TIMEZONE.fullmatch(timezone) is None:
        raise InvalidInput("a user's timezone must be an IANA name, such as Europe/Zurich", code="invalid_user")


def check_id(value: object) -> str:
    """Return the ULID, or raise InvalidInput."""
    return _checked(ULID, value, "a ULID (26 characters of Crockford's base 32)", "id", "invalid_id")


def check_message_id(value: object) -> str:
    """Return the id of a message to a webhook, or raise InvalidInput."""
    return _checked(MESSAGE, value, MESSAGE.pattern, "id of a message", "invalid_id")


def check_version(value: object) -> str:
    """Return the number of a version, or raise InvalidInput."""
    return _checked(VERSION, value, VERSION.pattern, "version", "invalid_version")


def new_id() -> str:
    """Return a new ULID for the current time."""
    from ulid import ULID  # programs that embed the library need not load it

    return str(ULID())


def time_of(ulid: str) -> int:
    """Return when a ULID was made, in epoch milliseconds."""
    from ulid import ULID  # as in `new_id`

    return ULID.from_str(ulid).milliseconds


def id_after(new: str, last: str) -> str:
    """Return the new ULID if it is greater than the last one, else one that is a little greater than the last one.

    The clocks of machines differ: this gives a later event the greater id even so. It is not the last one's successor:
    ids that are made within one millisecond are successors of each other, so it may be in use already.
    Raises: InvalidInput when the last one is the greatest ULID.
    """
    if new > last:
        return new
    from ulid import ULID  # as in `new_id`

    number = int(ULID.from_str(last))
    if number == _GREATEST:
        raise InvalidInput("no id is greater than the last one", code="invalid_id")
    step = int.from_bytes(sha256(f"{new}{last}".encode()).digest()[:_STEP_BYTES])
    return str(ULID.from_int(min(number + 1 + step, _GREATEST)))


def check_segment(value: object, what: str = "segment") -> str:
    """Return the segment of a canonical key, or raise InvalidInput (code `invalid_namespace`).

    Every agent type, tenant and instance id is a valid segment. Wildcards and the delimiter are not in the grammar.
    """
    if not isinstance(value, str) or SEGMENT.fullmatch(value) is None:
        raise InvalidInput(f"not a valid {what}: it must match {SEGMENT.pattern}", code="invalid_namespace")
    return value


def namespace_key(service: str, tenant_id: str, session_id: str) -> str:
    """Return the canonical namespace key `<service>:<tenantId>:<sessionId>`, of an instance or of a memory's session.

    Raises: InvalidInput (code `invalid_namespace`) for an empty or wildcard segment, or one with the delimiter or
        another character outside the grammar; InvalidInput (code `invalid_tenant`).
    """
    for what, segment in (("service", service), ("tenant id", tenant_id), ("session id", session_id)):
        check_segment(segment, what)
    return f"{service}:{check_tenant(tenant_id)}:{session_id}"
