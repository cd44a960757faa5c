"""What a chat completion says of a run: whole, or in chunks.

Source: https://platform.openai.com/docs/api-reference/chat/object
"""

from __future__ import annotations

from dataclasses import dataclass

from retain.agents.calls.report import DelegateAwaited, RunReport, RunResult, RunUsage
from retain.agents.front_ends.question import Question
from retain.agents.identity import InstanceIdentity
from retain.identifiers import time_of
from retain.json_text import Json, JsonObject

ID_PREFIX = "chatcmpl-"


@dataclass(frozen=True, slots=True)
class Completion:
    """The completion that a run is. include_usage: whether the last chunk says what the run spent."""

    identity: InstanceIdentity
    run_id: str
    include_usage: bool = False

    def whole(self, report: RunReport, question: Question | None = None) -> JsonObject:
        """Return the completion: the run's answer, or what it waits for instead. question: as of `notice`."""
        ended = report if isinstance(report, RunResult) else None
        text = self.notice(report, question) if ended is None else ended.output or ""
        message: JsonObject = {"role": "assistant", "content": text, "refusal": None}
        choice: JsonObject = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(report)}
        return {
            **self._named("chat.completion"),
            "choices": [choice],
            "usage": _usage(ended),
            "retain": report.to_json(),
        }

    def chunk(self, delta: JsonObject, *, finished: RunReport | None = None) -> JsonObject:
        """Return a piece of the completion. finished: the run's report, in the last one with text."""
        reason = None if finished is None else finish_reason(finished)
        choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        shown: dict[str, Json] = {**self._named("chat.completion.chunk"), "choices": [choice]}
        if self.include_usage:
            shown["usage"] = None
        if finished is not None:
            shown["retain"] = finished.to_json()
        return shown

    def usage_chunk(self, report: RunReport) -> JsonObject:
        """Return the piece that says what the run spent."""
        spent = _usage(report if isinstance(report, RunResult) else None)
        return {**self._named("chat.completion.chunk"), "choices": [], "usage": spent}

    def notice(self, report: RunReport, question: Question | None) -> str:
        """Return what a person reads instead of an answer that does not come yet.

        question: what a person is asked, by the run or by a delegate for which it waits.
        """
        if question is not None:
            return (
                f"This waits until a person approves the call of {question.call} (call {question.asked.call}): answer it"
                f" with POST {_address(question.asker.identity, question.run_id)}/resume."
            )
        run = _address(self.identity, self.run_id)
        awaited = None if isinstance(report, RunResult) else report.awaited
        if isinstance(awaited, DelegateAwaited):
            other = awaited.run
            return f"This waits for run {other.run_id} of {other.agent_type}, which itself waits. See GET {run}."
        return f"This is not answered yet, and continues. See GET {run}."

    def _named(self, kind: str) -> dict[str, Json]:
        return {
            "id": f"{ID_PREFIX}{self.run_id}",
            "object": kind,
            "created": time_of(self.run_id) // 1000,
            "model": self.identity.agent_type,
        }


def _address(identity: InstanceIdentity, run_id: str) -> str:
    tenant_id, place = identity.scope.tenant_id, f"{identity.agent_type}/instances/{identity.instance_id}"
    return f"/v1/agents/{tenant_id}/{place}/runs/{run_id}"


def finish_reason(report: RunReport) -> str:
    """Return why the answer ends: what cut it short, else `stop`. Tools are the agent's own and never a reason."""
    reason = report.finish_reason if isinstance(report, RunResult) else None
    return reason if reason in ("length", "content_filter") else "stop"


def _usage(result: RunResult | None) -> JsonObject:
    spent = RunUsage(0, 0) if result is None else result.usage
    return {
        "prompt_tokens": spent.input_tokens,
        "completion_tokens": spent.output_tokens,
        "total_tokens": spent.input_tokens + spent.output_tokens,
        "prompt_tokens_details": {"cached_tokens": spent.cached_input_tokens},
    }
