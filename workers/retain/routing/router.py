"""Find a request's route, and answer the request."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from retain.application_keys.scope import KeyScope
from retain.errors import Forbidden, InvalidInput, MethodNotAllowed, NotFound, RetainError
from retain.http import MAX_BODY_BYTES, Request, Response
from retain.roles.role import OwnerOfAll
from retain.routing.permission import permission
from retain.routing.requests import TypedRequest
from retain.routing.route import Guard, Place, Resource, Route

Context = TypeVar("Context")
_ESCAPED = re.compile(r"[\ud800-\udfff]")
"""What is read in a query instead of a byte that is not UTF-8."""


Admit = Callable[[Request], Awaitable[Context]]
"""Returns what a handler works with, or refuses the caller."""


def admitting(context_of: Callable[[], Context]) -> Admit[Context]:
    """Return an `Admit` that admits every caller: for routes without a guard, or whose guard is checked elsewhere."""

    async def admit(_: Request) -> Context:
        return context_of()

    return admit


class TenantRegister(Protocol):
    """A register of tenants."""

    async def require(self, tenant_id: str) -> str:
        """Return the id of a registered tenant. Raises: NotFound (code `unknown_tenant`); Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Match:
    """What a method and a path match.

    guard: who may ask. route: the method and the path of the route, "" for none. max_body_bytes: largest body that is read.
    answer: to be called after "Access" was checked; raises why the request is refused, even for an unknown route,
    so that only those who may ask learn which routes exist. tenant: as the path has it, unchecked. scope: of the route.
    """

    guard: Guard
    max_body_bytes: int
    answer: Callable[[Request], Awaitable[Response]]
    route: str = ""
    tenant: str | None = None
    tenant_in: Place = "deployment"
    scope: KeyScope = "admin"


class Router(Generic[Context]):
    """The routes of one area. guard: of unknown paths. tenants: returns the register from what handlers work with."""

    def __init__(
        self,
        resources: Sequence[Resource[Context]],
        *,
        guard: Guard,
        tenants: Callable[[Context], TenantRegister] | None = None,
    ) -> None:
        self.resources = tuple(resources)
        self.routes: tuple[Route[Context], ...] = tuple(route for resource in resources for route in resource.routes)
        self._guard = guard
        self._tenants = tenants

    def match(self, method: str, path: str, admit: Admit[Context]) -> Match:
        """Return the first route that matches, ready to answer.

        admit: returns what the handler works with. It is called once the path is known to be valid, before anything
        else is read, and refuses callers that the route's guard does not allow, unless the guard is "Access".
        """
        try:
            route, given = self._found(method, path)
        except RetainError as error:
            return Match(self._guard, MAX_BODY_BYTES, _refusal(error))

        async def answer(request: Request) -> Response:
            return await self._answer(route, given, request, admit)

        named = f"{route.method} {route.path}"
        return Match(
            route.guard, route.max_body_bytes, answer, named, given.get("tenant"), route.tenant_in, route.scope
        )

    async def handle(self, context: Context, request: Request) -> Response:
        """Answer a request whose caller has been admitted; one without an authority is an owner of every tenant.

        Raises: what the route and its handler raise.
        """
        if request.authority is None:
            request = replace(request, authority=OwnerOfAll())
        return await self.match(request.method, request.path, admitting(lambda: context)).answer(request)

    def _found(self, method: str, path: str) -> tuple[Route[Context], dict[str, str]]:
        """Return the route and the path's parameters. Raises: NotFound (code `no_such_route`); MethodNotAllowed."""
        allowed: set[str] = set()
        for route in self.routes:
            given = route.match(path)
            if given is None:
                continue
            if route.method == method:
                return route, given
            allowed.add(route.method)
        if allowed:
            raise MethodNotAllowed("the route exists, but not with this method", allowed=sorted(allowed))
        raise NotFound("there is no such route", code="no_such_route")

    async def _answer(
        self,
        route: Route[Context],
        given: Mapping[str, str],
        request: Request,
        admit: Admit[Context],
    ) -> Response:
        if route.same_origin:
            _check_origin(request)
        path = route.check_path(given)
        context = await admit(request)
        permitted = await permission(route, request, path)
        if request.bound is not None and "instance_id" in path:
            path = {**path, "instance_id": request.bound.instance(path["instance_id"])}
        query = _query_of(route, request)
        kind = (route.path, path.get("tenant", ""))
        request = await _received(route, request, kind)
        body = None
        if route.body is not None:
            body = route.body.read(request)
            if route.tenant_in == "body":
                permitted = await permission(route, request, {"tenant": vars(body)["tenant"]})
        if route.requires_tenant and self._tenants is not None:
            await self._tenants(context).require(path["tenant"])
        answer = await route.handle(
            context, TypedRequest(request, path, query, body, permitted.role, permitted.tenants)
        )
        if request.lease is not None:
            request.lease.answers(len(answer.body), kind, route.answer_bytes)
        return answer


async def _received(route: Route[Context], request: Request, kind: tuple[str, str]) -> Request:
    """Return the request with its body, and with room for it and for the answer.

    Nothing of the body has been read before: the caller may have no right to send it. While it arrives it has room of
    another kind, which one that is streamed keeps, and one that is whole releases when the request has its own.
    """
    size, streamed = _body_bytes(route, request), route.body is not None and route.body.streamed
    if request.lease is not None:
        await request.lease.take_body(size)
    if route.body is not None:
        request = await request.received(streamed=streamed)
    if request.lease is not None:
        await request.lease.take(0 if streamed else size, kind, route.answer_bytes)
        if not streamed:
            request.lease.arrived()
    return request


def _body_bytes(route: Route[Context], request: Request) -> int:
    """Return how much of the memory a request's body takes. One that is read in pieces is never in it whole."""
    if route.body is None or request.arriving is None:
        return 0
    request.arriving.check_length()
    most = MAX_BODY_BYTES if route.body.streamed else route.max_body_bytes
    return min(request.arriving.most_bytes, most)


def _query_of(route: Route[Context], request: Request) -> object:
    """Return the query as the route reads it, None for a route without one.

    A parameter that nobody reads is refused: it may be the misspelt condition that was to leave something out. Only
    routes that are open to anyone ignore it, because probes append parameters of their own.
    Raises: InvalidInput (code `invalid_query`, or that of a parameter).
    """
    if request.repeated:
        problems = [f"{name}: given more than once" for name in request.repeated]
        raise InvalidInput("the query does not fit", code="invalid_query", problems=problems)
    broken = sorted(name for name, value in request.query.items() if _ESCAPED.search(name + value))
    if broken and route.guard != "anyone":
        problems = [f"{_ESCAPED.sub('?', name)}: not UTF-8" for name in broken]
        raise InvalidInput("the query does not fit", code="invalid_query", problems=problems)
    if route.query is not None:
        return route.query.read(request.query)
    if request.query and route.guard != "anyone":
        problems = [f"{name}: the route has no such parameter" for name in sorted(request.query)]
        raise InvalidInput("the query does not fit", code="invalid_query", problems=problems)
    return None


def _refusal(error: RetainError) -> Callable[[Request], Awaitable[Response]]:
    async def refuse(_: Request) -> Response:
        raise error

    return refuse


def _check_origin(request: Request) -> None:
    """Refuse a request sent by a page of another origin, which DNS rebinding may have directed here.

    Raises: Forbidden (code `cross_origin`).
    Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#security-warning
    """
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.host:
        raise Forbidden("pages of another origin may not call this", code="cross_origin")
