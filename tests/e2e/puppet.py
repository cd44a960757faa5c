"""A model that does what the run's input says, so that a test decides which tools an agent calls, and when.

The input is JSON: `{"calls": [[tool, arguments], …], "say": text}`. Each call is a turn of its own; then comes the
text, or, where there is none, a JSON list of what the tools answered. Any other input is answered by the script of the
shipped agent whose instructions the model was given. It speaks OpenAI's wire format over HTTP.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Event
from typing import Any

from retain.models.chat import ChatReply, ChatRequest, ToolCall, Usage
from retain.models.scripted.chat import ScriptedChat
from tests.support.model_server import ModelServer, _Answer, chat_reply_to_wire, chat_request_from_wire
from tools.agent_definitions import compile_agents
from tools.paths import ROOT

MODEL = "puppet"
README_MODEL = "gpt-4.1-mini"
"""The model that the README's agent names."""
_ANY_REPLY: dict[str, Any] = {"name": MODEL, "rules": [{"rule": "any", "when": {}, "reply": {"text": "-"}}]}


_AS_IT_IS = "as it is"


def as_it_is(arguments: str) -> dict[str, Any]:
    """Return arguments that the model sends as this text, even if it is not JSON."""
    return {_AS_IT_IS: arguments}


def order(*calls: tuple[str, dict[str, Any]], say: str | None = None) -> str:
    """Return the input that makes the model call these tools."""
    return json.dumps({"calls": calls, "say": say})


@dataclass
class Hold:
    """Requests that wait for their answer.

    text: what their last user message holds. results: how many tools have answered by then.
    """

    text: str
    results: int
    arrived: Event = field(default_factory=Event)
    released: Event = field(default_factory=Event)

    def concerns(self, request: ChatRequest) -> bool:
        """Return whether the request has to wait."""
        last = max(place for place, message in enumerate(request.messages) if message.role == "user")
        results = len([message for message in request.messages[last:] if message.role == "tool"])
        return self.text in request.messages[last].content and results == self.results

    def wait_for_arrival(self) -> None:
        """Return when a request waits. Raises: AssertionError when none comes."""
        assert self.arrived.wait(60), f"the model was not asked about {self.text}"


class Puppet(ModelServer):
    """The model's server. `requests` are what it was asked, in order.

    to_others: what it answers agents that are not shipped, where no order is given. None: such a request breaks.
    """

    def __init__(self, *, to_others: str | None = None) -> None:
        super().__init__(scripts={MODEL: _ANY_REPLY, README_MODEL: _ANY_REPLY})  # type: ignore[dict-item]
        self.requests: list[ChatRequest] = []
        self._holds: list[Hold] = []
        self._to_others = to_others

    @contextmanager
    def holding(self, text: str, *, results: int = 0) -> Iterator[Hold]:
        """Let the runs with this text in their input wait for the model, until the block ends or `released` is set."""
        hold = Hold(text, results)
        self._holds.append(hold)
        try:
            yield hold
        finally:
            self._holds.remove(hold)
            hold.released.set()

    def answer(self, path: str, authorization: str | None, body: dict[str, Any]) -> _Answer:
        """Answer as the order says; refuse what a model's server would refuse."""
        usual = super().answer(path, authorization, body)
        if usual.status != 200 or path != "/v1/chat/completions":
            return usual
        request = chat_request_from_wire(body)
        self.requests.append(request)
        for hold in [hold for hold in self._holds if hold.concerns(request)]:
            hold.arrived.set()
            hold.released.wait(120)
        wire = chat_reply_to_wire(_reply(request, self._to_others), body["model"])
        for call in wire["choices"][0]["message"].get("tool_calls", []):
            arguments = json.loads(call["function"]["arguments"])
            call["function"]["arguments"] = arguments.get(_AS_IT_IS, call["function"]["arguments"])
        return replace(usual, body=wire)


def _reply(request: ChatRequest, to_others: str | None) -> ChatReply:
    last = max(place for place, message in enumerate(request.messages) if message.role == "user")
    text = request.messages[last].content
    if text.startswith("{"):
        results = [message.content for message in request.messages[last:] if message.role == "tool"]
        wanted = json.loads(text)
        return obey(wanted, results) if "calls" in wanted else _outside_of_runs(wanted)
    scripts = [
        script for instructions, script in _shipped() if request.messages[0].content.startswith(instructions.strip())
    ]
    if not scripts and to_others is not None:
        return ChatReply(to_others, (), Usage(input_tokens=10, output_tokens=5))
    [script] = scripts
    return asyncio.run(ScriptedChat(script).complete(request))


def _outside_of_runs(wanted: dict[str, Any]) -> ChatReply:
    """Return a judge's verdict, or the answer of a memory."""
    text = json.dumps({"score": 1, "reason": "as ordered"}) if "criteria" in wanted else "As ordered."
    return ChatReply(text, (), Usage(input_tokens=10, output_tokens=5, cached_input_tokens=4))


@cache
def _shipped() -> list[tuple[str, Any]]:
    """Return the instructions of each shipped agent with its script."""
    compiled = compile_agents(ROOT / "agents")
    agents = compiled["agents"].values()
    return [(agent["instructions"], compiled["scripts"][agent["model"]["script"]]) for agent in agents]


def obey(wanted: dict[str, Any], results: list[str]) -> ChatReply:
    """Return the next answer of a model with this order, after the tools' answers."""
    usage = Usage(input_tokens=10, output_tokens=5, cached_input_tokens=4)
    if len(results) < len(wanted["calls"]):
        tool, arguments = wanted["calls"][len(results)]
        return ChatReply("", (ToolCall(f"call_{len(results)}", tool, arguments),), usage)
    if wanted["say"] is not None:
        return ChatReply(wanted["say"], (), usage)
    return ChatReply(json.dumps([json.loads(result) for result in results]), (), usage)
