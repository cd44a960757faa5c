"""What a handler receives: a request whose path, query and body are already read and valid."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from retain.http import Request
from retain.roles.role import Role

Body_co = TypeVar("Body_co", covariant=True)
Query_co = TypeVar("Query_co", covariant=True)
Value_co = TypeVar("Value_co", covariant=True)


@dataclass(frozen=True, slots=True)
class TypedRequest(Generic[Body_co, Query_co]):
    """A request as its route describes it.

    http: the request itself, for its headers and its id. path: the decoded path parameters, each valid.
    role: the caller's role for the tenant, None on routes without Access. tenants: for a route over the caller's own
    tenants, those that it may answer with; None for every tenant.
    """

    http: Request
    path: Mapping[str, str]
    query: Query_co
    body: Body_co
    role: Role | None = None
    tenants: Sequence[str] | None = ()

    @property
    def tenant_id(self) -> str:
        """Return the tenant of the path: registered, unless the route accepts any tenant id."""
        return self.path["tenant"]


PathRequest = TypedRequest[None, None]
"""A request of which only path and headers matter."""


class BodyReader(Protocol[Value_co]):
    """How the body of a route is read. A reader may leave the reading to the handler, piece by piece."""

    @property
    def model(self) -> type | None:
        """Return the pydantic model of the body, if it has one."""
        ...

    @property
    def media_type(self) -> str:
        """Return the body's media type."""
        ...

    @property
    def required(self) -> bool:
        """Return whether a request without a body is refused."""
        ...

    @property
    def streamed(self) -> bool:
        """Return whether the body is read as it arrives."""
        ...

    def read(self, request: Request) -> Value_co:
        """Return the value that the handler receives. Raises: InvalidInput."""
        ...


class QueryReader(Protocol[Value_co]):
    """How the query string of a route is read."""

    @property
    def model(self) -> type:
        """Return the pydantic model of the query string."""
        ...

    def read(self, query: Mapping[str, str]) -> Value_co:
        """Return the value that the handler receives. Raises: InvalidInput."""
        ...


@dataclass(frozen=True, slots=True)
class TextBody:
    """A body that the handler receives as text."""

    media_type: str
    required: bool = True
    streamed: bool = False
    model: type | None = None

    def read(self, request: Request) -> str:
        """Return the whole text."""
        return request.body


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """A body that the handler reads as it arrives, so that it need not fit into memory. model: of the whole body."""

    media_type: str
    model: type | None = None
    required: bool = True
    streamed: bool = True

    def read(self, request: Request) -> AsyncIterator[bytes]:
        """Return the pieces, which can be read once."""
        return request.pieces()
