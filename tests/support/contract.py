"""The OpenAPI document as a contract: whatever a test is answered is in it, and so is whatever it sends and is accepted.

On the host every router is held to it, on workerd every client. Objects of answers are open in the document, so that a
newer server may add a member; here they are closed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import httpx
import jsonschema_rs

from retain.errors import RetainError
from retain.http import Request, Response, problem
from retain.routing.route import Route
from retain.routing.router import Router
from tools.openapi import PROBLEM, document, operations, public_path

_OWN = "/v1/tenants/"
_OPEN, _CLOSED = "retain:open", "retain:closed"
"""Names of the document's schemas as they are, and with their objects closed."""
STREAM = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""What a stream of events has, so that no proxy keeps it or waits until it has ended."""
FILE = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, no-store",
}
"""What somebody's file has, so that a browser runs nothing in it, shows it nowhere else and keeps it for nobody."""


class Breach(AssertionError):
    """The server and the document differ."""


def check_answer(route: Route[Any], status: int, media_type: str, body: bytes | str) -> None:
    """Check an answer of a route. Raises: Breach."""
    known = _operation(route)["responses"].get(str(status))
    where = f"{route.name} answered {status}"
    if route.name == "call_tool" and not media_type.startswith(PROBLEM):
        return  # whatever the upstream answers
    if known is None:
        raise Breach(f"{where}, which the document does not have: {_shown(body)}")
    contents = known.get("content")
    if contents is None or not body:
        if contents is None and body and route.method != "HEAD":
            raise Breach(f"{where} with a body, which the document does not have")
        return
    kind = media_type.partition(";")[0].strip()
    if kind not in contents:
        raise Breach(f"{where} as {kind}, which the document does not have")
    if kind in (PROBLEM, "application/json"):
        _require(_answers(route.name, str(status), kind), json.loads(body), where)


def check_headers(route: Route[Any], headers: Mapping[str, str]) -> None:
    """Check what an answer has for browsers and proxies. Raises: Breach."""
    streamed = headers.get("content-type", "").startswith("text/event-stream") and route.name != "call_tool"
    wanted = STREAM if streamed else FILE if "content-disposition" in headers else {}
    lacking = wanted.items() - headers.items()
    if lacking:
        raise Breach(f"{route.name} answered without {sorted(lacking)}")


def check_body(route: Route[Any], body: bytes | str) -> None:
    """Check the body of a request that was accepted. Raises: Breach."""
    if not body or route.body is None or route.body.media_type != "application/json":
        return
    _require(_bodies(route.name), json.loads(body), f"{route.name} accepted a body")


def _require(schema: jsonschema_rs.Validator, value: object, where: str) -> None:
    found = [f"{'/'.join(map(str, error.instance_path))}: {error.message}"[:500] for error in schema.iter_errors(value)]
    if found:
        raise Breach(f"{where} that does not fit the document: {'; '.join(found[:5])}")


def _shown(body: bytes | str) -> str:
    return (body if isinstance(body, str) else body.decode(errors="replace"))[:300]


@cache
def _document() -> Mapping[str, Any]:
    return document()


@cache
def _schemas() -> jsonschema_rs.Registry:
    """Return the document's schemas as they are and closed, parsed once for all validators."""
    schemas = _document()["components"]["schemas"]
    closed = {**_closed(schemas), "Problem": schemas["Problem"]}
    named = {_OPEN: schemas, _CLOSED: closed}
    return jsonschema_rs.Registry([(name, {"components": {"schemas": each}}) for name, each in named.items()])


def _operation(route: Route[Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _document()["paths"][public_path(route)][route.method.lower()]
    return found


@cache
def _answers(name: str, status: str, kind: str) -> jsonschema_rs.Validator:
    schema = _operation(operations()[name])["responses"][status]["content"][kind]["schema"]
    return _compiled(schema if kind == PROBLEM else _closed(schema), _CLOSED)


@cache
def _bodies(name: str) -> jsonschema_rs.Validator:
    schema = _operation(operations()[name])["requestBody"]["content"]["application/json"]["schema"]
    return _compiled(schema, _OPEN)


def _compiled(schema: Mapping[str, Any], resource: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(_referring(schema, resource), registry=_schemas())


def _referring(schema: Any, resource: str) -> Any:
    """Return the schema with its references to the document's schemas as references to those of the resource."""
    if isinstance(schema, list):
        return [_referring(part, resource) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: f"{resource}{part}" if name == "$ref" and isinstance(part, str) else _referring(part, resource)
        for name, part in schema.items()
    }


def _closed(schema: Any) -> Any:
    """Return the schema with its objects closed: what they do not name is not allowed."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: _closed(part) for name, part in schema.items()}
    if "properties" in schema and "additionalProperties" not in schema and schema.get("type") == "object":
        parts["additionalProperties"] = False
    return parts


def route_of(method: str, path: str) -> Route[Any] | None:
    """Return the route that the Worker takes for a request."""
    if path.startswith(_OWN):
        path = path.replace(_OWN, "/admin/tenants/", 1)
    fitting = (route for route in operations().values() if route.method == method and route.match(path) is not None)
    return next(fitting, None)


def check_exchange(answer: httpx.Response) -> None:
    """Check an answer of a served Worker, as a hook of a client. Streams are read by the test. Raises: Breach."""
    asked = answer.request
    route = route_of(asked.method, asked.url.raw_path.decode().partition("?")[0])
    if route is None:
        return
    media_type = answer.headers.get("content-type", "")
    streamed = media_type.startswith("text/event-stream")
    body = b"" if streamed else answer.read()
    if media_type.startswith(PROBLEM) and b'"code": "no_such_route"' in body:
        return  # the platform reads a path with encoded dots differently
    check_answer(route, answer.status_code, media_type, body)
    check_headers(route, answer.headers)
    if answer.is_success:
        check_body(route, _sent(asked))


def _sent(asked: httpx.Request) -> bytes:
    try:
        return asked.content
    except httpx.RequestNotRead:  # sent piece by piece
        return b""


def hold_routers() -> None:
    """Hold every router of this process to the document, from now on."""
    answer_of = Router._answer

    async def held(
        self: Router[Any], route: Route[Any], given: Mapping[str, str], request: Request, admit: Any
    ) -> Response:
        if operations_by_id().get(id(route)) is None:
            return await answer_of(self, route, given, request, admit)
        try:
            answer = await answer_of(self, route, given, request, admit)
        except RetainError as error:
            refused = problem(error, "")
            check_answer(route, refused.status, PROBLEM, refused.body)
            raise
        check_answer(route, answer.status, answer.headers.get("content-type", ""), answer.body)
        check_headers(route, answer.headers)
        if answer.status < 300:
            check_body(route, request.body)
        return answer

    Router._answer = held  # type: ignore[method-assign]


@cache
def operations_by_id() -> Mapping[int, Route[Any]]:
    """Return the routes of the Worker by their identity: tests make routes of their own."""
    return {id(route): route for route in operations().values()}
