"""What a model's server says about a failure, without secrets: operators need its words, and they may quote the key."""

from __future__ import annotations

import re

from retain.log import REDACTED, redact_text

MAX_CHARACTERS = 500
"""Longest message that is kept, in characters."""
_READ_CHARACTERS = 4_000
_SHARED = 6
"""So many characters in a row that a word and the key have in common give away a part of the key."""

_WORD = re.compile(r"[^\s\"'`,;()\[\]{}<>]+")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")


def message_of(answer: object, secret: str = "") -> str | None:
    """Return the message of an error's body, None when there is none. secret: the key that was sent.

    Most servers answer {"error": {"message"}}; Cloudflare lists {"message"} as `errors` or `error`; others answer
    {"error": text}, {"message": text} or {"detail": text}; those in Python list problems as `detail`, with `loc` and `msg`.
    Source: https://fastapi.tiangolo.com/tutorial/handling-errors/#override-request-validation-exceptions
    """
    text = _text(answer)
    return None if text is None else without_secrets(text, secret)


def _text(answer: object) -> str | None:
    if not isinstance(answer, dict):
        return None
    error = answer.get("error") or answer.get("errors")
    if isinstance(error, list):
        error = error[0] if error else None
    found = error.get("message") if isinstance(error, dict) else error
    found = found or answer.get("message") or answer.get("detail")
    if isinstance(found, dict):  # as of Mistral's server
        found = found.get("detail")
    if isinstance(found, list):
        found = "; ".join(filter(None, map(_problem, found)))
    return found if isinstance(found, str) and found.strip() else None


def _problem(problem: object) -> str:
    """Return where a request breaks a server's rules, and how; "" for another shape."""
    words = problem.get("msg") if isinstance(problem, dict) else None
    if not isinstance(problem, dict) or not isinstance(words, str):
        return ""
    place = problem.get("loc")
    return f"{'.'.join(map(str, place))}: {words}" if isinstance(place, list) else words


def without_secrets(text: str, secret: str) -> str:
    """Return a message on one line, of MAX_CHARACTERS at most, with everything that looks like a secret replaced.

    So is each word that has _SHARED characters in a row in common with `secret`: servers quote keys in part.
    """
    text = _UNPRINTABLE.sub(" ", text[:_READ_CHARACTERS])
    if secret:
        text = text.replace(secret, REDACTED)
        parts = {secret[start : start + _SHARED] for start in range(len(secret) - _SHARED + 1)}
        text = _WORD.sub(lambda word: REDACTED if _shares(word[0], parts) else word[0], text)
    text = " ".join(redact_text(text).split())
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "\u2026"


def _shares(word: str, parts: set[str]) -> bool:
    return any(word[start : start + _SHARED] in parts for start in range(len(word) - _SHARED + 1))
