"""A tenant's memory over the Model Context Protocol: `POST /admin/tenants/{tenant}/mcp`.

Each tool is one of the administrator's handlers, so that both ways check, store and answer the same. Whose memory it is
stands in the address: `?agent_type=` or `?house=`, else the whole tenant's. No argument can name another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from retain.admin.context import AdminContext
from retain.admin.resources import memories
from retain.bodies import validated
from retain.errors import InvalidInput, NoSuchTool
from retain.http import Handle, Request, Response
from retain.mcp.server import answer, check_transport
from retain.mcp.tools import McpAnswer, McpTool, McpToolPage

NAME = "retain-memory"
INSTRUCTIONS = "The long-term memory of one tenant: facts, events, instructions and tasks, each with its sources."


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RecallArguments(_Arguments):
    """What to look for. filter: metadata conditions as of Vectorize. as_of_ms: what was known at that time."""

    query: str
    top_k: int = Field(default=5, ge=1, le=50)
    as_of_ms: int | None = None
    filter: dict[str, Any] = Field(default_factory=dict)
    explain: bool = False


class ListArguments(_Arguments):
    """A page of memories. all: also those that hold no more."""

    filter: dict[str, Any] = Field(default_factory=dict)
    all: bool = False
    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = None


class IdArguments(_Arguments):
    """One memory."""

    id: str


class EditArguments(memories.EditBody):
    """One memory, and its changed fields."""

    id: str


@dataclass(frozen=True, slots=True)
class _MemoryTool:
    description: str
    arguments: type[BaseModel]
    handle: Handle[AdminContext]
    hints: Mapping[str, bool]


_READS = {"readOnlyHint": True}
_TOOLS: Mapping[str, _MemoryTool] = {
    "remember": _MemoryTool(
        "Remember something, as one self-contained statement. Saying it again changes nothing.",
        memories.MemoryBody,
        memories.store,
        {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True},
    ),
    "recall": _MemoryTool("Find what is remembered, best first.", RecallArguments, memories.recall, _READS),
    "list": _MemoryTool("List memories, oldest first.", ListArguments, memories.list_memories, _READS),
    "get": _MemoryTool("Read one memory and how it came to be.", IdArguments, memories.get, _READS),
    "edit": _MemoryTool(
        "Change fields of one memory; its history keeps what it said.",
        EditArguments,
        memories.edit,
        {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True},
    ),
    "forget": _MemoryTool(
        "Delete one memory.",
        IdArguments,
        memories.delete,
        {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
    ),
}


class MemoryTools:
    """The tools on one scope's memory. request: the one that came in, for its address and its id."""

    def __init__(self, context: AdminContext, request: Request, tenant: str) -> None:
        self._context = context
        self._request = request
        self._tenant = tenant
        self._scope = {name: request.query[name] for name in ("agent_type", "house") if name in request.query}

    async def page(self, cursor: str | None) -> McpToolPage:
        """Return all of them."""
        if cursor is not None:
            raise InvalidInput("the cursor is not valid", code="invalid_cursor")
        return McpToolPage(
            [
                McpTool(name, tool.description, tool.arguments.model_json_schema(), tool.hints)
                for name, tool in _TOOLS.items()
            ]
        )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> McpAnswer:
        """Do what the tool's handler does, and answer its JSON."""
        tool = _TOOLS.get(name)
        if tool is None:
            raise NoSuchTool("there is no such tool")
        given = validated(tool.arguments, arguments).model_dump(exclude_unset=True)
        parameters = {"tenant": self._tenant, **({"id": given.pop("id")} if "id" in given else {})}
        query: dict[str, str] = {}
        if name == "list":
            query = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
            query |= self._scope
        elif name in ("remember", "recall"):
            given |= self._scope
        request = replace(self._request, query=query, body=json.dumps(given))
        response = await tool.handle(self._context, request, parameters)
        text = response.body if isinstance(response.body, str) else response.body.decode()
        return McpAnswer(text or json.dumps({"done": True}))


async def serve(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Answer one message of the Model Context Protocol."""
    check_transport(request)
    tools = MemoryTools(context, request, await context.tenants.require(parameters["tenant"]))
    return await answer(request, tools, NAME, INSTRUCTIONS)
