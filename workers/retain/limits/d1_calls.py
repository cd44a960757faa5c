"""How many calls of D1 an invocation of the Worker may still make.

Work that has no natural end within one invocation runs inside `budget`: when it is used up, D1 is not called, so that what
follows in the same invocation still can. Without a budget nothing is counted. A batch is one call, whatever it holds: the
binding sends it as one request, and the platform's limit is one of requests.

Source: https://developers.cloudflare.com/d1/platform/limits/ (queries per Worker invocation, which are subrequests)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from retain.errors import Unavailable

_sharers: ContextVar[int] = ContextVar("d1_calls_sharers", default=1)
_left: ContextVar[list[int] | None] = ContextVar("d1_calls_left", default=None)


@contextmanager
def budget(calls: int) -> Iterator[None]:
    """Allow this many calls inside the block, in all its tasks together.

    An inner budget is not bounded by the outer one, which counts its calls when it has ended.
    """
    outer = _left.get()
    allowed = max(1, calls // _sharers.get())
    own = [allowed]
    token = _left.set(own)
    try:
        yield
    finally:
        _left.reset(token)
        if outer is not None:
            outer[0] -= allowed - own[0]


@contextmanager
def part(calls: int) -> Iterator[None]:
    """Allow at most this many of the calls that are left inside the block; what it does not use stays for what follows."""
    with _within(max(1, calls // _sharers.get())):
        yield


@contextmanager
def equal_part(of: int) -> Iterator[None]:
    """Allow one of so many equal parts of the calls that are left; what it does not use stays for what follows."""
    left = _left.get()
    assert left is not None, "calls are counted inside a budget only"
    with _within(max(1, left[0] // of)):
        yield


@contextmanager
def _within(calls: int) -> Iterator[None]:
    outer = _left.get()
    allowed = calls if outer is None else min(calls, outer[0])
    own = [allowed]
    token = _left.set(own)
    try:
        yield
    finally:
        _left.reset(token)
        if outer is not None:
            outer[0] -= allowed - own[0]


@contextmanager
def shared_among(parts: int) -> Iterator[None]:
    """Let each budget inside the block be the part of one that does the same so many times in one invocation."""
    token = _sharers.set(parts)
    try:
        yield
    finally:
        _sharers.reset(token)


def spend() -> None:
    """Count a call that is about to be made. Raises: Unavailable (code `d1_calls_used_up`); then it is not made."""
    left = _left.get()
    if left is None:
        return
    if left[0] <= 0:
        raise Unavailable("the invocation has used up its calls of D1; the next one continues", code="d1_calls_used_up")
    left[0] -= 1


def used_up() -> bool:
    """Return whether the budget is used up."""
    return fewer_than(1)


def fewer_than(calls: int) -> bool:
    """Return whether the budget has fewer calls left."""
    left = _left.get()
    return left is not None and left[0] < calls
