"""One request to the model: what it reads, and what follows from the answer or the failure."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace

from retain.agents.calls.report import UNREPORTED, ServerReport
from retain.agents.calls.tokens import Estimate
from retain.agents.definitions import AgentDefinition
from retain.agents.execution.live_text import LiveText, begun
from retain.agents.execution.outage import outage_of
from retain.agents.files.sent_files import SentFiles
from retain.agents.runs.compaction import NoRoom, compacted, history
from retain.agents.runs.events import AnswerDropped, CallRetried, ModelAnswered, ModelAsked, RunFailed, to_json
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import OpenRun
from retain.agents.runs.run_state import MAX_ANSWERS, RunState, dropped_in
from retain.agents.tools.built_in import Tool
from retain.errors import RetainError, SchemaMismatch, StreamInterrupted, Unavailable, UnusableAnswer
from retain.errors.codes import Code, ForeignCode
from retain.models.chat import ChatMessage, ChatModel, ChatReply, ChatRequest, OnText, Usage, usage_of
from retain.models.retry import OnRetry, retries_observed
from retain.models.unicode import valid_text
from retain.ports import Clock

MAX_ANSWER_BYTES = 768 * 1024
"""Largest answer of a model, as JSON. Its entry in the outbox, where it is JSON within JSON, fits a row of 2 MB."""
ENVELOPE_BYTES = 1024
"""More than an answer, and each call in it, takes as JSON besides its texts."""
MAX_DROPPED_CHARACTERS = 16 * 1024
"""How much of a dropped answer's text the log keeps."""
REMINDERS = {
    "answer_cut": "Your last answer reached its limit of {limit} tokens before it was complete. Answer again, briefly.",
    "empty_answer": "Your last answer was empty. Answer again.",
    "too_many_tool_calls": "Your last answer called more tools at once than {calls}, and none was called. Call fewer.",
}
"""What the model reads after an answer that was dropped for this reason."""

_log = logging.getLogger(__name__)


class _Stopped(Exception):
    """The run was cancelled while the model was writing."""


class Asking:
    """Asks the model of one run's loop."""

    def __init__(
        self,
        definition: AgentDefinition,
        journal: Journal,
        model: ChatModel,
        tools: Mapping[str, Tool],
        live: LiveText,
        clock: Clock,
        files: SentFiles,
    ) -> None:
        self._definition = definition
        self._journal = journal
        self._model = model
        self._specs = [tool.spec for tool in tools.values()]
        self._live = live
        self._clock = clock
        self._files = files
        self._estimate = Estimate.of(model.name)

    async def ask(self, run: OpenRun, turn: int) -> OpenRun:
        """Ask for the turn's answer, and log it, or why there is none and what happens then.

        An answer that cannot be used is dropped: it is counted, and the model is asked again. While the model's server is
        down the run waits. Any other failure ends the run.
        """
        limit = self._definition.limits.context_tokens
        reminder = self._reminder(run.state, turn)
        room = limit - self._estimate.specs(self._specs) - self._estimate.messages(reminder)
        try:
            context = compacted(run.messages, history(run.state), room, self._estimate)
        except NoRoom:
            return self._fail(run, turn, "context_full", f"the run outgrew its context of {limit} tokens")
        run = self._journal.append(run, ModelAsked(turn, context.cut, context.messages_cut))
        settings = self._definition.model
        messages = [_valid(one) for one in (*context.messages, *reminder)]
        schema = run.request.output_schema or self._definition.output_schema
        request = ChatRequest(messages, self._specs, settings.max_output_tokens, settings.temperature, schema)
        try:
            with retries_observed(self._on_retry(run, turn)):
                async with self._files.of(request) as whole:
                    reply = await self._complete(run, turn, whole)
        except _Stopped:
            return self._broken(run, turn, request, Usage(), "cancelled", "the run was cancelled")
        except StreamInterrupted as error:
            run = self._broken(run, turn, request, usage_of(error), error.code, error.message)
            if len(dropped_in(run.state, turn, broken=True)) < MAX_ANSWERS:
                return run
            return self._unavailable(run, turn, error)
        except UnusableAnswer as error:
            return self._dropped(run, turn, error.code, error.message, self._counted(request, usage_of(error), ""))
        except Unavailable as error:
            return self._unavailable(run, turn, error)
        except SchemaMismatch as error:
            run = self._dropped(run, turn, error.code, error.message, self._counted(request, usage_of(error), ""))
            return self._fail(run, turn, error.code, f"{error.message}: {_broken_rule(error)}")
        except RetainError as error:
            if usage_of(error) != Usage():
                run = self._dropped(run, turn, error.code, error.message, usage_of(error))
            return self._failed(run, turn, error)
        except Exception:  # noqa: BLE001 -- whatever an adapter does, its run has to end
            _log.exception("a model's adapter failed unexpectedly", extra={"run_id": run.run_id})
            return self._dropped(run, turn, "internal", "an unexpected error occurred; it was logged", Usage())
        return self._answered(run, turn, request, reply)

    def _reminder(self, state: RunState, turn: int) -> tuple[ChatMessage, ...]:
        """Return what the model reads about its last answer, if that was dropped."""
        dropped = dropped_in(state, turn)
        words = REMINDERS.get(dropped[-1].code) if dropped else None
        if words is None:
            return ()
        limit, calls = self._definition.model.max_output_tokens, self._definition.limits.max_tool_calls
        return (ChatMessage("user", words.format(limit=limit, calls=calls)),)

    async def _complete(self, run: OpenRun, turn: int, request: ChatRequest) -> ChatReply:
        """Return the model's answer. Raises: as the model; _Stopped as soon as the run is cancelled."""
        if run.request.stream:
            self._live.begin(run.run_id, turn)
        on_text = self._on_text(run) if run.request.stream else None
        answer = begun(self._model.complete(request, on_text))
        try:
            if not await self._live.ended(answer, lambda: self._is_cancelled(run)):
                raise _Stopped
            return answer.result()
        finally:
            if not answer.done():
                answer.cancel()
                await asyncio.wait((answer,))

    def _is_cancelled(self, run: OpenRun) -> bool:
        return self._journal.caught_up(run).state.cancel is not None

    def _on_text(self, run: OpenRun) -> OnText:
        async def on_text(piece: str) -> None:
            if self._is_cancelled(run):
                raise _Stopped
            self._live.add(piece)

        return on_text

    def _on_retry(self, run: OpenRun, turn: int) -> OnRetry:
        def on_retry(error: Unavailable, delay_ms: int) -> None:
            self._journal.append(run, CallRetried(turn, None, error.code, delay_ms, ServerReport.of(error)))

        return on_retry

    def _answered(self, run: OpenRun, turn: int, request: ChatRequest, reply: ChatReply) -> OpenRun:
        calls = "".join(f"{call.name}{json.dumps(dict(call.arguments))}" for call in reply.tool_calls)
        usage = self._counted(request, reply.usage, reply.content + calls)
        if not reply.tool_calls and not reply.content.strip():
            return self._dropped(run, turn, "empty_answer", "the model answered nothing", usage)
        if len(reply.tool_calls) > self._definition.limits.max_tool_calls:
            message = f"the model called {len(reply.tool_calls)} tools at once"
            return self._dropped(run, turn, "too_many_tool_calls", message, usage)
        read, written, cached = usage.input_tokens, usage.output_tokens, usage.cached_input_tokens
        answer = ModelAnswered(turn, reply.content, reply.tool_calls, read, written, reply.finish_reason, cached)
        if _is_too_large(answer, len(calls)):
            message = f"the model's answer is larger than {MAX_ANSWER_BYTES} bytes"
            run = self._dropped(run, turn, "answer_too_large", message, usage)
            return self._fail(run, turn, "answer_too_large", message)
        run = self._journal.append(run, answer)
        self._live.logged(run.run_id, turn, run.seq)
        return run

    def _broken(
        self, run: OpenRun, turn: int, request: ChatRequest, usage: Usage, code: Code | ForeignCode, message: str
    ) -> OpenRun:
        """Log an answer that broke off. What it cost is estimated when its server did not say."""
        usage = self._counted(request, usage, self._live.written(run.run_id, turn))
        return self._dropped(run, turn, code, message, usage)

    def _counted(self, request: ChatRequest, usage: Usage, written: str) -> Usage:
        """Return the usage, with an estimate of what the server did not count: no answer is free."""
        read = usage.input_tokens or self._estimate.messages(request.messages) + self._estimate.specs(self._specs)
        return Usage(read, usage.output_tokens or self._estimate.text(written), usage.cached_input_tokens)

    def _dropped(self, run: OpenRun, turn: int, code: Code | ForeignCode, message: str, usage: Usage) -> OpenRun:
        _log.warning("an answer was dropped", extra={"run_id": run.run_id, "code": code})
        text = valid_text(self._live.written(run.run_id, turn)[:MAX_DROPPED_CHARACTERS])
        spent = (usage.input_tokens, usage.output_tokens, text, usage.cached_input_tokens)
        dropped = AnswerDropped(turn, code, message, *spent)
        return self._journal.append(run, dropped)

    def _unavailable(self, run: OpenRun, turn: int, error: Unavailable) -> OpenRun:
        limit_ms = int(self._definition.limits.model_wait_minutes * 60_000)
        run = self._journal.caught_up(run)
        outage = outage_of(run.run_id, turn, error, run.state.outage, self._clock(), limit_ms)
        if outage is None:
            return self._failed(run, turn, error)
        _log.warning("the run waits for its model", extra={"run_id": run.run_id, "code": error.code})
        return self._journal.append(run, outage)

    def _failed(self, run: OpenRun, turn: int, error: RetainError) -> OpenRun:
        server = ServerReport.of(error)
        _log.warning("the model failed", extra={"run_id": run.run_id, "code": error.code, **server.to_json()})
        return self._fail(run, turn, error.code, error.message, server)

    def _fail(
        self, run: OpenRun, turn: int, code: Code | ForeignCode, message: str, server: ServerReport = UNREPORTED
    ) -> OpenRun:
        return self._journal.close(run, RunFailed(turn, code, message, server))


def _is_too_large(answer: ModelAnswered, characters: int) -> bool:
    """Return whether an answer is larger than it may be. characters: of the names and arguments of its calls.

    A character takes at most twelve in JSON, so most answers need not be written for it.
    """
    characters += len(answer.content) + sum(len(call.id) + len(call.problem or "") for call in answer.calls)
    characters += sum(len(json.dumps(dict(call.reasoning))) for call in answer.calls if call.reasoning)
    if 12 * characters + ENVELOPE_BYTES * (1 + len(answer.calls)) <= MAX_ANSWER_BYTES:
        return False
    return len(json.dumps(to_json(answer))) > MAX_ANSWER_BYTES


def _valid(message: ChatMessage) -> ChatMessage:
    content = valid_text(message.content)
    return message if content == message.content else replace(message, content=content)


def _broken_rule(error: SchemaMismatch) -> str:
    path, problem = error.details.get("path"), error.details.get("problem")
    return f"at {path}, {problem}" if path else f"{problem}"
