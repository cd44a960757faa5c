"""A run as a chat completion: waited for, or streamed in chunks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

from retain.agents.calls.answers import RunStreamEvent
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.fields import Fields
from retain.agents.calls.report import RunReport, RunResult
from retain.agents.execution.event_stream import followed
from retain.agents.execution.stream import KEEP_ALIVE
from retain.agents.front_ends.chat_answer import Completion
from retain.agents.front_ends.openai_errors import error_object, error_of_run
from retain.agents.front_ends.question import Question, question_of
from retain.errors import NotFound, Unavailable
from retain.json_text import JsonObject

DONE = "data: [DONE]\n\n"
"""The end of a stream."""
_BETWEEN = "\n\n"
"""What separates texts of several turns: they are one message."""


class ChatText:
    """The text of a run's answers as one message that only grows: what a client has read cannot be taken back."""

    def __init__(self) -> None:
        self._sent = ""
        self._turn = 0
        self._written = ""

    def of(self, event: RunStreamEvent) -> str:
        """Return what an event adds to the message."""
        if event.name not in ("text.delta", "text.completed"):
            return ""
        data = Fields(event.data)
        return self.written(data.integer("turn"), data.integer("offset", default=0), data.text("text"))

    def written(self, turn: int, offset: int, text: str) -> str:
        """Return what is added when the answer of a turn is this text from `offset` on."""
        if turn != self._turn:
            self._turn, self._written = turn, ""
        whole = self._written[:offset] + text
        added = whole[len(self._written) :] if whole.startswith(self._written) else _BETWEEN + whole
        if added and self._sent and not self._written:
            added = _BETWEEN + added
        self._written = whole
        self._sent += added
        return added

    def rest(self, output: str) -> str:
        """Return what is missing of the run's whole answer."""
        if self._written == output:
            return ""
        return self.written(self._turn, 0, output)

    def apart(self, notice: str) -> str:
        """Return what is added when the message ends with something that is not of the answer."""
        return _BETWEEN + notice if self._sent else notice


async def ended(instance: InstanceClient, report: RunReport) -> tuple[RunReport, Question | None]:
    """Return the report of a run once it has ended or waits for a person, or nothing has happened for a while.

    And what the person is asked, by the run or by a delegate for which it waits. A run under way, in the queue, or whose
    model or delegate's model is away, is waited for. Raises: Unavailable.
    """
    question = await question_of(instance, report)
    if report.ended or question is not None:
        return report, question
    async for news in followed(instance, report.run_id):
        if news is None or news.final or news.status == "waiting":  # no news may be a delegate's question
            report = await instance.show(report.run_id)
            question = await question_of(instance, report)
            if report.ended or question is not None:
                return report, question
    report = await instance.show(report.run_id)
    return report, await question_of(instance, report)


async def chunks(
    instance: InstanceClient, completion: Completion, *, as_it_is_written: bool = True
) -> AsyncIterator[str]:
    """Yield all pieces of the stream. as_it_is_written: False for an answer that has to fit a schema.

    A run that ends without an answer, cannot be reached or is removed ends the stream with an error.
    """
    yield _sent(completion.chunk({"role": "assistant", "content": ""}))
    text, run_id = ChatText(), completion.run_id
    try:
        async for news in followed(instance, run_id):
            if news is None:
                yield KEEP_ALIVE
            for event in () if news is None else news.events:
                added = text.of(event) if as_it_is_written else ""
                if added:
                    yield _sent(completion.chunk({"content": added}))
            if news is None or news.final or news.status == "waiting":
                report = await instance.show(run_id)
                question = await question_of(instance, report)
                if report.ended or question is not None:
                    break
        else:
            report = await instance.show(run_id)
            question = await question_of(instance, report)
        for piece in _last(completion, report, text, question):
            yield piece
    except (NotFound, Unavailable) as error:  # not found once it was removed
        yield _sent({"error": error_object(error)})
    yield DONE


def _last(completion: Completion, report: RunReport, text: ChatText, question: Question | None) -> Iterator[str]:
    if isinstance(report, RunResult) and report.status != "completed":
        yield _sent({"error": error_of_run(report)})
        return
    notice = completion.notice(report, question)
    added = text.rest(report.output or "") if isinstance(report, RunResult) else text.apart(notice)
    if added:
        yield _sent(completion.chunk({"content": added}))
    yield _sent(completion.chunk({}, finished=report))
    if completion.include_usage:
        yield _sent(completion.usage_chunk(report))


def _sent(content: JsonObject) -> str:
    return f"data: {json.dumps(dict(content), separators=(',', ':'))}\n\n"
