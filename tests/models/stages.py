"""The stages on which chat adapters keep their contracts: an adapter, wrapped as selection wraps it, and its provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retain.models.chat import ChatModel, ChatReply, ChatRequest, OnText
from retain.models.providers.structured import CheckedChat
from retain.models.scripted.chat import Script, ScriptedChat
from tests.models.conftest import Waits
from tests.support.model_server import Failure, ModelServer
from tests.support.workers_ai import WorkersAiStandIn


@dataclass
class ServerStage:
    """An adapter that talks HTTP."""

    model: ChatModel
    server: ModelServer
    waits: Waits

    def say(self, reply: ChatReply) -> None:
        self.server.say(reply)

    def fail(self, failure: Failure, *, times: int = 1) -> None:
        self.server.fail(failure, times=times)

    @property
    def asked(self) -> int:
        return len(self.server.received)

    @property
    def waited(self) -> int:
        return len(self.waits.asked_s)


@dataclass
class BindingStage:
    """The adapter of Workers AI's binding."""

    model: ChatModel
    platform: WorkersAiStandIn
    waits: Waits

    def say(self, reply: ChatReply) -> None:
        self.platform.say(reply)

    def fail(self, failure: Failure, *, times: int = 1) -> None:
        self.platform.fail(failure, times=times)

    @property
    def asked(self) -> int:
        return len(self.platform.calls)

    @property
    def waited(self) -> int:
        return len(self.waits.asked_s)


class ScriptedStage:
    """The scripted model: each line is a script of one rule. A cut answer is a longer line that the request's limit cuts."""

    def __init__(self) -> None:
        self.asked = 0
        self._lines: list[Script] = []
        self.model: ChatModel = CheckedChat(self)

    @property
    def name(self) -> str:
        return "scripted/lines"

    def say(self, reply: ChatReply) -> None:
        more = "time there was no end" if reply.cut else ""
        answer: Any = {"text": reply.content + more} if reply.content or not reply.tool_calls else {}
        answer["calls"] = [{"tool": call.name, "arguments": dict(call.arguments)} for call in reply.tool_calls]
        self._lines.append({"name": "lines", "rules": [{"rule": "any", "when": {}, "reply": answer}]})

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        self.asked += 1
        return await ScriptedChat(self._lines.pop(0)).complete(request, on_text)
