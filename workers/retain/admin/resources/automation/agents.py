"""The administrator's routes for the agents that a tenant defines itself."""

from __future__ import annotations

import re

from pydantic import Field, JsonValue, RootModel

from retain.admin.answers.agents import (
    AgentVersionsJson,
    CheckedAgentJson,
    DefinedAgentJson,
    DefinitionsJson,
    ShownAgentJson,
    ShownVersionJson,
)
from retain.admin.context import AdminContext
from retain.admin.definitions.defining import MAX_AGENTS, MAX_VERSIONS, Defined
from retain.agents.definitions import AgentDefinition
from retain.agents.versions.tenant_agents import deleted
from retain.agents.versions.version import MAX_DEFINITION_BYTES, AgentVersion, digest_of_definition
from retain.errors import InvalidInput
from retain.errors.codes import Code
from retain.http import Request, Response, json_response
from retain.identifiers import check_version
from retain.json_text import Json
from retain.memory.records.limits import END_OF_NUMBERS
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import AgentPageQuery, PageQuery, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route

_BASE = re.compile(r'(?:W/)?"?([0-9]{1,15})"?')
"""What `if-match` may be. A proxy that compresses makes a strong tag weak, and a version is equal or not.

Source: https://nginx.org/en/CHANGES (1.7.3)
"""


class DefinitionBody(RootModel[dict[str, JsonValue]]):
    """A definition: the fields of a file in `agents/`. `type` may be absent."""


class RollBackBody(BodyModel):
    """The version whose definition the agent is to have again."""

    version: int = Field(ge=1, lt=END_OF_NUMBERS)


async def list_definitions(context: AdminContext, request: TypedRequest[None, AgentPageQuery]) -> Response:
    """List the agents of the tenant by their types: those of the repository, and its own."""
    query = request.query
    agents, cursor = await context.agents.page(request.tenant_id, limit=query.limit, cursor=query.cursor)
    return json_response({"agents": [one.to_json() for one in agents], "cursor": cursor})


async def show_definition(context: AdminContext, request: PathRequest) -> Response:
    """Show an agent as it is defined now. A key reads only definitions of its own tenant's agents."""
    agent_type, catalogue = request.path["agent_type"], context.agents.catalogue
    if catalogue.has(agent_type):
        definition = catalogue.agent(agent_type)
        shown = _json_of(definition) if request.http.scopes is None else None
        names = ("version", "restored_from", "created_by", "created_at_ms")
        digest = digest_of_definition(definition)
        return json_response(
            {"agent_type": agent_type, "source": "repository", "digest": digest, "definition": shown}
            | dict.fromkeys(names)
        )
    current = await context.defined().current(request.tenant_id, agent_type)
    if current.deleted:
        raise deleted(agent_type)
    shown_version = _shown(current)
    del shown_version["deleted"]
    return _with_version(json_response({**shown_version, "source": "tenant"}), current)


async def define_agent(context: AdminContext, request: TypedRequest[DefinitionBody, None]) -> Response:
    """Define an agent, or change it: that adds a version. Idempotent: what it is already adds none."""
    defined = await context.defined().define(
        request.tenant_id,
        request.path["agent_type"],
        request.body.root,
        by=request.http.principal,
        based_on=_based_on(request.http),
    )
    return _answered(defined)


async def delete_agent(context: AdminContext, request: PathRequest) -> Response:
    """Delete an agent of the tenant: it begins no more runs, and open ones end as they began. Its memories stay."""
    based_on = _based_on(request.http)
    await context.defined().delete(
        request.tenant_id, request.path["agent_type"], by=request.http.principal, based_on=based_on
    )
    return Response(204, "")


async def check_agent(context: AdminContext, request: TypedRequest[DefinitionBody, None]) -> Response:
    """Check a definition without defining it."""
    checked = await context.defined().check(request.tenant_id, request.path["agent_type"], request.body.root)
    problems, warnings = ([one.to_json() for one in found] for found in (checked.problems, checked.warnings))
    return json_response({"valid": not problems, "problems": problems, "warnings": warnings, "digest": checked.digest})


async def roll_back_agent(context: AdminContext, request: TypedRequest[RollBackBody, None]) -> Response:
    """Define an agent as it was in an earlier version: that adds a version. One that was deleted is there again."""
    defined = await context.defined().roll_back(
        request.tenant_id,
        request.path["agent_type"],
        request.body.version,
        by=request.http.principal,
        based_on=_based_on(request.http),
    )
    return _answered(defined)


async def list_agent_versions(context: AdminContext, request: TypedRequest[None, PageQuery]) -> Response:
    """List the versions of an agent of the tenant, the newest first, deletions too, without their definitions."""
    query = request.query
    before = END_OF_NUMBERS if query.cursor is None else _cursor(query.cursor)
    found = await context.defined().versions(
        request.tenant_id, request.path["agent_type"], before=before, limit=query.limit + 1
    )
    cursor = str(found[query.limit - 1].version) if len(found) > query.limit else None
    return json_response({"versions": [one.to_json() for one in found[: query.limit]], "cursor": cursor})


async def show_agent_version(context: AdminContext, request: PathRequest) -> Response:
    """Show one version of an agent of the tenant."""
    version = int(request.path["version"])
    return json_response(
        _shown(await context.defined().version(request.tenant_id, request.path["agent_type"], version))
    )


def _answered(defined: Defined) -> Response:
    version = defined.version
    warnings = [one.to_json() for one in defined.warnings]
    shown = {**_shown(version), "added": defined.added, "warnings": warnings}
    return _with_version(json_response(shown, 201 if defined.added and version.version == 1 else 200), version)


def _with_version(answer: Response, version: AgentVersion) -> Response:
    return Response(answer.status, answer.body, {**answer.headers, "etag": f'"{version.version}"'})


def _shown(version: AgentVersion) -> dict[str, Json]:
    return {**version.to_json(), "definition": None if version.deleted else _json_of(version.definition)}


def _json_of(definition: AgentDefinition) -> Json:
    shown: Json = definition.model_dump(mode="json")
    return shown


def _based_on(http: Request) -> int | None:
    """Return the version that `if-match` names, None without one. Raises: InvalidInput (code `invalid_version`)."""
    text = http.headers.get("if-match")
    if text is None:
        return None
    found = _BASE.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(
            "if-match names one version, or 0 for an agent that must not be there", code="invalid_version"
        )
    return int(found[1])


def _cursor(text: str) -> int:
    try:
        return int(check_version(text))
    except InvalidInput as error:
        raise InvalidInput("the cursor is not valid", code="invalid_cursor") from error


_AGENTS = "/admin/tenants/{tenant}/agents"
_AGENT = f"{_AGENTS}/{{agent_type}}"
_OF_TENANT: tuple[Code, ...] = ("invalid_agent_type", "invalid_tenant", "unknown_tenant")
_CHANGED: tuple[Code, ...] = (
    "invalid_agent",
    "agent_too_large",
    "agent_changed",
    "agent_of_repository",
    "too_many_agents",
    "too_many_agent_versions",
    "invalid_version",
    "contended",
    *_OF_TENANT,
)
_BASED_ON = {"if-match": "the version that must be current, as in `etag`; 0 for an agent that must not be there"}
_DEFINED = "the version that the agent has now, with its `definition`; `added`: whether it is new; `warnings`"
RESOURCE: Resource[AdminContext] = Resource(
    "Tenants' own agents",
    (
        Route(
            "GET",
            _AGENTS,
            list_definitions,
            name="list_agent_definitions",
            needs="viewer",
            query=QueryString(AgentPageQuery),
            answers=(Answer(200, '`{"agents", "cursor"}`, as [an application lists them](#agents)', DefinitionsJson),),
            errors=("invalid_limit", "invalid_cursor", "invalid_tenant", "unknown_tenant"),
        ),
        Route(
            "GET",
            _AGENT,
            show_definition,
            name="get_agent_definition",
            needs="viewer",
            answers=(
                Answer(
                    200,
                    "the agent, with `source`, `version` and `definition`. For a key, the `definition` of an agent of the"
                    " repository is null",
                    ShownAgentJson,
                ),
            ),
            errors=("unknown_agent", "agent_deleted", "agent_unreadable", *_OF_TENANT),
        ),
        Route(
            "PUT",
            _AGENT,
            define_agent,
            needs="operator",
            body=JsonBody(DefinitionBody),
            takes="[a definition](agents.md#a-definition), `type` optional: at most"
            f" {MAX_DEFINITION_BYTES:,} bytes with every default. A tenant has at most {MAX_AGENTS} agents, and"
            f" {MAX_VERSIONS:,} versions of them",
            headers=_BASED_ON,
            answers=(
                Answer(201, _DEFINED, model=DefinedAgentJson),
                Answer(200, "the same, for an agent that was there", model=DefinedAgentJson),
            ),
            errors=_CHANGED,
        ),
        Route(
            "DELETE",
            _AGENT,
            delete_agent,
            needs="operator",
            headers=_BASED_ON,
            answers=(Answer(204, media_types=()),),
            errors=(
                "unknown_agent",
                "agent_in_use",
                "agent_changed",
                "agent_of_repository",
                "invalid_version",
                "contended",
                *_OF_TENANT,
            ),
        ),
        Route(
            "POST",
            f"{_AGENT}/check",
            check_agent,
            needs="operator",
            body=JsonBody(DefinitionBody),
            takes="a definition, as `PUT` takes it",
            answers=(
                Answer(
                    200,
                    '`{"valid", "problems", "warnings", "digest"}`: each problem has a `pointer` into the definition and a'
                    " `message`",
                    CheckedAgentJson,
                ),
            ),
            errors=("agent_of_repository", "agent_too_large", *_OF_TENANT),
        ),
        Route(
            "POST",
            f"{_AGENT}/rollback",
            roll_back_agent,
            needs="operator",
            body=JsonBody(RollBackBody),
            takes="`version`: whose definition the agent is to have again",
            headers=_BASED_ON,
            answers=(Answer(200, _DEFINED, model=DefinedAgentJson),),
            errors=("no_such_agent_version", "unknown_agent", "agent_unreadable", *_CHANGED),
        ),
        Route(
            "GET",
            f"{_AGENT}/versions",
            list_agent_versions,
            needs="viewer",
            query=QueryString(PageQuery),
            answers=(Answer(200, '`{"versions", "cursor"}`, the newest first', AgentVersionsJson),),
            errors=("unknown_agent", "invalid_limit", "invalid_cursor", *_OF_TENANT),
        ),
        Route(
            "GET",
            f"{_AGENT}/versions/{{version}}",
            show_agent_version,
            name="get_agent_version",
            needs="viewer",
            answers=(Answer(200, "the version, with its `definition`: null for a deletion", ShownVersionJson),),
            errors=("no_such_agent_version", "unknown_agent", "agent_unreadable", "invalid_version", *_OF_TENANT),
        ),
    ),
    about="Agents that a tenant defines itself, besides those of the repository: see [their page](runtime-agents.md).",
)
