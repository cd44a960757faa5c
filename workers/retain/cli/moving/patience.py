"""Requests of a long export or import, which are sent again: one answer among hundreds is lost or refused for a moment."""

from __future__ import annotations

import sys
import time
from typing import Any

import httpx

from retain.cli.deployed.connection import Deployment
from retain.cli.deployed.terminal import one_line, over_lines
from retain.errors import RetainError, Unavailable

PAUSES_S = (1, 2, 4, 8, 16)
"""How long it waits before each repetition, unless the deployment asks for more …"""
LONGEST_S = 60
"""… up to this."""
_FOR_A_MOMENT = (429, 502, 503, 504)


def repeated(deployment: Deployment, method: str, path: str, **sent: Any) -> httpx.Response:
    """Return an answer that reports success, after five repetitions at most. For requests that may be repeated.

    Raises: as `Deployment.answer`, what the last repetition raised, or what no repetition would change.
    """
    for pause_s in PAUSES_S:
        try:
            return deployment.answer(method, path, **sent)
        except RetainError as error:
            if not _is_for_a_moment(error):
                raise
            wanted = str(error.details.get("retry_after", ""))
            wait_s = min(max(pause_s, int(wanted) if wanted.isdecimal() else 0), LONGEST_S)
            print(f"{over_lines(error.message)} ({one_line(error.code)}): asked again in {wait_s} s", file=sys.stderr)
            time.sleep(wait_s)
    return deployment.answer(method, path, **sent)


def _is_for_a_moment(error: RetainError) -> bool:
    status = error.details.get("status")
    return isinstance(error, Unavailable) if status is None else status in _FOR_A_MOMENT
