"""Tasks: calls that last longer than a request. The client asks for them again, and answers what they ask meanwhile.

Source: https://modelcontextprotocol.github.io/ext-tasks/specification/2026-07-28/tasks.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from retain.errors import NotFound
from retain.json_text import JsonObject
from retain.mcp.messages import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY, McpError, RpcMessage
from retain.mcp.tools import McpAnswer

EXTENSION = "io.modelcontextprotocol/tasks"
"""How clients and servers declare it."""
POLL_MS = 1_000
"""How long a client should wait before it asks again."""

TaskStatus = Literal["working", "input_required", "completed", "cancelled"]


@dataclass(frozen=True, slots=True)
class McpTask:
    """A task at one moment. answer: that of the call, once it is completed.

    requests: what it asks the client, by keys that none of its later requests has. ttl_ms: from its creation, None while
    it is not known how long it is kept.
    """

    id: str
    status: TaskStatus
    created_at_ms: int
    updated_at_ms: int
    ttl_ms: int | None = None
    message: str | None = None
    requests: Mapping[str, JsonObject] | None = None
    answer: McpAnswer | None = None


class McpTasks(Protocol):
    """The tools of one caller, whose calls may become tasks."""

    async def start(self, name: str, arguments: JsonObject) -> McpTask:
        """Begin a call, which is kept from then on. Raises: as `McpTools.call`."""
        ...

    async def get(self, task_id: str) -> McpTask:
        """Return a task as it is. Raises: NotFound for one that the caller does not have."""
        ...

    async def update(self, task_id: str, responses: JsonObject) -> None:
        """Take the client's answers, by the keys of the requests. Others are ignored. Raises: as `get`."""
        ...

    async def cancel(self, task_id: str) -> None:
        """Stop a task, if it has not ended. Raises: as `get`."""
        ...


def is_of_tasks(message: RpcMessage) -> bool:
    """Return whether a message is about a task that has begun."""
    return message.method.startswith("tasks/")


def takes_tasks(message: RpcMessage) -> bool:
    """Return whether the client that sent a message takes a task instead of an answer."""
    return EXTENSION in message.extensions


async def task_answer(message: RpcMessage, tasks: McpTasks | None) -> Mapping[str, object] | McpTask:
    """Return the answer to a message about a task.

    Raises: McpError for a server without tasks, a client that does not declare them, and a task that does not exist;
        any other RetainError that `McpTasks` raises.
    """
    if tasks is None or not message.enveloped or message.method not in ("tasks/get", "tasks/update", "tasks/cancel"):
        raise McpError(METHOD_NOT_FOUND, f"there is no method '{message.method}'")
    if not takes_tasks(message):
        needed: JsonObject = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise McpError(MISSING_CAPABILITY, "the client does not declare the extension of tasks", needed)
    task_id, responses = message.params.get("taskId"), message.params.get("inputResponses", {})
    if not isinstance(task_id, str) or not isinstance(responses, dict):
        raise McpError(INVALID_PARAMS, "taskId must be a text and inputResponses an object")
    try:
        match message.method:
            case "tasks/get":
                return await tasks.get(task_id)
            case "tasks/update":
                await tasks.update(task_id, responses)
            case _:
                await tasks.cancel(task_id)
    except NotFound as error:
        raise McpError(INVALID_PARAMS, error.message, reason=error.code) from error
    return {}


def shown_task(task: McpTask, result: Mapping[str, object] | None) -> dict[str, object]:
    """Return a task as clients see it. result: that of the call, once the task is completed."""
    shown: dict[str, object] = {
        "taskId": task.id,
        "status": task.status,
        "createdAt": _moment(task.created_at_ms),
        "lastUpdatedAt": _moment(task.updated_at_ms),
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": POLL_MS,
    }
    more = {"statusMessage": task.message, "inputRequests": task.requests, "result": result}
    return shown | {name: value for name, value in more.items() if value is not None}


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
