"""Chat completions as the official client reads them, from the routes on the host."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from openai.types.chat import ChatCompletion, ChatCompletionChunk

from retain.agents.catalogue import AgentCatalogue
from retain.agents.context import AgentsContext
from retain.agents.front_ends.chat_routes import ROUTER
from retain.agents.front_ends.chat_stream import DONE
from retain.application_keys.scope import OwnTenant
from retain.application_keys.tokens import BoundUser
from retain.http import Request, Response
from retain.roles.role import Authority
from tests.agents.stepped_chat import SteppedChat
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
CLERK: dict[str, Any] = {"tools": ["pay"], "approval": ["pay"]}
PAY = ("pay", {"order": "AB-1"})
HELLO = {"role": "user", "content": "hello"}
ANN = BoundUser("ann")


def wanted(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "clerk", "messages": list(messages) or [HELLO], **more}


async def posted(
    context: AgentsContext,
    body: Any,
    *,
    headers: dict[str, str] | None = None,
    bound: BoundUser | None = None,
    authority: Authority | None = None,
    method: str = "POST",
    path: str = "/v1/chat/completions",
) -> Response:
    authority = authority or OwnTenant("acme")
    text = "" if body is None else json.dumps(body)
    return await ROUTER.handle(
        context, Request(method, path, {}, headers or {}, text, "host", "request-1", authority=authority, bound=bound)
    )


async def completed(context: AgentsContext, body: Any, **more: Any) -> ChatCompletion:
    """Return what the official client reads of the answer."""
    answer = await posted(context, body, **more)
    assert answer.status == 200, answer.body
    return ChatCompletion.model_validate_json(answer.body, strict=True)


async def streamed(context: AgentsContext, body: Any, **more: Any) -> list[ChatCompletionChunk]:
    answer = await posted(context, {**body, "stream": True}, **more)
    return [ChatCompletionChunk.model_validate_json(data, strict=True) for data in await events(answer)]


async def events(answer: Response) -> list[str]:
    assert answer.stream is not None
    pieces = [piece async for piece in answer.stream]
    assert pieces.pop() == DONE
    return [piece.removeprefix("data: ").strip() for piece in pieces if not piece.startswith(":")]


def text_of(chunks: list[ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def read_by(chat: SteppedChat, number: int = -1) -> list[tuple[str, str]]:
    """Return what the model read after its instructions."""
    return [(message.role, message.content) for message in chat.requests[number].messages[1:]]
