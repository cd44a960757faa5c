"""Names of the interface: namespaces, profiles and sessions, and the scope that a profile is.

Source: https://developers.cloudflare.com/agent-memory/platform/limits/
"""

from __future__ import annotations

import re

from retain.errors import InvalidInput
from retain.errors.codes import InvalidInputCode
from retain.memory.scope import Scope
from retain.routing.parameters import PathParameter

HOUSE_PREFIX = "house-"
"""Begins the name of a profile that is a house; every other profile is a user."""
_NAMESPACE = re.compile(r"(?=.{1,32}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_PROFILE = re.compile(r"(?=.{1,100}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SESSION = re.compile(r"(?!\.{1,2}$)[^\x00-\x20\x7f]([^\x00-\x1f\x7f]{0,62}[^\x00-\x20\x7f])?")
_ACCOUNT = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _checked(pattern: re.Pattern[str], value: object, what: str, code: InvalidInputCode) -> str:
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise InvalidInput(f"not a valid {what}: it must match {pattern.pattern}", code=code)
    return value


def check_namespace(value: object) -> str:
    """Return the name of a namespace, which is a valid tenant id. Raises: InvalidInput (code `invalid_namespace`)."""
    return _checked(_NAMESPACE, value, "namespace", "invalid_namespace")


def check_profile_name(value: object) -> str:
    """Return the name of a profile. Raises: InvalidInput (code `invalid_profile`)."""
    return _checked(_PROFILE, value, "profile", "invalid_profile")


def check_session(value: object) -> str:
    """Return the id of a session: 1 to 64 printable characters, and not `.` or `..`, which no path of HTTP can name.

    Raises: InvalidInput (code `invalid_session`).
    """
    session = _checked(_SESSION, value, "session", "invalid_session")
    if not session.isprintable():
        raise InvalidInput("a session has printable characters only", code="invalid_session")
    return session


def _check_account(value: str) -> str:
    return _checked(_ACCOUNT, value, "account", "invalid_input")


def scope_of(tenant_id: str, profile: str) -> Scope:
    """Return the scope that a profile is: that of a house after `house-`, with `_` for each `-`, else that of a user.

    Raises: InvalidInput (code `invalid_house`) for a house that cannot be named so.
    """
    if profile.startswith(HOUSE_PREFIX):
        return Scope(tenant_id, house=profile.removeprefix(HOUSE_PREFIX).replace("-", "_"))
    return Scope(tenant_id, user_id=profile)


NAMESPACE = PathParameter(_NAMESPACE.pattern, check_namespace)
PROFILE = PathParameter(_PROFILE.pattern, check_profile_name)
SESSION = PathParameter(_SESSION.pattern, check_session)
ACCOUNT = PathParameter(_ACCOUNT.pattern, _check_account)
