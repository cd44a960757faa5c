"""The interface's routes.

Source: https://developers.cloudflare.com/agent-memory/api/http-api/
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from retain.agent_memory import handlers
from retain.agent_memory.context import AgentMemoryContext
from retain.agent_memory.names import ACCOUNT, NAMESPACE, PROFILE, SESSION
from retain.application_keys.scope import KeyScope
from retain.errors.codes import Code
from retain.http import MAX_BODY_BYTES, Response
from retain.identifiers import ULID, check_id
from retain.roles.role import Role
from retain.routing.bodies import JsonBody
from retain.routing.parameters import PathParameter
from retain.routing.queries import QueryString
from retain.routing.requests import BodyReader, QueryReader, StreamedBody, TypedRequest
from retain.routing.route import Answer, Place, Resource, Route
from retain.routing.router import Router

MAX_INGEST_BYTES = 50 * 1024 * 1024
"""Largest body of an ingest: 500 messages of 32 KiB, every character beyond ASCII escaped. It is read as it arrives."""
_PARAMETERS = {
    "account": ACCOUNT,
    "tenant": NAMESPACE,
    "profile": PROFILE,
    "session_id": SESSION,
    "memory_id": PathParameter(ULID.pattern, check_id),
}
_NAMESPACES = "/client/v4/accounts/{account}/agent-memory/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{tenant}}"
_PROFILE = f"{_NAMESPACE}/profiles/{{profile}}"
_OF_A_PROFILE: tuple[Code, ...] = ("invalid_profile", "invalid_house")
_OF_A_STORE: tuple[Code, ...] = ("contended", "user_memory_limit", "memory_quota")
_MEMORY = '`{"id", "type", "summary", "content", "sessionId", "createdAt", "updatedAt"}`'
_NAMED = '`{"id", "name", "account_id", "created_at", "updated_at"}`'
_NULL = (Answer(200, "null"),)


def _route(
    method: str,
    path: str,
    handle: Callable[[AgentMemoryContext, TypedRequest[Any, Any]], Awaitable[Response]],
    answers: Sequence[Answer],
    *,
    needs: Role,
    scope: KeyScope,
    errors: Sequence[Code] = (),
    body: BodyReader[Any] | None = None,
    query: QueryReader[Any] | None = None,
    takes: str = "",
    tenant_in: Place | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> Route[AgentMemoryContext]:
    named: tuple[Code, ...] = ("invalid_namespace",) if "{tenant}" in path else ()
    return Route(
        method,
        path,
        handle,
        answers=answers,
        body=body,
        query=query,
        needs=needs,
        scope=scope,
        tenant_in=tenant_in,
        takes=takes,
        errors=(*named, *(_OF_A_PROFILE if "{profile}" in path else ()), *errors),
        parameters=_PARAMETERS,
        max_body_bytes=max_body_bytes,
    )


_OF_NAMESPACES = (
    _route(
        "POST",
        _NAMESPACES,
        handlers.create_namespace,
        (Answer(201, _NAMED),),
        needs="owner",
        scope="admin",
        tenant_in="deployment",
        body=JsonBody(handlers.NamespaceBody),
        takes="`name`",
        errors=("invalid_body", "invalid_namespace", "namespace_exists"),
    ),
    _route(
        "GET",
        _NAMESPACES,
        handlers.list_namespaces,
        (Answer(200, f"a list of {_NAMED}"),),
        needs="viewer",
        scope="memory:read",
        tenant_in="own",
        query=QueryString(handlers.NamespacePageQuery),
        errors=("invalid_limit", "invalid_cursor"),
    ),
    _route("GET", _NAMESPACE, handlers.show_namespace, (Answer(200, _NAMED),), needs="viewer", scope="memory:read"),
    _route(
        "DELETE",
        _NAMESPACE,
        handlers.delete_namespace,
        _NULL,
        needs="owner",
        scope="admin",
        errors=("outbox_waits", "contended"),
    ),
)
_OF_PROFILES = (
    _route(
        "GET",
        f"{_NAMESPACE}/profiles",
        handlers.list_profiles,
        (Answer(200, 'a list of `{"name", "createdAt"}`'),),
        needs="viewer",
        scope="memory:read",
        query=QueryString(handlers.ProfilePageQuery),
        errors=("invalid_limit", "invalid_cursor"),
    ),
    _route(
        "DELETE",
        _PROFILE,
        handlers.delete_profile,
        _NULL,
        needs="owner",
        scope="users:erase",
        errors=("outbox_waits", "contended"),
    ),
    _route(
        "DELETE",
        f"{_PROFILE}/sessions/{{session_id}}",
        handlers.delete_session,
        _NULL,
        needs="operator",
        scope="memory:write",
        errors=("invalid_session", "contended"),
    ),
    _route(
        "POST",
        f"{_PROFILE}/ingest",
        handlers.ingest_messages,
        _NULL,
        needs="operator",
        scope="memory:write",
        body=StreamedBody("application/json"),
        max_body_bytes=MAX_INGEST_BYTES,
        takes="`messages`: 1 to 500 of `role`, `content`, `timestamp`; `sessionId`",
        errors=(
            *("malformed_json", "invalid_body", "invalid_message", "invalid_session", "no_messages"),
            *("too_many_messages", "content_too_large", "ingest_failed"),
            *_OF_A_STORE,
        ),
    ),
    _route(
        "POST",
        f"{_PROFILE}/remember",
        handlers.remember,
        (Answer(200, _MEMORY),),
        needs="operator",
        scope="memory:write",
        body=JsonBody(handlers.RememberBody),
        takes="`content`, `sessionId`",
        errors=("invalid_body", "invalid_session", "empty_content", "content_too_large", *_OF_A_STORE),
    ),
    _route(
        "POST",
        f"{_PROFILE}/recall",
        handlers.recall,
        (
            Answer(
                200,
                '`{"count", "candidates"}`, each `{"id", "summary", "sessionId", "score"}`; by a model, `answer`',
            ),
        ),
        needs="viewer",
        scope="memory:read",
        body=JsonBody(handlers.ProfileRecallBody),
        takes="`query`, `thinkingLevel`, `responseLength`, `referenceDate`",
        errors=("invalid_body", "empty_query", "query_too_large", "too_many_scopes"),
    ),
    _route(
        "POST",
        f"{_PROFILE}/summary",
        handlers.summarise,
        (Answer(200, '`{"summary"}`, Markdown'),),
        needs="viewer",
        scope="memory:read",
        body=JsonBody(handlers.SummaryBody, required=False),
        takes="`sessionId`",
        errors=("invalid_body", "invalid_session"),
    ),
)
_OF_MEMORIES = (
    _route(
        "GET",
        f"{_PROFILE}/memories",
        handlers.list_memories,
        (Answer(200, f"a list of {_MEMORY}, without `content`"),),
        needs="viewer",
        scope="memory:read",
        query=QueryString(handlers.MemoryPageQuery),
        errors=("invalid_limit", "invalid_cursor", "invalid_session"),
    ),
    _route(
        "GET",
        f"{_PROFILE}/memories/{{memory_id}}",
        handlers.show_memory,
        (Answer(200, _MEMORY),),
        needs="viewer",
        scope="memory:read",
        errors=("invalid_id", "no_such_memory"),
    ),
    _route(
        "DELETE",
        f"{_PROFILE}/memories/{{memory_id}}",
        handlers.delete_memory,
        (Answer(200, f"{_MEMORY}, which is gone"),),
        needs="operator",
        scope="memory:write",
        errors=("invalid_id", "no_such_memory", "contended"),
    ),
)
RESOURCE: Resource[AgentMemoryContext] = Resource(
    "Agent Memory",
    (*_OF_NAMESPACES, *_OF_PROFILES, *_OF_MEMORIES),
    "Cloudflare Agent Memory's own interface ([what maps to what](agent-memory.md)). Answers and errors are in the envelope"
    " of Cloudflare's API: `result` has what is described here. The tenant is the namespace.",
)
ROUTER: Router[AgentMemoryContext] = Router((RESOURCE,), guard="Access", tenants=lambda context: context.tenants)
