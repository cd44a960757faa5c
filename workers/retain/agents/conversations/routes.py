"""The routes of conversations: list them, read one's messages, rename and delete it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from retain.agents.calls.shown import ConversationsJson, MessagesJson
from retain.agents.context import AgentsContext
from retain.agents.conversations.deletion import delete_conversation
from retain.errors import NotFound
from retain.http import Response, json_response
from retain.memory.conversations.reading import (
    MAX_TITLE,
    STATUSES,
    Conversation,
    Wanted,
    list_conversations,
    list_messages,
    rename_conversation,
)
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import AgentType, Flag, PageQuery, QueryString, WholeNumber
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route


class ConversationsQuery(PageQuery):
    """Which conversations to list."""

    agent_type: AgentType | None = Field(default=None, description="only this agent's")
    user: str | None = Field(default=None, description="only those with this user")
    status: str | None = Field(
        default=None, description=f"only those whose newest run has this status: {', '.join(STATUSES)}"
    )
    since_ms: WholeNumber | None = Field(default=None, description="only those with a run at or after this time")
    until_ms: WholeNumber | None = Field(default=None, description="only those whose newest run is before this time")
    delegated: Flag = Field(default=False, description="`true`: also those in which an agent works for another one")


class MessagesQuery(PageQuery):
    """Which part of a conversation to read."""

    order: Literal["asc", "desc"] = Field(default="asc", description="`asc`: oldest first; `desc`: newest first")


class RenameBody(BodyModel):
    """The title of a conversation. title: null takes it away."""

    title: str | None = Field(min_length=1, max_length=MAX_TITLE)


async def get_conversations(context: AgentsContext, request: TypedRequest[None, ConversationsQuery]) -> Response:
    """List a tenant's conversations, that with the newest run first."""
    query, bound = request.query, request.http.bound
    agent_type = query.agent_type if bound is None else bound.agent_type or query.agent_type
    user_id = query.user if bound is None else bound.user_id
    wanted = Wanted(agent_type, user_id, query.status, query.since_ms, query.until_ms, query.delegated)
    page = await list_conversations(context.sql, request.tenant_id, wanted, limit=query.limit, cursor=query.cursor)
    return json_response({"instances": [one.to_json() for one in page.entries], "cursor": page.cursor})


async def get_messages(context: AgentsContext, request: TypedRequest[None, MessagesQuery]) -> Response:
    """Read what was asked and answered in a conversation."""
    query, path = request.query, request.path
    try:
        page = await list_messages(
            context.sql,
            request.tenant_id,
            path["agent_type"],
            path["instance_id"],
            limit=query.limit,
            cursor=query.cursor,
            newest_first=query.order == "desc",
        )
    except NotFound:
        # A user's token decides whose conversation a name means: one that has not begun is empty, and not a mistake.
        if request.http.bound is None:
            raise
        return json_response({"messages": [], "cursor": None})
    return json_response({"messages": [one.to_json() for one in page.entries], "cursor": page.cursor})


async def rename(context: AgentsContext, request: TypedRequest[RenameBody, None]) -> Response:
    """Give a conversation a title."""
    path = request.path
    renamed = await rename_conversation(
        context.sql, request.tenant_id, path["agent_type"], path["instance_id"], request.body.title
    )
    return json_response(renamed.to_json())


async def delete(context: AgentsContext, request: PathRequest) -> Response:
    """Delete a conversation with everything that its instance holds."""
    await delete_conversation(context.sql, await context.instance_in(request.path))
    await context.attachments.remove_owed(request.tenant_id)
    return Response(204, "")


_INSTANCES = "/v1/agents/{tenant}/instances"
_INSTANCE = "/v1/agents/{tenant}/{agent_type}/instances/{instance_id}"
RESOURCE: Resource[AgentsContext] = Resource(
    "Conversations",
    (
        Route(
            "GET",
            _INSTANCES,
            get_conversations,
            name="list_instances",
            needs="viewer",
            scope="runs",
            for_users=True,
            query=QueryString(ConversationsQuery),
            answers=(
                Answer(
                    200,
                    '`{"instances", "cursor"}`: each with `agent_type`, `instance_id`, `user_id`, `title`, `status` of its'
                    " newest run, `runs`, `created_at_ms`, `last_run_at_ms`, `last_run_id`",
                    model=ConversationsJson,
                ),
            ),
            errors=("invalid_agent_type", "invalid_status", "invalid_query", "invalid_limit", "invalid_cursor"),
        ),
        Route(
            "GET",
            f"{_INSTANCE}/messages",
            get_messages,
            name="list_messages",
            needs="viewer",
            scope="runs",
            for_users=True,
            query=QueryString(MessagesQuery),
            answers=(
                Answer(
                    200,
                    '`{"messages", "cursor"}`: each with `message_id`, `run_id`, `role` (`user` or `assistant`), `content`'
                    " and `at_ms`, for 90 days",
                    model=MessagesJson,
                ),
            ),
            errors=(
                "no_such_instance",
                "invalid_agent_type",
                "invalid_instance_id",
                "invalid_query",
                "invalid_limit",
                "invalid_cursor",
            ),
        ),
        Route(
            "PATCH",
            _INSTANCE,
            rename,
            name="rename_instance",
            needs="operator",
            scope="runs",
            for_users=True,
            body=JsonBody(RenameBody),
            takes='`{"title"}`: 1 to 200 characters, or null',
            answers=(Answer(200, "the conversation, as in the list", model=Conversation),),
            errors=("no_such_instance", "invalid_agent_type", "invalid_instance_id"),
        ),
        Route(
            "DELETE",
            _INSTANCE,
            delete,
            name="delete_instance",
            needs="operator",
            scope="runs",
            for_users=True,
            answers=(Answer(204, "its messages, episodes, runs, events and working memory are deleted"),),
            errors=(
                "no_such_instance",
                "unknown_agent",
                "invalid_agent_type",
                "invalid_instance_id",
                "instance_busy",
            ),
        ),
    ),
)
