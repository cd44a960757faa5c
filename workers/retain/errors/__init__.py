"""What can go wrong, classed by what the caller should do about it.

Every error has a stable `code` (for programs) and a message (for people). Neither ever holds a secret. Data that helps
the caller is in `details`. Python callers distinguish errors by class, never by code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from retain.errors.codes import (
    Code,
    ConflictCode,
    ForbiddenCode,
    ForeignCode,
    InvalidInputCode,
    LimitExceededCode,
    MethodNotAllowedCode,
    NotFoundCode,
    QuotaExceededCode,
    RateLimitedCode,
    UnauthenticatedCode,
    UnavailableCode,
    UpstreamFailedCode,
)
from retain.errors.misconfigured_codes import MisconfiguredCode

Detail = str | int | float | bool | None | list[str]


class RetainError(Exception):
    """The base of every error that Retain raises on purpose.

    code: stable identifier in snake case, part of the public interface.
    details: data a program can use; never secrets.
    """

    code: Code | ForeignCode = "internal"

    def __init__(self, message: str, *, code: Code | ForeignCode | None = None, **details: Detail) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.details: Mapping[str, Detail] = details


class InvalidInput(RetainError):
    """Fix the request: it fails in the same way each time."""

    code: InvalidInputCode | LimitExceededCode | MethodNotAllowedCode | ForeignCode = "invalid_input"

    def __init__(self, message: str, *, code: InvalidInputCode | ForeignCode | None = None, **details: Detail) -> None:
        super().__init__(message, code=code, **details)


class MethodNotAllowed(InvalidInput):
    """Use another method: `details` name those that the route has."""

    code: MethodNotAllowedCode | ForeignCode = "method_not_allowed"

    def __init__(
        self, message: str, *, code: MethodNotAllowedCode | ForeignCode | None = None, **details: Detail
    ) -> None:
        RetainError.__init__(self, message, code=code, **details)


class LimitExceeded(InvalidInput):
    """Send less: a documented limit was exceeded. `details` name the limit."""

    code: LimitExceededCode | ForeignCode = "limit_exceeded"

    def __init__(self, message: str, *, code: LimitExceededCode | ForeignCode | None = None, **details: Detail) -> None:
        RetainError.__init__(self, message, code=code, **details)


class Unauthenticated(RetainError):
    """Send credentials: they are missing or invalid."""

    code: UnauthenticatedCode | ForeignCode = "unauthenticated"

    def __init__(
        self, message: str, *, code: UnauthenticatedCode | ForeignCode | None = None, **details: Detail
    ) -> None:
        super().__init__(message, code=code, **details)


class Forbidden(RetainError):
    """Give up: the credentials are valid and do not allow this."""

    code: ForbiddenCode | ForeignCode = "forbidden"

    def __init__(self, message: str, *, code: ForbiddenCode | ForeignCode | None = None, **details: Detail) -> None:
        super().__init__(message, code=code, **details)


class NotFound(RetainError):
    """Give up: it does not exist, or not for this caller."""

    code: NotFoundCode | Literal["no_such_tool", "unknown_scope"] | ForeignCode = "not_found"

    def __init__(self, message: str, *, code: NotFoundCode | ForeignCode | None = None, **details: Detail) -> None:
        super().__init__(message, code=code, **details)


class NoSuchTool(NotFound):
    """Name a tool that exists, and that this caller may use."""

    code: Literal["no_such_tool"] | ForeignCode = "no_such_tool"


class UnknownScope(NotFound):
    """Register the scope first: it is unknown, or is elsewhere in the hierarchy."""

    code: Literal["unknown_scope"] | ForeignCode = "unknown_scope"


class Conflict(RetainError):
    """Look again, then decide: the state does not allow this now."""

    code: ConflictCode | Literal["constraint"] | ForeignCode = "conflict"

    def __init__(self, message: str, *, code: ConflictCode | ForeignCode | None = None, **details: Detail) -> None:
        super().__init__(message, code=code, **details)


class ConstraintViolated(Conflict):
    """Look again, then decide: a constraint of the database forbids the statement."""

    code: Literal["constraint"] | ForeignCode = "constraint"


class QuotaExceeded(RetainError):
    """Make room: the tenant holds as much as it may."""

    code: QuotaExceededCode | ForeignCode = "quota_exceeded"

    def __init__(self, message: str, *, code: QuotaExceededCode | ForeignCode | None = None, **details: Detail) -> None:
        super().__init__(message, code=code, **details)


class RateLimited(RetainError):
    """Retry after `retry_after_s` seconds, which `details` name: too many requests in too little time."""

    code: RateLimitedCode | ForeignCode = "rate_limited"

    def __init__(self, message: str, *, code: RateLimitedCode | ForeignCode | None = None, **details: Detail) -> None:
        super().__init__(message, code=code, **details)


class Unavailable(RetainError):
    """Retry later: something Retain depends on failed, and nothing was half-done."""

    code: UnavailableCode | ForeignCode = "unavailable"

    def __init__(self, message: str, *, code: UnavailableCode | ForeignCode | None = None, **details: Detail) -> None:
        super().__init__(message, code=code, **details)


class Contended(Unavailable):
    """Retry later, after a random pause: others kept changing the same thing first."""

    code: UnavailableCode | ForeignCode = "contended"


class TenantMoving(Unavailable):
    """Retry after a second: the tenant moves to another database, and is not written meanwhile."""

    code: UnavailableCode | ForeignCode = "tenant_moving"


class TenantElsewhere(Unavailable):
    """Ask another database: the tenant has left this one. Callers of Retain never see it."""

    code: UnavailableCode | ForeignCode = "tenant_moving"


class StreamInterrupted(Unavailable):
    """Ask again, and drop the text that was delivered: the model's answer broke off after it."""

    code: UnavailableCode | ForeignCode = "stream_interrupted"


class UpstreamFailed(RetainError):
    """Look at the upstream: it answered in a way that retrying will not fix."""

    code: UpstreamFailedCode | Literal["schema_mismatch"] | ForeignCode = "upstream_failed"

    def __init__(
        self, message: str, *, code: UpstreamFailedCode | ForeignCode | None = None, **details: Detail
    ) -> None:
        super().__init__(message, code=code, **details)


class UnusableAnswer(UpstreamFailed):
    """Ask the model again: this answer cannot be used, another may. `details` name what it cost."""

    code: UpstreamFailedCode | ForeignCode = "malformed_answer"


class SchemaMismatch(UpstreamFailed):
    """Ask the model again: its answer breaks the schema. `details` name the path and the rule."""

    code: Literal["schema_mismatch"] | ForeignCode = "schema_mismatch"


class Misconfigured(RetainError):
    """Fix the deployment: a setting or secret is missing or contradicts another."""

    code: MisconfiguredCode | ForeignCode = "misconfigured"

    def __init__(self, message: str, *, code: MisconfiguredCode | ForeignCode | None = None, **details: Detail) -> None:
        super().__init__(message, code=code, **details)
