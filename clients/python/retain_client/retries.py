"""Which requests are repeated, and after which pause. Decisions alone: nothing here sends or waits."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

_REPEATABLE_POST = re.compile(
    r"/(?:tokens|attachments|memories|recall|ingest|cancel|check|resume|outcome|erase|reindex|verify|import|reseal|dismiss|replay|seed-memory)$"
)
"""What a POST to these paths does a second time, changes nothing that the first has done."""
_UNAVAILABLE = frozenset({502, 503, 504})


def repeatable(method: str, path: str, *, has_key: bool) -> bool:
    """Return whether a request may be sent twice although the first may have been carried out.

    has_key: whether it has an idempotency key.
    """
    return has_key or method != "POST" or _REPEATABLE_POST.search(path) is not None


@dataclass(frozen=True)
class Retries:
    """How often and after which pauses a request is repeated.

    attempts: how often it is sent at most; 1 for never again. first_pause_s: before the second one; it doubles, and is
    shortened at random by up to half, so that many clients do not return at the same moment. longest_pause_s: the
    bound of a pause. A server that wants a longer one is not asked again: the error has its `retry_after_s`.
    """

    attempts: int = 4
    first_pause_s: float = 0.5
    longest_pause_s: float = 30.0

    def after_answer(self, attempt: int, status: int, retry_after_s: float | None, *, again: bool) -> float | None:
        """Return the pause in seconds after an answer, None if it is the last word.

        attempt: which one was answered, from 1. again: whether the request is repeatable. What was refused with 429 was
        refused before anything was done, so it is repeated in any case.
        """
        if status != 429 and not (status in _UNAVAILABLE and again):
            return None
        return self._pause_s(attempt, retry_after_s)

    def after_failure(self, attempt: int, *, sent: bool, again: bool) -> float | None:
        """Return the pause in seconds after a failure without an answer, None to give up.

        sent: whether the request may have reached the server.
        """
        return self._pause_s(attempt, None) if again or not sent else None

    def _pause_s(self, attempt: int, retry_after_s: float | None) -> float | None:
        if attempt >= self.attempts:
            return None
        growing: float = self.first_pause_s * 2 ** (attempt - 1)
        pause = min(self.longest_pause_s, growing) * random.uniform(0.5, 1)  # noqa: S311 -- spreads clients, hides nothing
        if retry_after_s is None:
            return pause
        return max(retry_after_s, pause) if retry_after_s <= self.longest_pause_s else None
