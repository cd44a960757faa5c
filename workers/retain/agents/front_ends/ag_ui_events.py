"""A run's events as those of AG-UI, the Agent User Interaction Protocol.

A run of AG-UI ends where it asks a person something, and another one continues from the answer; Retain's run is the same one
before and after. So the encoding reads a run from its beginning always, and leaves out what was sent before.
Source: https://docs.ag-ui.com/spec/1.0/events/lifecycle
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from retain.agents.calls.answers import News, RunStreamEvent
from retain.agents.calls.fields import Fields
from retain.agents.calls.requests import BEGINNING
from retain.agents.calls.run_request import RunReference
from retain.agents.execution.stream import CLOSING
from retain.agents.front_ends.question import Question
from retain.json_text import Json, JsonObject

PROTOCOL_VERSION = "1.0"
"""The version of AG-UI that is spoken."""
_ANSWER_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string", "maxLength": 1000}},
    "required": ["approved"],
    "additionalProperties": False,
}
"""What the payload of the answer to an approval has to be."""


@dataclass(frozen=True, slots=True)
class AgUiEvent:
    """One event. id: of the log's event with which it was sent, for a client that reconnects; None for one without."""

    content: JsonObject
    id: int | None = None

    def text(self) -> str:
        """Return the event as it is sent: its data is one line."""
        data = f"data: {json.dumps(dict(self.content), separators=(',', ':'))}\n\n"
        return data if self.id is None else f"id: {self.id}\n{data}"


@dataclass(frozen=True, slots=True)
class AgUiRun:
    """How the client names what it asked for. ignored: the parts of its input that have no effect."""

    thread_id: str
    run_id: str
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """What an answer is about: a call of the run, and whether it is the question of the delegate that the call began."""

    call: str
    delegated: bool = False

    def is_asked_by(self, event: RunStreamEvent) -> bool:
        """Return whether an event is where the run asked, or began to wait for the delegate that did."""
        name = "run.suspended" if self.delegated else "approval.requested"
        return event.name == name and event.data.get("call") == self.call


class AgUiEncoding:
    """The events of one run, in order, as one stream.

    reference: Retain's own names of the run. after: the id of the last event that the client has; those up to it are not
    sent again. answered: the question whose answer begins the stream: what came before it is not sent again.
    """

    def __init__(
        self, run: AgUiRun, reference: RunReference, *, after: int = BEGINNING, answered: AnsweredQuestion | None = None
    ) -> None:
        self._run = run
        self._reference = reference
        self._after = after
        self._answered = answered
        self._id = BEGINNING
        self._message: str | None = None
        self._written: dict[int, str] = {}
        self._rewritten: dict[int, int] = {}
        self._step: int | None = None
        self._asked: RunStreamEvent | None = None
        self._suspended: RunStreamEvent | None = None
        self._calls: set[str] = set()
        self.ended = False

    def beginning(self) -> Iterator[AgUiEvent]:
        """Yield what comes before anything that happens, unless the client has it."""
        if self._after == BEGINNING:
            ignored: list[Json] = list(self._run.ignored)
            retain = {**self._reference.to_json(), **({"ignored": ignored} if ignored else {})}
            names: JsonObject = {"threadId": self._run.thread_id, "runId": self._run.run_id}
            versioned: JsonObject = {"protocolVersion": PROTOCOL_VERSION, "metadata": {"retain": retain}}
            yield AgUiEvent({"type": "RUN_STARTED", **names, **versioned})

    def encode(self, news: News) -> Iterator[AgUiEvent]:
        """Yield what to send of the news."""
        for event in news.events:
            sent = list(self._encoded(event))
            if event.id is not None:
                self._id = event.id
            if self._answered is not None:
                if self._answered.is_asked_by(event):
                    self._answered = self._step = None
                continue
            if self._id <= self._after and (event.id is not None or self._id < self._after):
                continue
            for number, content in enumerate(sent, start=1):
                yield AgUiEvent(content, event.id if number == len(sent) else None)
        if self._asked is not None and news.status == "waiting" and self._answered is None:
            yield from map(AgUiEvent, self._interrupted(self._asked))

    @property
    def awaits_delegate(self) -> bool:
        """Whether the run waits for a delegate, by the events that were encoded: a person may be asked there."""
        return self._suspended is not None and self._answered is None and not self.ended

    def asked_below(self, question: Question) -> Iterator[AgUiEvent]:
        """Yield the end of AG-UI's run whose delegate, or a delegate of that one, asks a person."""
        if self._suspended is not None:
            call, identity = Fields(self._suspended.data), question.asker.identity
            asked = question.asked
            named = RunReference(question.run_id, identity.agent_type, identity.instance_id)
            interrupt = {
                **self._interrupt(call, f"May {question.call} be called?", asked.expires_at_ms),
                "id": delegated_interrupt_id(self._reference.run_id, call.text("call"), named, asked.call),
                "metadata": {"retain": {**named.to_json(), **asked.to_json()}},
            }
            yield from map(AgUiEvent, self._interrupts(interrupt))

    def broken_off(self, code: str, message: str) -> Iterator[AgUiEvent]:
        """Yield the end of a stream whose run continues, or cannot be reached."""
        yield AgUiEvent({"type": "RUN_ERROR", "code": code, "message": message})

    def _encoded(self, event: RunStreamEvent) -> Iterator[JsonObject]:
        data = Fields(event.data)
        if event.name in CLOSING:
            yield from self._closed(event)
            return
        turn = data.integer_or_none("turn")
        if turn is not None and turn != self._step:
            yield from self._between_steps()
            self._step = turn
            yield {"type": "STEP_STARTED", "stepName": f"turn {turn}"}
        match event.name:
            case "text.delta":
                yield from self._text(data.integer("turn"), data.integer("offset"), data.text("text"))
            case "text.completed":
                yield from self._text(data.integer("turn"), 0, data.text("text"))
                yield from self._end_message()
            case "tool.called":
                yield from self._call(data)
            case "tool.answered":
                yield from self._result(data)
            case "approval.requested":
                self._asked = event
                yield from self._call(data)
                yield _custom(event)
            case "approval.answered":
                self._asked = None
                yield _custom(event)
            case "run.suspended" | "run.resumed":
                self._suspended = event if event.name == "run.suspended" else None
                yield _custom(event)
            case "answer.dropped":
                yield from self._end_message()
                self._again(data.integer("turn"))
                yield _custom(event)
            case _:
                yield _custom(event)

    def _text(self, turn: int, offset: int, text: str) -> Iterator[JsonObject]:
        """Yield what is new of an answer, given from `offset` on. One that was begun again is another message."""
        written = self._written.get(turn, "")
        whole = written[:offset] + text
        if not whole.startswith(written):
            yield from self._end_message()
            self._again(turn)
            written = ""
        self._written[turn] = whole
        if whole == written:
            return
        if self._message is None:
            self._message = self._message_of(turn)
            yield {"type": "TEXT_MESSAGE_START", "messageId": self._message, "role": "assistant"}
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._message, "delta": whole[len(written) :]}

    def _again(self, turn: int) -> None:
        """Note that the answer of a turn begins again, as another message."""
        if self._written.pop(turn, ""):
            self._rewritten[turn] = self._rewritten.get(turn, 0) + 1

    def _message_of(self, turn: int) -> str:
        again = self._rewritten.get(turn)
        return f"{self._reference.run_id}.{turn}" + (f".{again}" if again else "")

    def _end_message(self) -> Iterator[JsonObject]:
        if self._message is not None:
            yield {"type": "TEXT_MESSAGE_END", "messageId": self._message}
            self._message = None

    def _between_steps(self) -> Iterator[JsonObject]:
        yield from self._end_message()
        if self._step is not None:
            yield {"type": "STEP_FINISHED", "stepName": f"turn {self._step}"}
            self._step = None

    def _call_id(self, data: Fields) -> str:
        return f"{self._reference.run_id}.{data.text('call')}"

    def _call(self, data: Fields) -> Iterator[JsonObject]:
        """Yield a call, once: one that a person approves was there before it is made."""
        call_id = self._call_id(data)
        if call_id in self._calls:
            return
        self._calls.add(call_id)
        yield from self._end_message()
        parent = self._message_of(data.integer("turn"))
        started: JsonObject = {"toolCallId": call_id, "toolCallName": data.text("name"), "parentMessageId": parent}
        yield {"type": "TOOL_CALL_START", **started}
        arguments = json.dumps(dict(data.object("arguments").content), ensure_ascii=False)
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": arguments}
        yield {"type": "TOOL_CALL_END", "toolCallId": call_id}

    def _result(self, data: Fields) -> Iterator[JsonObject]:
        call_id = self._call_id(data)
        result: dict[str, Json] = {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"{call_id}.result",
            "toolCallId": call_id,
            "content": data.text("content"),
            "role": "tool",
        }
        if data.flag("failed"):
            result["metadata"] = {"retain": {"failed": True}}
        yield result

    def _interrupted(self, asked: RunStreamEvent) -> Iterator[JsonObject]:
        """Yield the end of AG-UI's run that asks a person whether a call may be made."""
        data = Fields(asked.data)
        yield from self._interrupts(
            self._interrupt(data, f"May {data.text('name')} be called?", data.integer("expires_at_ms"))
        )

    def _interrupt(self, data: Fields, message: str, expires_at_ms: int) -> JsonObject:
        """Return the question about a call of the run. data: of the event that names the call."""
        expires = datetime.fromtimestamp(expires_at_ms / 1000, UTC)
        return {
            "id": interrupt_id(self._reference.run_id, data.text("call")),
            "reason": "tool_call",
            "message": message,
            "toolCallId": self._call_id(data),
            "responseSchema": _ANSWER_SCHEMA,
            "expiresAt": expires.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }

    def _interrupts(self, interrupt: JsonObject) -> Iterator[JsonObject]:
        yield from self._between_steps()
        self.ended = True
        yield self._finished({"type": "interrupt", "interrupts": [interrupt]})

    def _closed(self, event: RunStreamEvent) -> Iterator[JsonObject]:
        yield from self._between_steps()
        self._asked = None
        self.ended = True
        report = Fields(event.data)
        used = report.object("usage")
        counts: dict[str, Json] = {
            "inputTokens": used.integer("input_tokens"),
            "outputTokens": used.integer("output_tokens"),
            "totalTokens": used.integer("input_tokens") + used.integer("output_tokens"),
            "cachedInputTokens": used.integer("cached_input_tokens", default=0),
        }
        error = report.object_or_none("error")
        if event.name == "run.failed" and error is not None:
            failed: JsonObject = {"code": error.text("code"), "message": error.text("message"), "usage": [counts]}
            yield {"type": "RUN_ERROR", **failed}
            return
        outcome = "cancelled" if event.name == "run.cancelled" else "success"
        yield {**self._finished({"type": outcome}), "result": dict(event.data), "usage": [counts]}

    def _finished(self, outcome: JsonObject) -> JsonObject:
        names: JsonObject = {"threadId": self._run.thread_id, "runId": self._run.run_id}
        return {"type": "RUN_FINISHED", **names, "outcome": outcome}


def interrupt_id(run_id: str, call: str) -> str:
    """Return the id of the question about a call."""
    return f"{run_id}:{call}"


def delegated_interrupt_id(run_id: str, call: str, delegate: RunReference, asked: str) -> str:
    """Return the id of a question that a delegate asks. call: of the run that waits for it. asked: the delegate's call."""
    return ":".join((interrupt_id(run_id, call), delegate.agent_type, delegate.instance_id, delegate.run_id, asked))


def _custom(event: RunStreamEvent) -> JsonObject:
    return {"type": "CUSTOM", "name": event.name, "value": dict(event.data)}
