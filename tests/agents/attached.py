"""Agents that take files, and a desk at which tests send them, on the host."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

from retain.agents.catalogue import AgentCatalogue
from retain.agents.context import AgentsContext
from retain.agents.routes import ROUTER
from retain.application_keys.tokens import BoundUser
from retain.attachments.attachment import Attachment
from retain.attachments.store import NewAttachment
from retain.http import Request, Response
from retain.models.chat import ChatMessage
from retain.roles.role import OwnerOfAll
from retain.tenants.register import Tenants
from tests.support.files import png
from tests.support.instances import Deployment, LocalInstances, catalogue

VIEWER = {
    "type": "viewer",
    "description": "Reads files.",
    "instructions": "Do it.",
    "model": {"accepts": ["image", "pdf", "text"]},
    "limits": {"context_tokens": 400_000},
    "memory_config": {"conversation": {"attachments": 2}},
}
PICTURE = png()


def viewers(*more: dict[str, Any]) -> AgentCatalogue:
    """Return the shipped agents, one that takes files, and more."""
    return catalogue(VIEWER, *more)


async def pieces(*content: bytes) -> AsyncIterator[bytes]:
    """Yield a content as it arrives."""
    for piece in content:
        yield piece


class FileDesk:
    """A deployment with agents that take files. bound: the user whose token is sent."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.bound: BoundUser | None = None
        self.context = AgentsContext(
            Tenants(deployment.sql, deployment.clock),
            deployment.agents,
            LocalInstances(deployment),
            deployment.sql,
            deployment.clock,
            deployment.attachments,
        )

    async def uploaded(self, content: bytes = PICTURE, media_type: str = "image/png", **more: Any) -> Attachment:
        """Upload a file of the tenant acme."""
        await self.context.tenants.register("acme")
        new = NewAttachment(more.pop("name", None), media_type, len(content), more.pop("user", None))
        stored, _ = await self.deployment.attachments.store("acme", new, pieces(content))
        return stored

    async def send(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, **query: str
    ) -> Response:
        """Send a request below the agents of acme. Raises: what the route raises."""
        await self.context.tenants.register("acme")
        text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        sent = Request(method, f"/v1/agents/acme/{path}", query, headers or {}, text, "host", "request-1")
        given = {
            name: getattr(sent, name) for name in ("method", "path", "query", "headers", "body", "host", "request_id")
        }
        return await ROUTER.handle(self.context, Request(**given, authority=OwnerOfAll(), bound=self.bound))

    async def run(self, text: str = "What is it?", *files: Attachment | dict[str, Any], **more: Any) -> Any:
        """Run the agent that takes files; return the answer's JSON."""
        named = [file if isinstance(file, dict) else {"id": file.id} for file in files]
        agent = more.pop("agent", "viewer")
        headers = {"idempotency-key": more.pop("key")} if "key" in more else {}
        body = {"input": text, "instance_id": more.pop("instance", "main"), "attachments": named, **more}
        return json.loads((await self.send("POST", f"{agent}/run", body, headers=headers)).body)


def inline(
    content: bytes = PICTURE, media_type: str | None = "image/png", name: str | None = "a.png"
) -> dict[str, Any]:
    """Return a file that a request brings."""
    given = {"media_type": media_type, "name": name}
    return {"data": base64.b64encode(content).decode(), **{key: one for key, one in given.items() if one is not None}}


def shown(message: ChatMessage) -> tuple[str, list[str]]:
    """Return a message's text and the names of the files whose content is sent."""
    return message.content, [file.name for file in message.attachments]
