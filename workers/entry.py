"""The Worker: routes requests to the gateway, the agents or the administrator's side, and scheduled events to their
work.

Thin: it converts the platform's request into a value, checks who may ask, and converts the answer or the error back.
"""

from __future__ import annotations

import os

import precompiled

precompiled.install()  # before what it answers for
# Else pydantic looks for plugins of its own in every file of the standard library and of the packages.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import logging
from collections.abc import Awaitable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import fastjsonschema  # noqa: F401
import ulid  # noqa: F401

import assembly.gateway  # noqa: F401 -- here, not with the first call of a tool: see the comment below
import retain.routing.health
from adapters.body import ArrivingBody
from adapters.web import Headers, platform_response
from assembly.root import Assembly, assembly_of
from bindings import now_ms
from durable_objects.agent_runtime import AgentRuntime
from durable_objects.tenant_writer import TenantWriter
from retain import errors
from retain.application_keys.origins import CallingPage
from retain.http import Request, Response, problem
from retain.identifiers import new_id
from retain.limits.room import Lease, Memory
from retain.log import bind
from retain.routing.application_paths import operators_path
from retain.routing.router import Match, admitting
from workers import WorkerEntrypoint

if TYPE_CHECKING:
    from retain.agent_memory.context import AgentMemoryContext

precompiled.expect_more()

__all__ = ["AgentRuntime", "Default", "TenantWriter"]

_OF_CLOUDFLARE = "/client/v4/"
"""Under which Cloudflare's API is answered: Agent Memory's part of it."""
_OF_OPENAI = ("/v1/chat/", "/v1/models")
"""Under which OpenAI's interface of chat models is answered."""
_CROSSED = "/v1/"
"""Where pages of the origins may come that keys of applications allow."""
# What a call of a tool and `GET /healthz` need is loaded with this module, and so is in the memory snapshot that Cloudflare
# takes of a deployed Worker. All other areas are loaded by their first request.
# Source: https://developers.cloudflare.com/workers/languages/python/how-python-workers-work/
_log = logging.getLogger("retain.entry")
_memory = Memory(now_ms)
"""The memory of the isolate, of which each request takes what it needs."""


class Default(WorkerEntrypoint):
    """The Worker's entrypoint."""

    def __init__(self, ctx: Any, env: Any) -> None:
        self.ctx, self.env = ctx, env  # what the base class does, after wrapping both once more
        vars(self)["fetch"] = _Fetching(self)

    async def fetch(self, request: Any) -> Any:
        """Answer one HTTP request."""
        request_id, page = new_id(), CallingPage()
        with bind(request_id=request_id), _memory.leased() as lease:
            try:
                answer = await _answer(assembly_of(self.env), request, request_id, lease, page)
            except errors.Unauthenticated as error:
                answer = _challenged(assembly_of(self.env), request.url, _refusal(request.url, error, request_id))
            except errors.RetainError as error:
                answer = _refusal(request.url, error, request_id)
            except Exception:  # the edge of the Worker: the caller gets a problem, the log the traceback
                _log.exception("unexpected error")
                unexpected = errors.RetainError("an unexpected error occurred; it was logged")
                answer = _refusal(request.url, unexpected, request_id)
            return platform_response(answer, request_id, page.headers)

    async def scheduled(self, controller: Any, env: Any = None, ctx: Any = None) -> None:  # noqa: ARG002
        """Do the work of the cron expression. An expression without work is an error."""
        from assembly.scheduled import catch_up, daily_brief, weekly_pruning
        from retain.admin import catching_up, maintenance

        assembly = assembly_of(self.env)
        match controller.cron:
            case maintenance.PRUNE | maintenance.PRUNE_IN_CRON:
                await weekly_pruning(assembly)
            case maintenance.BRIEF:
                await daily_brief(assembly)
            case catching_up.CATCH_UP:
                await catch_up(assembly)
            case other:
                raise errors.Misconfigured(f"there is no work for the schedule '{other}'", code="unknown_schedule")


class _Fetching:
    """The method `fetch` of an entrypoint. All of them are equal: the SDK examines the signature of each new one, which
    takes longer than the rest of its work, and remembers those that it has examined. A call takes it from its entrypoint,
    which serves one request: neither then waits for the collector of cycles.
    """

    __slots__ = ("_entrypoint",)

    def __init__(self, entrypoint: Default) -> None:
        self._entrypoint = entrypoint

    def __call__(self, request: Any) -> Awaitable[Any]:
        vars(self._entrypoint).pop("fetch", None)
        return Default.fetch(self._entrypoint, request)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Fetching)

    def __hash__(self) -> int:
        return hash(_Fetching)


async def _answer(assembly: Assembly, incoming: Any, request_id: str, lease: Lease, page: CallingPage) -> Response:
    url = urlsplit(incoming.url)
    method = str(incoming.js_object.method)
    if url.path.startswith(_CROSSED) and assembly.platform.settings.application_keys:
        headers = Headers(incoming.js_object.headers)
        page.arrive(headers.get("origin"))
        if method == "OPTIONS" and page.origin is not None and "access-control-request-method" in headers:
            with assembly.reading_everywhere():
                await assembly.access.preflights.answer(page, page.origin)
            return Response(204, "")
    match = _match(assembly, method, url.path)
    parameters = parse_qsl(url.query, keep_blank_values=True, errors="surrogateescape")  # refused by the router
    query = dict(parameters)
    body = None if method in ("GET", "HEAD") else ArrivingBody(incoming.js_object, match.max_body_bytes)
    request = Request(
        method=method,
        path=url.path,
        query=query,
        headers=Headers(incoming.js_object.headers),
        body="",
        host=url.netloc,
        request_id=request_id,
        arriving=body,
        lease=lease,
        page=page,
        repeated=() if len(query) == len(parameters) else _repeated([name for name, _ in parameters]),
    )
    try:
        with _place_of(assembly, match):
            return await assembly.observed(match.route, request, _guarded(assembly, match, request))
    except errors.RetainError:
        raise
    except Exception as failure:
        if match.guard == "Access":  # the proxy knows KV alone, and what is open to anyone writes nothing
            assembly.note_failure(match.route, failure)
        raise
    finally:
        if body is not None:
            await body.discard_rest()


def _place_of(assembly: Assembly, match: Match) -> AbstractContextManager[None]:
    """Return where a request is answered, if there are several databases: where its tenant is, or in all that it may see."""
    if match.tenant is None and match.tenant_in == "own" and match.route.startswith("GET "):
        return assembly.reading_everywhere()
    return assembly.located(match.tenant)


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _match(assembly: Assembly, method: str, path: str) -> Match:
    """Return the request's route. Only the area that the path begins with is loaded."""
    if path == "/mcp" or path.startswith("/api/v1/"):
        return assembly.gateway.match(method, path)
    under_admin = operators_path(path)
    if under_admin is not None:
        from retain.admin.routes import ROUTER as ADMIN

        return ADMIN.match(method, under_admin, admitting(lambda: assembly.admin))
    if path.startswith("/v1/agents/"):
        from retain.agents.routes import ROUTER as AGENTS

        return AGENTS.match(method, path, admitting(lambda: assembly.agents))
    if path.startswith(_OF_OPENAI):
        from retain.agents.front_ends.chat_routes import ROUTER as CHAT

        return CHAT.match(method, path, admitting(lambda: assembly.agents))
    if path.startswith(_OF_CLOUDFLARE):
        from retain.agent_memory.routes import ROUTER as AGENT_MEMORY

        async def admit(request: Request) -> AgentMemoryContext:
            return await assembly.agent_memory.admit(request)

        return AGENT_MEMORY.match(method, path, admit)
    if path.startswith("/.well-known/"):
        from retain.routing.protected_resources import ROUTER as PROTECTED_RESOURCES

        return PROTECTED_RESOURCES.match(method, path, admitting(lambda: assembly.protected_resources))
    return retain.routing.health.ROUTER.match(method, path, admitting(lambda: assembly.readiness))


def _refusal(url: str, error: errors.RetainError, request_id: str) -> Response:
    """Return an error as the caller reads it: in the form of whose interface the path is, else as a problem."""
    path = urlsplit(url).path
    if path.startswith(_OF_CLOUDFLARE):
        from retain.agent_memory.envelope import refused

        return refused(error, request_id)
    if path.startswith(_OF_OPENAI):
        from retain.agents.front_ends.openai_errors import refused as refused_as_openai

        return refused_as_openai(error, request_id)
    return problem(error, request_id)


def _challenged(assembly: Assembly, url: str, answer: Response) -> Response:
    """Return a refusal with the way to a token: for an MCP server with authorization servers, where its metadata is."""
    challenge = "Bearer"
    if assembly.platform.settings.authorization_servers:
        asked = urlsplit(url)
        challenge = assembly.protected_resources.challenge(asked.netloc, asked.path) or challenge
    return replace(answer, headers={**answer.headers, "www-authenticate": challenge})


async def _guarded(assembly: Assembly, match: Match, request: Request) -> Response:
    """Answer a request. Who sends it is checked here; keys of the gateway are checked by the gateway."""
    if match.guard != "Access":
        return await match.answer(request)
    began_ms = now_ms()
    caller = await assembly.access.caller_of(request)
    rates = assembly.platform.rates
    await rates.check_caller(caller.counted)
    with assembly.changes_of(caller.principal):
        named = replace(request, caller=caller.name, principal=caller.principal)
        known = replace(named, authority=caller.authority, scopes=caller.scopes, bound=caller.bound, rates=rates)
        answer = await match.answer(known)
    if caller.key is None:
        return answer
    if answer.stream is None:
        if match.scope == "runs":  # which alone wait for long
            await assembly.access.require_again(caller.key, began_ms)
        return answer
    return replace(answer, stream=assembly.access.while_valid(caller.key, answer.stream))
