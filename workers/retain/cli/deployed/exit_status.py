"""The exit statuses of commands that ask a deployment, by what the caller can do about the failure."""

from __future__ import annotations

from retain.errors import Forbidden, InvalidInput, NotFound, RetainError, Unauthenticated, Unavailable

FAILED = 1
"""The deployment refused what was asked, or failed."""
USAGE = 2
"""The command line or the profiles are wrong: nothing was sent."""
REFUSED = 3
"""The credentials are missing, invalid, or do not allow this."""
NOT_FOUND = 4
"""What was named does not exist, or not for this caller."""
UNREACHABLE = 5
"""Nothing answered, or what answered was not Retain's Worker."""
INTERRUPTED = 130
"""Ctrl-C."""
PIPE_CLOSED = 141
"""Whoever read the output has closed it, as a shell reports SIGPIPE."""


def status_of(error: RetainError) -> int:
    """Return the exit status of an error. InvalidInput is what was found before anything was sent."""
    if isinstance(error, InvalidInput):
        return USAGE
    if isinstance(error, Unauthenticated | Forbidden):
        return REFUSED
    if isinstance(error, NotFound):
        return NOT_FOUND
    return UNREACHABLE if isinstance(error, Unavailable) else FAILED
