"""A run's spans, made from its log when it has ended: the run, each call of the model and of a tool, and of memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from retain.agents.identity import InstanceIdentity
from retain.agents.runs.events import (
    AnswerDropped,
    CallRetried,
    ModelAnswered,
    ModelAsked,
    ModelUnavailable,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunForked,
    ToolAnswered,
    ToolCalled,
)
from retain.agents.runs.open_run import OpenRun
from retain.agents.runs.run_log import Logged
from retain.json_text import read_json
from retain.telemetry.spans import Attribute, Operation, Span, SpanRef, span_of

_MEMORY: Mapping[str, Operation] = {
    "recall_memory": "search_memory",
    "store_memory": "create_memory",
    "learn_fact": "create_memory",
    "forget_memory": "delete_memory",
}
"""What the built-in tools do with long-term memory."""


@dataclass
class _Spans:
    identity: InstanceIdentity
    run: OpenRun
    contents: bool
    root: SpanRef
    asked: dict[int, int] = field(default_factory=dict)
    called: dict[tuple[int, int], tuple[int, ToolCalled]] = field(default_factory=dict)
    retries: dict[int, int] = field(default_factory=dict)

    @property
    def common(self) -> dict[str, Attribute]:
        """What every span of the run says."""
        tenant_id = self.identity.scope.tenant_id
        return {
            "gen_ai.agent.name": self.identity.agent_type,
            "gen_ai.agent.id": self.identity.key,
            "gen_ai.conversation.id": self.identity.instance_id,
            "retain.tenant.id": tenant_id,
            "retain.run.id": self.run.run_id,
        }

    @property
    def model(self) -> str:
        return "" if self.run.basis is None else self.run.basis.model

    def of(self, logged: Logged) -> Iterator[Span]:
        """Yield the spans that end with an event."""
        event, at_ms = logged.event, logged.at_ms
        match event:
            case ModelAsked():
                self.asked[event.turn] = at_ms
            case CallRetried(index=None):
                self.retries[event.turn] = self.retries.get(event.turn, 0) + 1
            case ModelAnswered() | AnswerDropped() | ModelUnavailable():
                yield from self._chat(event, at_ms, logged.seq)
            case ToolCalled():
                self.called.setdefault((event.turn, event.index), (at_ms, event))
            case ToolAnswered():
                yield from self._tool(event, at_ms)

    def _chat(self, event: ModelAnswered | AnswerDropped | ModelUnavailable, at_ms: int, seq: int) -> Iterator[Span]:
        start_ms = self.asked.pop(event.turn, None)
        if start_ms is None:
            return
        attributes: dict[str, Attribute] = {**self.common, "retain.turn": event.turn}
        if self.model:
            attributes["gen_ai.request.model"] = self.model
        if isinstance(event, ModelAnswered | AnswerDropped):
            attributes["gen_ai.usage.input_tokens"] = event.input_tokens
            attributes["gen_ai.usage.output_tokens"] = event.output_tokens
            if event.cached_input_tokens:
                attributes["gen_ai.usage.cache_read.input_tokens"] = event.cached_input_tokens
        if isinstance(event, ModelAnswered) and event.finish_reason is not None:
            attributes["gen_ai.response.finish_reasons"] = [event.finish_reason]
        if event.turn in self.retries:
            attributes["retain.retries"] = self.retries.pop(event.turn)
        if self.contents and isinstance(event, ModelAnswered):
            answer = {"role": "assistant", "parts": [{"type": "text", "content": event.content}]}
            attributes["gen_ai.output.messages"] = json.dumps([answer], ensure_ascii=False)
        error = None if isinstance(event, ModelAnswered) else str(event.code)
        name = f"chat {self.model}".rstrip()
        ref = span_of(self.run.run_id, "chat", event.turn, seq)
        yield Span(ref, name, "chat", "client", start_ms, at_ms, attributes, self.root, error)

    def _tool(self, event: ToolAnswered, at_ms: int) -> Iterator[Span]:
        start_ms, called = self.called.pop((event.turn, event.index), (at_ms, None))
        call_id = f"{self.run.run_id}.{event.turn}.{event.index}"
        attributes: dict[str, Attribute] = {
            **self.common,
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
        }
        if self.contents:
            attributes["gen_ai.tool.call.result"] = event.content
            if called is not None:
                attributes["gen_ai.tool.call.arguments"] = json.dumps(called.arguments, ensure_ascii=False)
        error = _code_of(event.content) if event.failed else None
        ref = span_of(self.run.run_id, "tool", event.turn, event.index)
        name = f"execute_tool {event.name}"
        yield Span(ref, name, "execute_tool", "internal", start_ms, at_ms, attributes, self.root, error)
        operation = _MEMORY.get(event.name)
        if operation is not None:
            yield self._memory(operation, event, called, (start_ms, at_ms), ref)

    def _memory(
        self,
        operation: Operation,
        event: ToolAnswered,
        called: ToolCalled | None,
        times: tuple[int, int],
        tool: SpanRef,
    ) -> Span:
        attributes: dict[str, Attribute] = {**self.common, "gen_ai.memory.store.id": self.identity.scope.tenant_id}
        if operation == "search_memory":
            attributes["gen_ai.memory.record.count"] = len(event.recalled)
            query = None if called is None else called.arguments.get("query")
            if self.contents and isinstance(query, str):
                attributes["gen_ai.memory.query.text"] = query
        else:
            record_id = _field(event.content, "id")
            if isinstance(record_id, str):
                attributes["gen_ai.memory.record.id"] = record_id
        if self.contents:
            attributes["gen_ai.memory.records"] = event.content
        error = _code_of(event.content) if event.failed else None
        ref = span_of(self.run.run_id, "memory", event.turn, event.index)
        return Span(ref, operation, operation, "client", *times, attributes, tool, error)


def run_spans(identity: InstanceIdentity, run: OpenRun, log: Sequence[Logged], *, contents: bool) -> list[Span]:
    """Return the spans of a run that has ended. contents: whether they have texts.

    What was recalled for the run's context is a span without a duration, because the log has only its result. What a fork
    begins with has its spans in the run that did it.
    """
    closing = next(
        (one for one in reversed(log) if isinstance(one.event, RunCompleted | RunFailed | RunCancelled)), None
    )
    if closing is None:
        return []
    root = span_of(run.run_id, "run")
    spans = _Spans(identity, run, contents, root)
    given = next((seq for seq, one in enumerate(log, start=1) if isinstance(one.event, RunForked)), 0)
    found = [span for logged in log[given:] for span in spans.of(logged)]
    begun_ms = min(log[0].at_ms, closing.at_ms if run.basis is None else run.basis.at_ms)
    return [_whole(spans, closing, begun_ms, found), *_recalled(spans, begun_ms), *found]


def _whole(spans: _Spans, closing: Logged, begun_ms: int, found: Sequence[Span]) -> Span:
    run, event = spans.run, closing.event
    attributes: dict[str, Attribute] = dict(spans.common)
    if spans.model:
        attributes["gen_ai.request.model"] = spans.model
    if run.basis is not None:
        attributes["gen_ai.agent.version"] = run.basis.agent_version
    for direction in ("input", "output"):
        name = f"gen_ai.usage.{direction}_tokens"
        attributes[name] = sum(used for span in found if isinstance(used := span.attributes.get(name), int))
    error = None
    if isinstance(event, RunFailed):
        error = str(event.code)
    elif isinstance(event, RunCancelled):
        error = "cancelled"
    parent, forked = run.request.parent, run.state.forked
    links = [span_of(one.run_id, "run") for one in (parent, forked) if one is not None]
    name = f"invoke_agent {spans.identity.agent_type}"
    times = (begun_ms, closing.at_ms)
    return Span(spans.root, name, "invoke_agent", "internal", *times, attributes, None, error, links)


def _recalled(spans: _Spans, at_ms: int) -> Iterator[Span]:
    basis = spans.run.basis
    if basis is None or not (basis.records or basis.profile):
        return
    attributes: dict[str, Attribute] = {
        **spans.common,
        "gen_ai.memory.store.id": spans.identity.scope.tenant_id,
        "gen_ai.memory.record.count": len(basis.records) + len(basis.profile),
    }
    ref = span_of(spans.run.run_id, "memory", "context")
    yield Span(ref, "search_memory", "search_memory", "client", at_ms, at_ms, attributes, spans.root, timed=False)


def _code_of(content: str) -> str:
    error = _field(content, "error")
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, str) else "_OTHER"


def _field(content: str, name: str) -> object:
    try:
        value = read_json(content)
    except ValueError:
        return None
    return value.get(name) if isinstance(value, Mapping) else None
