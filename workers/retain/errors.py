"""What can go wrong, classed by what the caller should do about it.

Every error has a stable `code` (for programs) and a message (for people). Neither ever holds a secret. Data that helps
the caller are attributes in `details`.
"""

from __future__ import annotations

from collections.abc import Mapping

Detail = str | int | float | bool | None | list[str]


class RetainError(Exception):
    """Base of every error Retain raises on purpose.

    code: stable identifier in snake case, part of the public interface.
    details: data a program can use; never secrets.
    """

    code = "internal"

    def __init__(self, message: str, *, code: str | None = None, **details: Detail) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.details: Mapping[str, Detail] = details


class InvalidInput(RetainError):
    """Fix the request: it will fail in the same way each time."""

    code = "invalid_input"


class MethodNotAllowed(InvalidInput):
    """Use another method: `details` name those that the route has."""

    code = "method_not_allowed"


class LimitExceeded(InvalidInput):
    """Send less: a documented limit was exceeded. `details` name the limit."""

    code = "limit_exceeded"


class Unauthenticated(RetainError):
    """Send credentials: there were none, or they are not valid."""

    code = "unauthenticated"


class Forbidden(RetainError):
    """Give up: the credentials are valid and do not allow this."""

    code = "forbidden"


class NotFound(RetainError):
    """Give up: it does not exist, or not for this caller."""

    code = "not_found"


class Conflict(RetainError):
    """Look again, then decide: the state does not allow this now."""

    code = "conflict"


class QuotaExceeded(RetainError):
    """Make room: the tenant holds as much as it may."""

    code = "quota_exceeded"


class Unavailable(RetainError):
    """Retry later: something Retain depends on failed, and nothing was half-done."""

    code = "unavailable"


class UpstreamFailed(RetainError):
    """Look at the upstream: it answered in a way that retrying will not mend."""

    code = "upstream_failed"


class Misconfigured(RetainError):
    """Fix the deployment: a setting or secret is missing or contradicts another."""

    code = "misconfigured"
