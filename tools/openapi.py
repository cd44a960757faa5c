"""The OpenAPI 3.1 document of the Worker, from the route tables: `python -m tools.openapi > openapi.json`.

Nothing in it is written by hand. An operation lists every status that its route can answer with, each with its codes.
Source: https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tools.http_docs import RESOURCES
from tools.paths import ROOT

sys.path.insert(0, str(ROOT / "workers"))

from retain import errors
from retain.errors import codes
from retain.http import problem
from retain.routing.route import Answer, ErrorGroup, Resource, Route
from retain.version import __version__

Json = dict[str, Any]
PROBLEM = "application/problem+json"
_REF = "#/components/schemas/{model}"

_CLASSES: Mapping[type[errors.RetainError], Any] = {
    errors.InvalidInput: codes.InvalidInputCode,
    errors.MethodNotAllowed: codes.MethodNotAllowedCode,
    errors.LimitExceeded: codes.LimitExceededCode,
    errors.Unauthenticated: codes.UnauthenticatedCode,
    errors.Forbidden: codes.ForbiddenCode,
    errors.NotFound: codes.NotFoundCode,
    errors.Conflict: codes.ConflictCode,
    errors.QuotaExceeded: codes.QuotaExceededCode,
    errors.Unavailable: codes.UnavailableCode,
    errors.UpstreamFailed: codes.UpstreamFailedCode,
    errors.Misconfigured: codes.MisconfiguredCode,
}
STATUSES: Mapping[str, int] = {
    code: problem(kind("", code=code), "").status for kind, literal in _CLASSES.items() for code in get_args(literal)
}
"""The HTTP status of each code."""

OF_ACCESS = (
    *("missing_access_token", "invalid_access_token", "cross_site_request", "forwarded_request", "role_required"),
    *("access_not_configured", "access_keys_unavailable"),
)
"""Codes of the routes behind Access."""
OF_STORES = (
    *("d1_unavailable", "kv_unavailable", "r2_unavailable", "vector_index_unavailable", "workers_ai_unavailable"),
    *("agent_instance_unavailable", "object_storage_unavailable", "database_full", "contended", "unavailable"),
    *("schema_outdated", "schema_unknown", "value_too_large"),
)
"""Codes of the routes that use a store."""


def document(resources: Sequence[Resource[Any]] = RESOURCES) -> Json:
    """Return the document of these resources."""
    routes = [(resource, route) for resource in resources for route in resource.routes]
    names, components = _components(sorted(set(_models(routes)), key=lambda model: model.__name__))
    paths: dict[str, Json] = {}
    for resource, route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(resource, route, names)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Retain", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {
                "Access": {"type": "apiKey", "in": "header", "name": "cf-access-jwt-assertion"},
                "ApiKey": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def operations(resources: Sequence[Resource[Any]] = RESOURCES) -> dict[str, Route[Any]]:
    """Return the routes by the names of their operations."""
    return {operation_id(route): route for resource in resources for route in resource.routes}


def codes_of(route: Route[Any]) -> list[str]:
    """Return every code with which the route refuses a request, sorted."""
    return sorted({*_own_codes(route), *_shared_codes(route)})


def operation_id(route: Route[Any]) -> str:
    """Return the operation's name, from its method and its path."""
    return re.sub(r"\W+", "_", f"{route.method.lower()}{route.path}").strip("_")


_PROBLEM: Json = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "request_id": {"type": "string"},
    },
}


def _own_codes(route: Route[Any]) -> Iterator[str]:
    for error in route.errors:
        yield from error.codes if isinstance(error, ErrorGroup) else (error,)


def _shared_codes(route: Route[Any]) -> Iterator[str]:
    """Yield the codes that follow from what the route reads, and who may ask."""
    yield "internal"
    if route.guard == "Access":
        yield from (*OF_ACCESS, *OF_STORES)
    for parameter in route.parameters.values():
        try:
            parameter.check("\x00")
        except errors.InvalidInput as error:
            yield error.code
    if route.requires_tenant:
        yield "unknown_tenant"
    if route.query is not None or route.guard == "Access":
        yield "invalid_query"
    if route.method not in ("GET", "HEAD"):
        yield from ("body_too_large", "body_interrupted")
    if route.body is not None:
        yield from ("malformed_json", "invalid_body")
    if "idempotency-key" in route.headers:
        yield "invalid_idempotency_key"


def _models(routes: Sequence[tuple[Resource[Any], Route[Any]]]) -> Iterator[type[BaseModel]]:
    for _, route in routes:
        read = [reader.model for reader in (route.body, route.query) if reader is not None]
        for model in (*read, *(answer.model for answer in route.answers)):
            if model is not None and issubclass(model, BaseModel):
                yield model


def _components(models: Sequence[type[BaseModel]]) -> tuple[dict[type[BaseModel], Json], Json]:
    """Return a reference for each model, and the schemas that they lead to."""
    found, schema = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
    return {model: found[model, "validation"] for model in models}, schema.get("$defs", {})


def _operation(resource: Resource[Any], route: Route[Any], names: Mapping[type[BaseModel], Json]) -> Json:
    found: Json = {
        "operationId": operation_id(route),
        "tags": [resource.title],
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": _responses(route, names),
    }
    if route.guard != "anyone":
        found["security"] = [{route.guard.title().replace(" ", ""): []}]
    if route.body is not None:
        found["requestBody"] = {
            "required": route.body.required,
            "content": {route.body.media_type: {"schema": _schema(route.body.model, names)}},
        }
    return found


def _schema(model: type | None, names: Mapping[type[BaseModel], Json]) -> Json:
    return names[model] if model is not None and issubclass(model, BaseModel) else {}


def _path_parameters(route: Route[Any]) -> Iterator[Json]:
    for name, parameter in route.parameters.items():
        schema = {"type": "string", "pattern": f"^(?:{parameter.pattern})$"}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(route: Route[Any]) -> Iterator[Json]:
    if route.query is None or not issubclass(route.query.model, BaseModel):
        return
    schema = route.query.model.model_json_schema(ref_template=_REF)
    for name, field in schema["properties"].items():
        about = field.pop("description", "")
        given = _without_null(field)
        form = (
            {"schema": given} if given.get("type") != "object" else {"content": {"application/json": {"schema": given}}}
        )
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": about,
            **form,
        }


def _without_null(schema: Json) -> Json:
    """Return the schema of a parameter: one that is absent has no value, and none is null."""
    kept = {_KEYWORDS.get(name, name): value for name, value in schema.items() if name not in _UNUSED}
    some = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    return {**kept, **(some[0] if len(some) == 1 else {"anyOf": some})} if some else kept


_UNUSED = ("default", "title", "anyOf")
_KEYWORDS = {"ge": "minimum", "le": "maximum"}
"""Keywords that pydantic leaves as its own where a validator of ours comes before its check."""


def _header_parameters(route: Route[Any]) -> Iterator[Json]:
    for name, about in route.headers.items():
        yield {"name": name, "in": "header", "required": False, "description": about, "schema": {"type": "string"}}


def _responses(route: Route[Any], names: Mapping[type[BaseModel], Json]) -> Json:
    found = {str(answer.status): _success(answer, names, with_body=route.method != "HEAD") for answer in route.answers}
    by_status: dict[str, list[str]] = {}
    for code in codes_of(route):
        by_status.setdefault(str(STATUSES.get(code, 500)), []).append(f"`{code}`")
    for status, listed in by_status.items():
        described = ", ".join(listed)
        if status in found:
            found[status]["description"] += f"; or {described}"
            found[status].setdefault("content", {})[PROBLEM] = _PROBLEM_REF
        else:
            content = {} if route.method == "HEAD" else {"content": {PROBLEM: _PROBLEM_REF}}
            found[status] = {"description": described, **content}
    return dict(sorted(found.items()))


_PROBLEM_REF: Json = {"schema": {"$ref": _REF.format(model="Problem")}}


def _success(answer: Answer, names: Mapping[type[BaseModel], Json], *, with_body: bool) -> Json:
    described: Json = {"description": re.sub(r"\s+", " ", answer.what) or "done"}
    if with_body and answer.status != 204 and answer.media_types:
        schema = {"schema": _schema(answer.model, names)}
        described["content"] = dict.fromkeys(answer.media_types, schema)
    return described


if __name__ == "__main__":
    print(json.dumps(document(), indent=1))
