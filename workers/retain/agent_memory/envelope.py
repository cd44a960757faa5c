"""The envelope of Cloudflare's API: `success`, `errors`, `messages` and `result`, around answers and refusals.

Source: https://developers.cloudflare.com/fundamentals/api/how-to/make-api-calls/
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.errors import Forbidden, InvalidInput, MethodNotAllowed, RetainError, Unauthenticated
from retain.http import Response, problem

_STATUS_OF_LIMITS = 400
_CODES: Mapping[str, int] = {
    "unknown_tenant": 1003,
    "namespace_exists": 10008,
    "no_such_route": 7003,
}
"""Numbers that Cloudflare documents for what Retain's codes mean. Without one, an error has the number of its status."""
_AUTHENTICATION = 10000
"""Cloudflare's number for a token that is missing, invalid, or not allowed to do this."""
_TEXTS: Mapping[str, str] = {
    "unknown_tenant": "the namespace does not exist",
    "no_such_memory": "the memory does not exist",
}
"""What is written instead of messages that name Retain's own things."""


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What an answer says of a page. count: entries on it. cursor: of the next one, None on the last."""

    count: int
    per_page: int
    cursor: str | None

    def to_json(self) -> dict[str, object]:
        """Return it as `result_info`, without a cursor on the last page."""
        shown: dict[str, object] = {"count": self.count, "per_page": self.per_page}
        return shown if self.cursor is None else {**shown, "cursor": self.cursor}


def enveloped(
    result: object,
    status: int = 200,
    *,
    page: PageInfo | None = None,
    notes: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an answer in the envelope. notes: what a person should know of it, in `messages`."""
    body: dict[str, object] = {
        "result": result,
        "success": True,
        "errors": [],
        "messages": [{"code": status, "message": note} for note in notes],
    }
    if page is not None:
        body["result_info"] = page.to_json()
    return _response(status, body, headers or {})


def refused(error: RetainError, request_id: str) -> Response:
    """Return an error in the envelope; `reason` is Retain's own code.

    Sent too much is 400, as everything else that the sender has to change, except a body that is not even read.
    """
    plain = problem(error, request_id)
    too_much = plain.status == 413 and error.code != "body_too_large"
    status = _STATUS_OF_LIMITS if too_much else plain.status
    number = _number(error, status)
    text = _TEXTS.get(error.code, error.message)
    problems = error.details.get("problems")
    if isinstance(problems, list):
        shown = [_error(number, error.code, f"{text}: {one}", _pointer(one)) for one in problems]
    else:
        pointer = error.details.get("pointer")
        shown = [_error(number, error.code, text, pointer if isinstance(pointer, str) else None)]
    body = {"result": None, "success": False, "errors": shown, "messages": []}
    return _response(
        status, body, {name: plain.headers[name] for name in ("allow", "retry-after") if name in plain.headers}
    )


def _number(error: RetainError, status: int) -> int:
    if isinstance(error, Unauthenticated | Forbidden):
        return _AUTHENTICATION
    if isinstance(error, InvalidInput) and not isinstance(error, MethodNotAllowed):
        return status
    return _CODES.get(error.code, status)


def _error(number: int, reason: str, message: str, pointer: str | None) -> dict[str, object]:
    shown: dict[str, object] = {"code": number, "message": message, "reason": reason}
    return shown if pointer is None else {**shown, "source": {"pointer": pointer}}


def _pointer(found: str) -> str | None:
    """Return the JSON pointer of a problem, which begins with its path; None for the body as a whole."""
    path = found.partition(":")[0]
    return None if path == "body" else "/" + path.replace(".", "/")


def _response(status: int, body: Mapping[str, object], headers: Mapping[str, str]) -> Response:
    return Response(status, json.dumps(body, separators=(",", ":")), {"content-type": "application/json", **headers})
