"""Probes that run in the Worker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any

from retain import errors
from tests.workerd.inside.platform import bindings, js
from tests.workerd.inside.tier_probes import tier_calls

Probe = Callable[[Any, dict[str, Any]], Awaitable[Any]]


async def write_later(env: Any, marker: str) -> None:
    """Write the marker into D1 after several turns of the event loop, long after the answer left."""
    sql = bindings.D1(env.DB)
    await sql.run("CREATE TABLE IF NOT EXISTS background_marker (marker TEXT PRIMARY KEY)")
    await asyncio.sleep(0.05)
    await sql.run("INSERT INTO background_marker VALUES (?)", marker)


async def _background(env: Any, asked: dict[str, Any]) -> Any:
    bindings.in_background(write_later(env, asked["marker"]))
    return {}


async def _failing_background(_env: Any, asked: dict[str, Any]) -> Any:
    async def fail() -> None:
        raise {"retain": errors.Unavailable("planned"), "other": ValueError("planned")}[asked["kind"]]

    bindings.in_background(fail())
    return {}


async def _marked(env: Any, asked: dict[str, Any]) -> Any:
    sql = bindings.D1(env.DB)
    await sql.run("CREATE TABLE IF NOT EXISTS background_marker (marker TEXT PRIMARY KEY)")
    return len((await sql.run("SELECT 1 FROM background_marker WHERE marker = ?", asked["marker"])).rows) == 1


async def _refused(env: Any, asked: dict[str, Any]) -> Any:
    """Call an instance that refuses; return the error as it arrives."""
    instances = bindings.DurableInstances(getattr(env, asked["binding"]))
    try:
        answer = await instances.call(asked["name"], asked["method"], asked["request"])
    except errors.RetainError as error:
        return shown_error(error)
    return {"answer": answer}


def shown_error(error: errors.RetainError) -> dict[str, Any]:
    """Return everything that a caller can see of the error."""
    return {
        "class": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "details": dict(error.details),
    }


def described_error(shown: Mapping[str, Any]) -> Exception:
    """Return the error that `shown_error` describes, or a ValueError for a class that is not one of Retain's."""
    if shown["class"] == "ValueError":
        return ValueError(shown["message"])
    kind: type[errors.RetainError] = getattr(errors, shown["class"])
    return kind(shown["message"], code=shown["code"], **shown["details"])


class _AiBinding:
    """Workers AI's binding for chat: it returns a ReadableStream, an object, or raises, as it is asked to."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._asked = asked

    async def run(self, model: str, inputs: Mapping[str, Any]) -> Any:
        if self._asked["error"] is not None:
            await js.Promise.reject(js.Error.new(self._asked["error"]))
        if not inputs.get("stream"):
            return {"response": self._asked["text"]}
        pieces = "".join(f"data: {json.dumps({'response': piece})}\n\n" for piece in self._asked["text"].split("|"))
        return js.Response.new(f"{pieces}data: [DONE]\n\n").body


async def _workers_ai(_env: Any, asked: dict[str, Any]) -> Any:
    """Ask a model of Workers AI through the platform's adapter; return its reply and the pieces that it streamed."""
    from retain.models.chat import ChatMessage, ChatRequest
    from retain.models.providers.workers_ai import WorkersAiChat
    from retain.models.retry import Retries

    given: list[str] = []

    async def on_text(text: str) -> None:
        given.append(text)

    ai = bindings.WorkersAi(SimpleNamespace(AI=_AiBinding(asked)))
    model = WorkersAiChat(ai, ai.stream, Retries(asyncio.sleep, lambda: 0.0, attempts=1), model="@cf/any")
    try:
        request = ChatRequest([ChatMessage("user", "?")])
        reply = await model.complete(request, on_text if asked["stream"] else None)
    except errors.RetainError as error:
        return shown_error(error)
    return {"content": reply.content, "pieces": given}


PROBES: dict[str, Probe] = {
    "tier_calls": tier_calls,
    "background": _background,
    "failing_background": _failing_background,
    "marked": _marked,
    "refused": _refused,
    "workers_ai": _workers_ai,
}
