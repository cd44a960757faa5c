"""A tenant's memory over the Model Context Protocol: `POST /admin/tenants/{tenant}/mcp`.

Each tool calls `MemoryDesk` as the HTTP routes for memories do, so that both check, store and answer the same. The query
string names the owner: `?agent_type=` or `?house=`, or `?user_id=` with or without an agent, otherwise the whole tenant.
No argument can name another owner, and no id reaches a memory that is not the user's.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from retain.admin.answers.memories import MemoriesJson, MemoryJson, MemoryWithEventsJson, RecallJson, StoredMemoryJson
from retain.admin.context import AdminContext
from retain.admin.memories.memory_bodies import EditBody, MemoryBody, TurnBody, texts_of
from retain.admin.memories.memory_desk import MemoryDesk, Owner
from retain.errors import Forbidden, InvalidInput, NoSuchTool
from retain.http import Response
from retain.json_text import Json, JsonObject
from retain.limits.room import REQUEST_BYTES
from retain.mcp.server import answer
from retain.mcp.tools import McpAnswer, McpTool, McpToolPage
from retain.roles.role import Role, includes
from retain.routing.bodies import BodyModel, validated
from retain.routing.queries import QueryModel, QueryString
from retain.routing.requests import TextBody, TypedRequest
from retain.routing.route import JSON_RPC, ErrorGroup, Resource, Route

NAME = "retain-memory"
INSTRUCTIONS = "The long-term memory of one tenant: facts, events, instructions and tasks, each with its sources."


class OwnerQuery(QueryModel):
    """The owner of the memory that the tools reach."""

    agent_type: str | None = Field(default=None, description="this agent's memory; not with `house`")
    house: str | None = Field(default=None, description="this house's memory; with neither, the whole tenant's")
    user_id: str | None = Field(
        default=None, description="this user's memory, with `agent_type` as that agent sees it; not with `house`"
    )


class RecallArguments(BodyModel):
    """What to look for. filter: metadata conditions in Vectorize's syntax. as_of_ms: recall what was known then.

    valid_at_ms: recall what was or will be valid then, as far as is known now, or was known at as_of_ms.
    min_score: leave out what is less relevant, 0 to 1. context: the last turns of the conversation before the query, oldest
    first.
    """

    query: str
    top_k: int = Field(default=5, ge=1, le=50)
    min_score: float = Field(default=0, ge=0, le=1)
    as_of_ms: int | None = None
    valid_at_ms: int | None = None
    filter: dict[str, Json] = Field(default_factory=dict)
    context: list[str | TurnBody] = Field(default_factory=list)
    explain: bool = False


class ListArguments(BodyModel):
    """A page of memories. all: include those that are not valid. valid_at_ms: those that were or will be valid then."""

    filter: dict[str, Json] = Field(default_factory=dict)
    all: bool = False
    valid_at_ms: int | None = None
    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = None


class DoneJson(TypedDict):
    """That it was done."""

    done: bool


class IdArguments(BodyModel):
    """One memory."""

    id: str


class HistoryArguments(IdArguments):
    """One memory, and where its learning events continue."""

    cursor: str | None = None


class EditArguments(EditBody):
    """One memory, and its changed fields."""

    id: str


async def _remember(desk: MemoryDesk, owner: Owner, given: MemoryBody) -> Mapping[str, object]:
    return (await desk.store(owner, given.to_record())).to_json()


async def _recall(desk: MemoryDesk, owner: Owner, given: RecallArguments) -> Mapping[str, object]:
    found = await desk.recall(
        owner,
        given.query,
        top_k=given.top_k,
        as_of_ms=given.as_of_ms,
        valid_at_ms=given.valid_at_ms,
        conditions=given.filter,
        min_score=given.min_score,
        turns=texts_of(given.context),
    )
    return found.to_json(explain=given.explain)


async def _list(desk: MemoryDesk, owner: Owner, given: ListArguments) -> Mapping[str, object]:
    page = await desk.list(
        owner,
        conditions=given.filter,
        closed_too=given.all,
        valid_at_ms=given.valid_at_ms,
        limit=given.limit,
        cursor=given.cursor,
    )
    return page.to_json()


async def _get(desk: MemoryDesk, owner: Owner, given: HistoryArguments) -> Mapping[str, object]:
    return (await desk.get(owner, given.id, after=given.cursor or "")).to_json()


async def _edit(desk: MemoryDesk, owner: Owner, given: EditArguments) -> Mapping[str, object]:
    return (await desk.edit(owner, given.id, given.model_dump(exclude_unset=True, exclude={"id"}))).to_json()


async def _forget(desk: MemoryDesk, owner: Owner, given: IdArguments) -> Mapping[str, object]:
    await desk.forget(owner, given.id)
    return {"done": True}


@dataclass(frozen=True, slots=True)
class _MemoryTool:
    description: str
    arguments: type[BaseModel]
    call: Callable[[MemoryDesk, Owner, JsonObject], Awaitable[Mapping[str, object]]]
    needs: Role
    hints: Mapping[str, bool]


Arguments = TypeVar("Arguments", bound=BaseModel)


def _tool(
    description: str,
    arguments: type[Arguments],
    call: Callable[[MemoryDesk, Owner, Arguments], Awaitable[Mapping[str, object]]],
    *,
    needs: Role,
    **hints: bool,
) -> _MemoryTool:
    async def checked(desk: MemoryDesk, owner: Owner, given: JsonObject) -> Mapping[str, object]:
        return await call(desk, owner, validated(arguments, given))

    return _MemoryTool(description, arguments, checked, needs, hints)


_CHANGES = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}
_TOOLS: Mapping[str, _MemoryTool] = {
    "remember": _tool(
        "Remember something, as one self-contained statement. Remembering it again adds what the memory lacks;"
        " `merged` and `kept` name the fields that were added, and those that keep another value.",
        MemoryBody,
        _remember,
        needs="operator",
        **_CHANGES,
    ),
    "recall": _tool(
        "Find what is remembered, best first.", RecallArguments, _recall, needs="viewer", readOnlyHint=True
    ),
    "list": _tool("List memories, oldest first.", ListArguments, _list, needs="viewer", readOnlyHint=True),
    "get": _tool("Read one memory and how it came to be.", HistoryArguments, _get, needs="viewer", readOnlyHint=True),
    "edit": _tool(
        "Change fields of one memory; its history keeps the earlier text.",
        EditArguments,
        _edit,
        needs="operator",
        **_CHANGES,
    ),
    "forget": _tool(
        "Delete one memory.", IdArguments, _forget, needs="operator", **{**_CHANGES, "destructiveHint": True}
    ),
}


_ANSWERS: Mapping[str, Any] = {
    "remember": StoredMemoryJson,
    "recall": RecallJson,
    "list": MemoriesJson,
    "get": MemoryWithEventsJson,
    "edit": MemoryJson,
    "forget": DoneJson,
}


@cache
def _output_schema(name: str) -> Mapping[str, object]:
    return TypeAdapter(_ANSWERS[name]).json_schema()


class MemoryTools:
    """The tools on one owner's memory, of which a caller sees and calls those that its role includes."""

    def __init__(self, desk: MemoryDesk, owner: Owner, role: Role | None) -> None:
        self._desk = desk
        self._owner = owner
        self._role = role

    async def page(self, cursor: str | None) -> McpToolPage:
        """Return the caller's tools, on one page. Raises: InvalidInput (code `invalid_cursor`) for any cursor."""
        if cursor is not None:
            raise InvalidInput("the cursor is not valid", code="invalid_cursor")
        return McpToolPage(
            [
                McpTool(name, tool.description, tool.arguments.model_json_schema(), tool.hints, _output_schema(name))
                for name, tool in _TOOLS.items()
                if includes(self._role, tool.needs)
            ]
        )

    async def call(self, name: str, arguments: JsonObject) -> McpAnswer:
        """Call a tool once, and return its answer as JSON. Raises: Forbidden (code `role_required`); NoSuchTool."""
        tool = _TOOLS.get(name)
        if tool is None:
            raise NoSuchTool("there is no such tool")
        if not includes(self._role, tool.needs):
            raise Forbidden(f"this tool needs the role {tool.needs}", code="role_required", needs=tool.needs)
        answered = await tool.call(self._desk, self._owner, arguments)
        return McpAnswer(json.dumps(answered, separators=(",", ":")), structured=answered)


async def serve(context: AdminContext, request: TypedRequest[str, OwnerQuery]) -> Response:
    """Answer one message of the Model Context Protocol, with a tenant's memory as tools."""
    owner = Owner(request.query.agent_type, request.query.house, request.query.user_id)
    tools = MemoryTools(MemoryDesk(context, request.tenant_id, request.http.caller), owner, request.role)
    return await answer(request.http, tools, NAME, INSTRUCTIONS)


RESOURCE: Resource[AdminContext] = Resource(
    "Memory over MCP",
    (
        Route(
            "POST",
            "/admin/tenants/{tenant}/mcp",
            serve,
            name="send_memory_message",
            needs="viewer",
            answer_bytes=REQUEST_BYTES,
            body=TextBody("application/json"),
            query=QueryString(OwnerQuery),
            takes="a message of the [Model Context Protocol](mcp.md#the-memory-post-admintenantstenantmcp)",
            answers=JSON_RPC,
            errors=("cross_origin", ErrorGroup("those of the routes for [memories](#memories)")),
            same_origin=True,
        ),
    ),
)
