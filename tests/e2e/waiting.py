"""Waiting for what happens on its own: a write after an answer, an alarm, a reload."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

_STEP_S = 0.05


def eventually(read: Callable[[], Value], accept: Callable[[Value], bool], *, within_s: float = 30) -> Value:
    """Return the first value that is accepted.

    Raises: AssertionError with the last value when none was accepted in time.
    """
    deadline = time.monotonic() + within_s
    while True:
        value = read()
        if accept(value):
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s; last seen: {value!r}")
        time.sleep(_STEP_S)
