"""A route, and the resource that it belongs to."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import unquote

from retain.application_keys.scope import KeyScope
from retain.errors.codes import Code
from retain.http import MAX_BODY_BYTES, Response
from retain.roles.role import Role
from retain.routing.parameters import BY_NAME, PathParameter
from retain.routing.requests import BodyReader, QueryReader, TypedRequest

Context_contra = TypeVar("Context_contra", contravariant=True)
Body = TypeVar("Body")
Query = TypeVar("Query")
Guard = Literal["anyone", "API key", "Access"]
Place = Literal["path", "body", "own", "deployment"]
"""Where a route names the tenant for which its caller needs the role. own: nowhere; it answers with what belongs to the
tenants for which the caller holds the role. deployment: nowhere; it needs the role for every tenant."""

ANSWER_BYTES = 1_048_576
"""About how large an answer of one page is, at most."""
_PARAMETER = re.compile(r"\{(\+?)(\w+)\}")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer other than a problem. what: a short description in Markdown. model: the type of its JSON body.

    media_types: those that the body can have; none for an answer without a body.
    """

    status: int
    what: str = ""
    model: object = None
    media_types: Sequence[str] = ("application/json",)


JSON_RPC = (
    Answer(200, "its answer"),
    Answer(202, "nothing, for a message that needs no answer", media_types=()),
    Answer(400, "a JSON-RPC error, with its `code` in `data`"),
    Answer(404, "a JSON-RPC error, for a method that does not exist"),
)
"""The answers of a route that takes messages of JSON-RPC."""


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Error codes that several routes share. what: how documentation names them, in Markdown."""

    what: str
    codes: tuple[Code, ...] = ()


class Route(Generic[Context_contra]):
    """One route: everything that is known about it before a request arrives.

    name: of the operation, unique among all routes: clients are generated with it. By default that of the handler.
    path: `{name}` is one segment, decoded; `{+name}` at the end is the rest of the path, not decoded.
    handle: its docstring's first line is the route's summary.
    takes: the body in a few words of Markdown. headers: the request headers that the route reads, each with a
    description.
    errors: the codes that only some routes answer with.
    parameters: the grammars of path parameters that differ from the default for their name.
    needs: the least role of the caller, where the guard is "Access"; without it, an owner of every tenant.
    scope: what an application's key needs to call it. for_users: whether tokens of an application's users may, too.
    tenant_in: where the tenant is named; by default in the path, or nowhere ("deployment").
    tenant: whether the tenant in the path must be registered. same_origin: whether pages of other origins are refused.
    answer_bytes: how large an answer may be, for `retain.limits.room`: by default that of a page where something is read.
    """

    def __init__(
        self,
        method: str,
        path: str,
        handle: Callable[[Context_contra, TypedRequest[Body, Query]], Awaitable[Response]],
        *,
        answers: Sequence[Answer],
        body: BodyReader[Body] | None = None,
        query: QueryReader[Query] | None = None,
        guard: Guard = "Access",
        needs: Role | None = None,
        scope: KeyScope = "admin",
        for_users: bool = False,
        tenant_in: Place | None = None,
        takes: str = "",
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Code | ErrorGroup] = (),
        parameters: Mapping[str, PathParameter] | None = None,
        tenant: Literal["registered", "any"] = "registered",
        same_origin: bool = False,
        max_body_bytes: int = MAX_BODY_BYTES,
        answer_bytes: int | None = None,
        name: str = "",
    ) -> None:
        self.method = method
        self.path = path.replace("{+", "{")
        # A type checker has checked that the readers fit the handler; from here on their value types are erased.
        self.handle: Callable[[Context_contra, TypedRequest[Any, Any]], Awaitable[Response]] = handle
        self.name = name or handle.__name__
        self.body = body
        self.query = query
        self.answers = tuple(answers)
        self.guard = guard
        self.needs: Role | None = needs
        self.scope: KeyScope = scope
        self.for_users = for_users
        self.takes = takes
        self.headers = dict(headers or {})
        self.errors = tuple(errors)
        self.same_origin = same_origin
        self.max_body_bytes = max_body_bytes
        large = ANSWER_BYTES if method == "GET" and guard == "Access" else 0
        self.answer_bytes = large if answer_bytes is None else answer_bytes
        found = _PARAMETER.findall(path)
        known = {**BY_NAME, **(parameters or {})}
        self.parameters = {name: known[name] for _, name in found}
        self.tenant_in: Place = tenant_in or ("path" if "tenant" in self.parameters else "deployment")
        self.requires_tenant = tenant == "registered" and "tenant" in self.parameters
        self._rest = bool(found) and found[-1][0] == "+"
        self._segments = tuple(
            (match[2], True) if (match := _PARAMETER.fullmatch(segment)) else (segment, False)
            for segment in path.split("/")
        )

    @property
    def summary(self) -> str:
        """Return what the route does, in one line."""
        return (inspect.getdoc(self.handle) or "").partition("\n")[0]

    def match(self, path: str) -> dict[str, str] | None:
        """Return the path parameters, unchecked, or None when the path does not match, as one that is not UTF-8."""
        parts = path.split("/", len(self._segments) - 1 if self._rest else -1)
        if len(parts) != len(self._segments):
            return None
        found: dict[str, str] = {}
        for (name, parameter), part in zip(self._segments, parts, strict=True):
            if parameter:
                found[name] = part
            elif name != part:
                return None
        last = self._segments[-1][0] if self._rest else None
        try:
            return {name: part if name == last else unquote(part, errors="strict") for name, part in found.items()}
        except UnicodeDecodeError:
            return None

    def check_path(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """Return the path parameters. Raises: InvalidInput for one that is not valid."""
        return {name: parameter.check(given[name]) for name, parameter in self.parameters.items()}


@dataclass(frozen=True, slots=True)
class Resource(Generic[Context_contra]):
    """The routes of one thing. title: a heading for people. about: a paragraph of Markdown that introduces it."""

    title: str
    routes: tuple[Route[Context_contra], ...]
    about: str = ""
