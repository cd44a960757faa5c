"""What the interface's routes do."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from retain.agent_memory.context import AgentMemoryContext
from retain.agent_memory.conversations import ingest
from retain.agent_memory.envelope import PageInfo, enveloped
from retain.agent_memory.memories import at_ms_of
from retain.agent_memory.names import check_namespace, check_profile_name, check_session
from retain.agent_memory.namespaces import Namespaces, namespace_json
from retain.agent_memory.profile import Profile, ThinkingLevel
from retain.agent_memory.profiles import profile_json, profiles_of
from retain.agent_memory.summary import summary_of_profile
from retain.agent_memory.writing import ResponseLength, answered, condensed
from retain.errors import InvalidInput
from retain.http import Response
from retain.memory.records.record import Kind
from retain.routing.bodies import BodyModel
from retain.routing.queries import QueryModel, naming
from retain.routing.requests import PathRequest, TypedRequest

MAX_PER_PAGE = 1_000
"""Most entries on one page.

Source: https://developers.cloudflare.com/agent-memory/platform/limits/
"""
_PER_PAGE = re.compile(r"[1-9][0-9]{0,3}")
_CONTINUES = "the deletion continues in the background; nothing new can be stored meanwhile"


def _per_page(text: object) -> int:
    if not isinstance(text, str) or _PER_PAGE.fullmatch(text) is None or int(text) > MAX_PER_PAGE:
        raise InvalidInput(f"per_page must be 1 to {MAX_PER_PAGE}", code="invalid_limit")
    return int(text)


def _time(text: str) -> str:
    at_ms_of(text)
    return text


Session = Annotated[str, AfterValidator(check_session)]
Cursor = Annotated[str | None, Field(description="`result_info.cursor` of the previous page")]
Text = Annotated[str, Field(min_length=1)]


class PerPageQuery(QueryModel):
    """A page of a list."""

    per_page: Annotated[
        int, BeforeValidator(_per_page), Field(description=f"entries on a page, 1 to {MAX_PER_PAGE}")
    ] = 20
    cursor: Cursor = None


class NamespacePageQuery(PerPageQuery):
    """A page of namespaces."""

    cursor: Annotated[Cursor, naming(check_namespace)] = None
    order: Literal["id", "name"] = Field(default="name", description="`id` or `name`, which are equal here")
    direction: Literal["asc", "desc"] = Field(default="asc", description="`asc` or `desc`")


class ProfilePageQuery(PerPageQuery):
    """A page of profiles."""

    cursor: Annotated[Cursor, naming(check_profile_name)] = None


class MemoryPageQuery(PerPageQuery):
    """A page of memories."""

    session_id: Session | None = Field(default=None, description="only memories of this session")
    type: Kind | None = Field(default=None, description="`fact`, `event`, `instruction` or `task`")


class NamespaceBody(BodyModel):
    """A namespace to create."""

    name: str


class RememberBody(BodyModel):
    """A memory to store."""

    content: Text
    session: Session | None = Field(default=None, alias="sessionId")


class ProfileRecallBody(BodyModel):
    """What to recall."""

    query: Text
    level: ThinkingLevel = Field(default="low", alias="thinkingLevel")
    length: ResponseLength = Field(default="medium", alias="responseLength")
    today: Annotated[str, AfterValidator(_time)] | None = Field(default=None, alias="referenceDate")


class SummaryBody(BodyModel):
    """Of which session the summary shows the messages."""

    session: Session | None = Field(default=None, alias="sessionId")


async def create_namespace(context: AgentMemoryContext, request: TypedRequest[NamespaceBody, None]) -> Response:
    """Create a namespace: register a tenant."""
    row = await _namespaces(context).create(request.body.name)
    return enveloped(namespace_json(row, request.path["account"]), 201)


async def list_namespaces(context: AgentMemoryContext, request: TypedRequest[None, NamespacePageQuery]) -> Response:
    """List the namespaces that the caller may read, by name."""
    query = request.query
    only = None if request.tenants is None else json.dumps(list(request.tenants))
    rows, cursor = await _namespaces(context).page(query.direction, after=query.cursor, limit=query.per_page, only=only)
    shown = [namespace_json(row, request.path["account"]) for row in rows]
    return enveloped(shown, page=PageInfo(len(shown), query.per_page, cursor))


async def show_namespace(context: AgentMemoryContext, request: PathRequest) -> Response:
    """Show a namespace."""
    row = await _namespaces(context).get(request.tenant_id)
    return enveloped(namespace_json(row, request.path["account"]))


async def delete_namespace(context: AgentMemoryContext, request: PathRequest) -> Response:
    """Delete a namespace: erase the tenant, with everything in it."""
    done = await _namespaces(context).delete(request.tenant_id)
    return enveloped(None, notes=() if done else (_CONTINUES,))


async def list_profiles(context: AgentMemoryContext, request: TypedRequest[None, ProfilePageQuery]) -> Response:
    """List the profiles of a namespace that have been used, by name."""
    query = request.query
    rows, cursor = await profiles_of(context.sql, request.tenant_id, after=query.cursor, limit=query.per_page)
    return enveloped([profile_json(row) for row in rows], page=PageInfo(len(rows), query.per_page, cursor))


async def delete_profile(context: AgentMemoryContext, request: PathRequest) -> Response:
    """Delete a profile: erase the user, or delete what the house remembers. Idempotent."""
    done = await _profile(context, request).erase()
    return enveloped(None, notes=() if done else (_CONTINUES,))


async def delete_session(context: AgentMemoryContext, request: PathRequest) -> Response:
    """Delete what came from a session: its messages, and what was extracted from them. Idempotent."""
    await _profile(context, request).delete_session(request.path["session_id"])
    return enveloped(None)


async def ingest_messages(context: AgentMemoryContext, request: TypedRequest[AsyncIterator[bytes], None]) -> Response:
    """Store a conversation's messages and extract facts from them. The same messages are stored once."""
    job = await ingest(context, _profile(context, request).scope, request.body)
    return enveloped(None, headers={"x-retain-job": job.job_id})


async def remember(context: AgentMemoryContext, request: TypedRequest[RememberBody, None]) -> Response:
    """Store one memory. Idempotent by content."""
    return enveloped((await _profile(context, request).remember(request.body.content, request.body.session)).to_json())


async def recall(context: AgentMemoryContext, request: TypedRequest[ProfileRecallBody, None]) -> Response:
    """Return candidates for a query, best first; and an answer, where a language model is configured."""
    body = request.body
    today_ms = None if body.today is None else at_ms_of(body.today)
    found = await _profile(context, request).recall(body.query, body.level, today_ms)
    shown = [
        {"id": memory.id, "summary": memory.listed()["summary"], "sessionId": memory.session, "score": hit.score}
        for hit, memory in found.hits
    ]
    result: dict[str, object] = {"count": len(shown), "candidates": shown}
    notes = [f"the recall did without: {', '.join(found.result.degraded)}"] if found.result.degraded else []
    if context.chat is not None:
        memories = [memory for _, memory in found.hits]
        today = context.clock() if today_ms is None else today_ms
        answer = await answered(context.chat(request.tenant_id), body.query, memories, body.length, today)
        if answer is None:
            notes.append("the language model wrote no answer")
        else:
            result["answer"] = answer
    return enveloped(result, notes=notes)


async def list_memories(context: AgentMemoryContext, request: TypedRequest[None, MemoryPageQuery]) -> Response:
    """List the valid memories of a profile, oldest first, without their content."""
    query = request.query
    page = await _profile(context, request).page(
        limit=query.per_page, cursor=query.cursor, session=query.session_id, kind=query.type
    )
    shown = [memory.listed() for memory in page.memories]
    return enveloped(shown, page=PageInfo(len(shown), query.per_page, page.cursor))


async def show_memory(context: AgentMemoryContext, request: PathRequest) -> Response:
    """Show a memory."""
    return enveloped((await _profile(context, request).get(request.path["memory_id"])).to_json())


async def delete_memory(context: AgentMemoryContext, request: PathRequest) -> Response:
    """Delete a memory, and the message from which it was extracted; show what it was."""
    return enveloped((await _profile(context, request).delete(request.path["memory_id"])).to_json())


async def summarise(context: AgentMemoryContext, request: TypedRequest[SummaryBody, None]) -> Response:
    """Summarise a profile as Markdown: by rule, or by a language model where one is configured."""
    scope = _profile(context, request).scope
    summary = await summary_of_profile(context.sql, context.clock, scope, request.body.session)
    written = None if context.chat is None else await condensed(context.chat(request.tenant_id), summary)
    failed = context.chat is not None and written is None
    notes = ("the language model wrote no summary; this one was made by rule",) if failed else ()
    return enveloped({"summary": summary if written is None else written}, notes=notes)


def _namespaces(context: AgentMemoryContext) -> Namespaces:
    return Namespaces(context.sql, context.tenants, context.stores)


def _profile(context: AgentMemoryContext, request: TypedRequest[object, object]) -> Profile:
    return Profile(context, request.tenant_id, request.path["profile"], request.http.caller)
