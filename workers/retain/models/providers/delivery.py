"""Handing on an answer's text while it comes, and trying again as long as nothing was handed on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from retain.errors import RetainError, Unavailable
from retain.models.chat import OnText
from retain.models.retry import Retries, with_retries

Result = TypeVar("Result")


class Delivery:
    """The text of one answer on its way to the caller. begun: whether the caller has got any."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._refusal: RetainError | None = None
        self.begun = False

    async def give(self, text: str) -> None:
        """Hand on the next piece; an empty one is none. Raises: what the caller raises."""
        if not text:
            return
        self.begun = True
        try:
            await self._on_text(text)
        except RetainError as error:
            self._refusal = error
            raise

    def final(self, error: Unavailable) -> RetainError | None:
        """Return the error to raise because there is no way back, or None while the call may be repeated."""
        if error is self._refusal:
            return error
        if not self.begun:
            return None
        return Unavailable(
            "the model's answer broke off after some of its text was given; ask again and drop that text",
            code="stream_interrupted",
            cause=error.code,
        )


class _NoWayBack(Exception):
    """Carries an error past the retries."""

    def __init__(self, error: RetainError) -> None:
        super().__init__()
        self.error = error


async def deliver(attempt: Callable[[Delivery], Awaitable[Result]], on_text: OnText, retries: Retries) -> Result:
    """Return what `attempt` returns, trying again after each Unavailable until text was given.

    Raises: as `with_retries`; Unavailable (code `stream_interrupted`) for a failure after that; at once and as it is
        what `on_text` raises.
    """
    delivery = Delivery(on_text)

    async def guarded() -> Result:
        try:
            return await attempt(delivery)
        except Unavailable as error:
            final = delivery.final(error)
            if final is None:
                raise
            raise _NoWayBack(final) from error

    try:
        return await with_retries(guarded, retries)
    except _NoWayBack as passed:
        raise passed.error from passed.__cause__
