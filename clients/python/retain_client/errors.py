"""The one exception of the client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial

NO_ANSWER = "no_answer"
"""The code when the server did not answer: the connection failed or broke, or the time was up."""
NOT_A_PROBLEM = "unexpected_answer"
"""The code when an answer is not what Retain answers: something between the client and Retain sent it."""
INVALID_ID = "invalid_id"
"""The code when an id cannot be one part of an address: nothing was sent."""
INVALID_REQUEST = "invalid_request"
"""The code when what was given fits into no request, such as an address that is too long: nothing was sent."""


class RetainError(Exception):
    """A request that Retain refused, or that reached nobody.

    code: why, stable; the server's docs/errors.md lists them. `no_answer` when nothing was received, and
    `unexpected_answer` when what was received is not Retain's. status: of the answer, None without one. message: for
    people, with what is wrong in each place of the request. retry_after_s: after how many seconds the server wants to
    be asked again, None if it does not name a time. request_id: as the server logs it, None without an answer.
    details: further members of the problem.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        retry_after_s: float | None = None,
        request_id: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.details: Mapping[str, object] = details or {}

    def __reduce__(self) -> tuple[object, ...]:
        """Return how it is made again from its pickle: by default, without its code, which fails in the receiver."""
        return partial(type(self), self.message, code=self.code), (), vars(self)

    def __str__(self) -> str:
        """Return the code with the message."""
        return f"{self.code}: {self.message}"


_SHOWN = frozenset({"type", "title", "status", "detail", "code", "request_id"})


def is_refusal(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether an answer has not what was asked for. Retain answers no page: one is of a login before it."""
    return status >= 300 or headers.get("content-type", "").lower().startswith("text/html")


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> RetainError:
    """Return the error that a refusal is. headers: names in any case that get() accepts."""
    after = retry_after_s(headers)
    request_id = headers.get("x-request-id")
    try:
        problem = json.loads(body)
        return RetainError(
            problem["detail"] + _problems(problem.get("problems")),
            code=problem["code"],
            status=status,
            retry_after_s=after,
            request_id=problem["request_id"],
            details={name: value for name, value in problem.items() if name not in _SHOWN},
        )
    except (ValueError, KeyError, TypeError):
        text = headers.get("location") or body[:200].decode(errors="replace")
        return RetainError(
            f"status {status}: {text}", code=NOT_A_PROBLEM, status=status, retry_after_s=after, request_id=request_id
        )


def not_retains(status: int, headers: Mapping[str, str], why: str) -> RetainError:
    """Return the error that an answer which is not as the document has it is. It does not show the answer's values."""
    came = f"status {status}, {headers.get('content-type', 'without a type')}"
    request_id = headers.get("x-request-id")
    message = f"the answer is not one of Retain's ({came}): {why}"
    return RetainError(message, code=NOT_A_PROBLEM, status=status, request_id=request_id)


def _problems(found: object) -> str:
    """Return what is wrong in each place of a body or a query that does not fit, to follow the message."""
    named = [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
    return f": {'; '.join(named)}" if named else ""


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that `retry-after` names, or until the date that it names; None where it is absent."""
    named = headers.get("retry-after", "")
    if named.isascii() and named.isdigit():
        return float(named)
    try:
        until = parsedate_to_datetime(named).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
