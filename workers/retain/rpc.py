"""Errors across RPC: the platform keeps only an error's text, so calls between objects return envelopes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from retain import errors
from retain.errors.codes import ForeignCode
from retain.json_text import JsonObject, read_own_json

_CLASSES: dict[str, type[errors.RetainError]] = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.RetainError)
}


def answer(value: Mapping[str, object]) -> str:
    """Return the envelope of a result."""
    return json.dumps({"result": value})


def refusal(error: errors.RetainError) -> str:
    """Return the envelope of an error."""
    shown = {
        "class": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "details": dict(error.details),
    }
    return json.dumps({"error": shown})


def opened(envelope: str) -> JsonObject:
    """Return an envelope's result, or raise its error."""
    content = read_own_json(envelope)
    error = content.get("error")
    if error is not None:
        kind = _CLASSES.get(error["class"], errors.RetainError)
        raise kind(error["message"], code=ForeignCode(error["code"]), **error["details"])
    result: JsonObject = content["result"]
    return result
