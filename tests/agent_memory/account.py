"""An account of Cloudflare's API, as a client of Agent Memory sees it: paths below the namespaces, and results."""

from __future__ import annotations

from typing import Any

from tests.shell.worker import Answer, Worker

NAMESPACES = "/client/v4/accounts/0123456789abcdef/agent-memory/namespaces"


class Account:
    """The account, answered by a Worker on the host."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    async def ask(self, method: str, path: str = "", content: object = None, **more: Any) -> Answer:
        """Send a request. path: below the namespaces."""
        answer = await self.worker.request(method, f"{NAMESPACES}{path}", content, **more)
        await self.worker.settled()
        return answer

    async def result(self, method: str, path: str = "", content: object = None, *, status: int = 200) -> Any:
        """Send a request, which has to succeed, and return its result."""
        return (await self.envelope(method, path, content, status=status))["result"]

    async def envelope(self, method: str, path: str = "", content: object = None, *, status: int = 200) -> Any:
        """Send a request, which has to succeed, and return the whole body."""
        answer = await self.ask(method, path, content)
        assert (answer.status, answer.content["success"], answer.content["errors"]) == (status, True, []), answer.body
        return answer.content

    async def refusal(self, method: str, path: str = "", content: object = None, **more: Any) -> tuple[int, int, str]:
        """Send a request, which has to be refused; return the status, and the first error's number and reason."""
        answer = await self.ask(method, path, content, **more)
        body = answer.content
        assert (body["success"], body["result"], body["messages"]) == (False, None, []), answer.body
        return answer.status, body["errors"][0]["code"], body["errors"][0]["reason"]

    async def remember(self, content: str, profile: str = "ann", **more: object) -> Any:
        """Store a memory of `acme` and return it."""
        return await self.result("POST", f"/acme/profiles/{profile}/remember", {"content": content, **more})

    async def ingest(self, *lines: str, profile: str = "ann", **more: object) -> None:
        """Store a conversation from lines like "user: Hello"."""
        messages = [dict(zip(("role", "content"), line.split(": ", 1), strict=True)) for line in lines]
        assert await self.result("POST", f"/acme/profiles/{profile}/ingest", {"messages": messages, **more}) is None

    async def recall(self, query: str, profile: str = "ann", **more: object) -> list[Any]:
        """Return the candidates of a query."""
        body = await self.result("POST", f"/acme/profiles/{profile}/recall", {"query": query, **more})
        assert body["count"] == len(body["candidates"])
        candidates: list[Any] = body["candidates"]
        return candidates

    async def listed(self, profile: str = "ann", query: str = "") -> list[Any]:
        """Return a page of the profile's memories."""
        memories: list[Any] = await self.result("GET", f"/acme/profiles/{profile}/memories{query}")
        return memories
