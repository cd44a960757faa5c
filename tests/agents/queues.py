"""A busy clerk with a queue, for the tests of queues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.agents.stepped_chat import SteppedChat
from tests.support.instances import Deployment

NAME = "clerk:acme:main"
LIMITS = {"busy": "queue", "max_queued_runs": 3, "queue_minutes": 10}
BY_ANN: dict[str, Any] = {"by": "ann", "reason": "not needed"}
ANN: dict[str, Any] = {"user": {"id": "ann"}}
NOBODY: dict[str, Any] = {}
BEN: dict[str, Any] = {"user": {"id": "ben"}}


@asynccontextmanager
async def busy(desk: Deployment, chat: SteppedChat, text: str = "first", **more: Any) -> AsyncIterator[str]:
    """Let the clerk's model think about a first run; yield its id. At the end the model answers everything."""
    first = asyncio.create_task(desk.run("clerk", text, **more))
    await chat.asked.wait()
    [row] = desk.local(NAME, "SELECT run_id FROM turn_state WHERE status = 'running'")
    yield str(row["run_id"])
    chat.let_go()
    assert (await first)["status"] == "completed"
    await desk.settled()


def asked(chat: SteppedChat) -> list[str]:
    """Return what the model was asked, in order."""
    return [request.messages[-1].content for request in chat.requests]


async def written(desk: Deployment) -> None:
    """Return when D1 has everything that it is owed."""
    while desk.local(NAME, "SELECT 1 FROM outbox"):
        await asyncio.sleep(0)


async def queued(desk: Deployment, *texts: str, **more: Any) -> list[str]:
    """Queue runs with these inputs; return their ids."""
    return [(await desk.run("clerk", text, **more))["run_id"] for text in texts]


async def followed(desk: Deployment, run_id: str) -> list[tuple[str, Any]]:
    """Follow a run until it has ended; return the names of its events, with the position of those that have one."""
    events: list[tuple[str, Any]] = []
    position: dict[str, Any] = {"after": -1, "turn": 0, "offset": 0}
    while True:
        news = await desk.ask("clerk", "follow", run_id=run_id, wait_s=60, **position)
        events += [(event["name"], event["data"].get("queue_position")) for event in news["events"]]
        position = {name: news[name] for name in position}
        if news["status"] not in ("queued", "running", "waiting"):
            return events
