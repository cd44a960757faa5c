"""A route as an operation: its name, its parameters, who may ask, and its answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from retain.routing.application_paths import applications_path
from retain.routing.route import Answer, Resource, Route
from tools.openapi.codes import PROBLEM, STATUSES, TITLES, codes_of
from tools.openapi.schemas import REF, Json, Key, query_fields, without_null

SECURITY_SCHEMES: Json = {
    "Access": {
        "type": "apiKey",
        "in": "header",
        "name": "cf-access-jwt-assertion",
        "description": "For operators and their services: the token that Cloudflare Access itself adds. Named with it is the"
        " role that is needed.",
    },
    "ApplicationKey": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "retainapp_…",
        "description": "For applications, where a deployment accepts their keys. Named with it is the scope that is needed.",
    },
    "UserToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "For an application's users: a short-lived token, made with the application's key.",
    },
    "GatewayKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "For agents that call tools: a key of the gateway.",
    },
    "GatewayKeyHeader": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The same key."},
}
REQUEST_ID: Json = {"description": "The request's id, as in the log.", "schema": {"type": "string"}}
_REQUEST_ID_REF = {"x-request-id": {"$ref": "#/components/headers/RequestId"}}
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")


def public_path(route: Route[Any]) -> str:
    """Return the path under which the document has a route.

    What applications reach is under `/v1/`; for operators the same is under `/admin/`.
    """
    return applications_path(route.path) if route.tenant_in in ("path", "own") else route.path


def plain(markdown: str) -> str:
    """Return the text without its links, which lead to pages next to docs/http.md, in one line."""
    return re.sub(r"\s+", " ", _LINK.sub(r"\1", markdown)).strip()


def operation(
    resource: Resource[Any], route: Route[Any], names: Mapping[Key, Json], examples: Mapping[str, object]
) -> Json:
    """Return the operation of a route. names: a reference for each type. examples: of bodies, by the operations' names."""
    found: Json = {
        "operationId": route.name,
        "tags": [resource.title],
        "summary": plain(route.summary),
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": _responses(route, names),
        "security": _security(route),
    }
    if route.body is not None:
        schema = {"type": "string"} if route.body.media_type != "application/json" else {"type": "object"}
        if route.body.model is not None:
            schema = names[route.body.model, "validation"]
        content: Json = {"schema": schema}
        if route.name in examples:
            content["example"] = examples[route.name]
        found["requestBody"] = {
            "description": plain(route.takes),
            "required": route.body.required,
            "content": {route.body.media_type: content},
        }
    return found


def _security(route: Route[Any]) -> list[Json]:
    if route.guard == "anyone":
        return []
    if route.guard == "API key":
        return [{"GatewayKey": []}, {"GatewayKeyHeader": []}]
    found: list[Json] = [{"Access": [route.needs or "owner"]}]
    if public_path(route).startswith("/v1/"):
        found.append({"ApplicationKey": [route.scope]})
        if route.for_users:
            found.append({"UserToken": [route.scope]})
    return found


def _path_parameters(route: Route[Any]) -> Iterator[Json]:
    for name, parameter in route.parameters.items():
        schema = {"type": "string", "pattern": f"^(?:{parameter.pattern})$"}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(route: Route[Any]) -> Iterator[Json]:
    if route.query is None:
        return
    fields, required = query_fields(route.query.model)
    for name, field in fields.items():
        about = plain(field.pop("description", ""))
        given = without_null(field)
        form = (
            {"schema": given} if given.get("type") != "object" else {"content": {"application/json": {"schema": given}}}
        )
        yield {"name": name, "in": "query", "required": name in required, "description": about, **form}


def _header_parameters(route: Route[Any]) -> Iterator[Json]:
    for name, about in route.headers.items():
        yield {
            "name": name,
            "in": "header",
            "required": False,
            "description": plain(about),
            "schema": {"type": "string"},
        }


def _responses(route: Route[Any], names: Mapping[Key, Json]) -> Json:
    with_body = route.method != "HEAD"
    found = {str(answer.status): _success(answer, names, with_body=with_body) for answer in route.answers}
    by_status: dict[str, list[str]] = {}
    for code in codes_of(route):
        for number in STATUSES[code]:
            by_status.setdefault(str(number), []).append(code)
    for status, listed in by_status.items():
        known = found.setdefault(status, {"description": TITLES[int(status)], "headers": _REQUEST_ID_REF})
        if with_body:
            known.setdefault("content", {})[PROBLEM] = {"schema": _problem_of(listed)}
    return dict(sorted(found.items()))


def _problem_of(codes: list[str]) -> Json:
    """Return the schema of a problem with one of these codes."""
    return {
        "allOf": [
            {"$ref": REF.format(model="Problem")},
            {"type": "object", "properties": {"code": {"type": "string", "enum": codes}}},
        ]
    }


def _success(answer: Answer, names: Mapping[Key, Json], *, with_body: bool) -> Json:
    described: Json = {"description": plain(answer.what) or "done", "headers": _REQUEST_ID_REF}
    if with_body and answer.status != 204 and answer.media_types:
        described["content"] = {kind: {"schema": _schema(answer, kind, names)} for kind in answer.media_types}
    return described


def _schema(answer: Answer, media_type: str, names: Mapping[Key, Json]) -> Json:
    if media_type != "application/json":
        return {"type": "string"}
    return {} if answer.model is None else names[answer.model, "serialization"]
