"""Errors as OpenAI's clients read them.

Source: https://platform.openai.com/docs/guides/error-codes
"""

from __future__ import annotations

import json

from retain.agents.calls.report import RunResult
from retain.errors import (
    Conflict,
    Forbidden,
    QuotaExceeded,
    RateLimited,
    RetainError,
    Unauthenticated,
    Unavailable,
)
from retain.http import Response, problem
from retain.json_text import JsonObject

RUN_ENDED = 422
"""The status of a run that ended without an answer: its request was right, and asking again would run the agent again."""
_AGAIN = frozenset({"instance_busy"})
"""Conflicts that end when the other run does."""
_CODES = {"unknown_agent": "model_not_found"}
"""Codes that these clients know by another name."""


def refused(error: RetainError, request_id: str) -> Response:
    """Return an error with OpenAI's body. `x-should-retry` tells its clients whether the same request may succeed."""
    plain = problem(error, request_id)
    status = 429 if isinstance(error, QuotaExceeded) else plain.status
    again = (isinstance(error, RateLimited | Unavailable) or error.code in _AGAIN) and not error.details.get("begun")
    kept = {name: value for name, value in plain.headers.items() if name in ("allow", "retry-after")}
    headers = {"content-type": "application/json", "x-should-retry": "true" if again else "false", **kept}
    return Response(status, json.dumps({"error": error_object(error)}), headers)


def error_object(error: RetainError) -> JsonObject:
    """Return an error's message, type, parameter and code."""
    problems, param = error.details.get("problems"), error.details.get("param")
    message = error.message
    if isinstance(problems, list):
        message = "; ".join([message, *map(str, problems)])
        param = str(problems[0]).partition(":")[0] if problems else None
    return {
        "message": message,
        "type": _type(error),
        "param": param if isinstance(param, str) else None,
        "code": _CODES.get(error.code, error.code),
    }


def error_of_run(result: RunResult) -> JsonObject:
    """Return why a run ended without an answer."""
    error = result.error
    return {
        "message": "the run has no answer" if error is None else error.message,
        "type": "run_error",
        "param": None,
        "code": result.status if error is None else error.code,
        "run_id": result.run_id,
    }


def unanswered(result: RunResult) -> Response:
    """Return the response for a run that ended without an answer. It is not to be asked again unchanged."""
    headers = {"content-type": "application/json", "x-should-retry": "false"}
    return Response(RUN_ENDED, json.dumps({"error": dict(error_of_run(result))}), headers)


def _type(error: RetainError) -> str:
    match error:
        case Unauthenticated():
            return "authentication_error"
        case Forbidden():
            return "permission_error"
        case QuotaExceeded():
            return "insufficient_quota"
        case RateLimited():
            return "rate_limit_error"
        case Conflict():
            return "conflict_error"
    return "invalid_request_error" if problem(error, "").status < 500 else "server_error"
