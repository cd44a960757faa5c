"""Passing on an answer's text while it arrives, and retrying as long as none was passed on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from retain.errors import RetainError, StreamInterrupted, Unavailable
from retain.models.chat import ChatReply, OnText
from retain.models.retry import Retries, with_retries
from retain.models.unicode import is_high_surrogate, valid_text

Result = TypeVar("Result")

_THOUGHT, _THOUGHT_END = "<think>", "</think>"


class Delivery:
    """The text of one answer on its way to the caller. begun: whether the caller has received any.

    The caller gets valid Unicode: half a pair of surrogates at the end of a piece waits for the next piece.
    """

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._refusal: RetainError | None = None
        self._held = ""
        self.begun = False

    async def give(self, text: str) -> None:
        """Pass on the next piece; an empty one is skipped. Raises: what the caller raises."""
        text, self._held = self._held + text, ""
        if text and is_high_surrogate(text[-1]):
            text, self._held = text[:-1], text[-1]
        await self._pass_on(text)

    async def give_whole(self, reply: ChatReply) -> ChatReply:
        """Pass on the content of a reply that came whole, and return the reply."""
        await self.give(reply.content)
        return reply

    async def end(self) -> None:
        """Pass on what waits for a next piece that does not come."""
        text, self._held = self._held, ""
        await self._pass_on(text)

    async def _pass_on(self, text: str) -> None:
        if not text:
            return
        self.begun = True
        try:
            await self._on_text(valid_text(text))
        except RetainError as error:
            self._refusal = error
            raise

    def final(self, error: Unavailable) -> RetainError | None:
        """Return the error to raise when the call must not be repeated, or None while it may."""
        if error is self._refusal:
            return error
        if not self.begun:
            return None
        return StreamInterrupted(
            "the model's answer broke off after some of its text was delivered; ask again and drop that text",
            code="stream_interrupted",
            **{**error.details, "cause": error.code},
        )


class AnswerText:
    """The text of an answer while it arrives, without what the model thought before it.

    A server that does not take the thoughts out leaves them between two marks. Only those at the beginning are left out.
    Source: https://docs.vllm.ai/en/latest/features/reasoning_outputs/
    """

    def __init__(self) -> None:
        self._part: Literal["beginning", "thought", "gap", "answer"] = "beginning"
        self._held = ""

    def take(self, piece: str) -> str:
        """Return what the next piece adds to the answer."""
        text, self._held = self._held + piece, ""
        if self._part == "beginning":
            begun = text.lstrip()
            if not begun.startswith(_THOUGHT):
                if _THOUGHT.startswith(begun):
                    self._held = text
                    return ""
                self._part = "answer"
                return text
            text, self._part = begun[len(_THOUGHT) :], "thought"
        if self._part == "thought":
            thought, ended, text = text.partition(_THOUGHT_END)
            if not ended:
                self._held = thought[1 - len(_THOUGHT_END) :]
                return ""
            self._part = "gap"
        if self._part == "gap":
            text = text.lstrip()
            self._part = "answer" if text else "gap"
        return text

    def end(self) -> str:
        """Return what waits for a next piece that does not come."""
        return self._held if self._part == "beginning" else ""


def without_thought(text: str) -> str:
    """Return an answer's text as `AnswerText` has it at the end."""
    answer = AnswerText()
    return answer.take(text) + answer.end()


class _NotRepeatable(Exception):
    """Carries an error past the retries."""

    def __init__(self, error: RetainError) -> None:
        super().__init__()
        self.error = error


async def deliver(attempt: Callable[[Delivery], Awaitable[Result]], on_text: OnText, retries: Retries) -> Result:
    """Return what `attempt` returns, retrying after each Unavailable until text was passed on.

    Raises: as `with_retries`; StreamInterrupted for a failure after that; what `on_text` raises, at once and unchanged.
    """
    delivery = Delivery(on_text)

    async def guarded() -> Result:
        try:
            result = await attempt(delivery)
            await delivery.end()
        except Unavailable as error:
            final = delivery.final(error)
            if final is None:
                raise
            raise _NotRepeatable(final) from error
        return result

    try:
        return await with_retries(guarded, retries)
    except _NotRepeatable as passed:
        raise passed.error from passed.__cause__
