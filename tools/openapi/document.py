"""The whole document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from retain.routing.route import Resource, Route
from retain.version import __version__
from tools.http_docs import RESOURCES
from tools.openapi.codes import PROBLEM
from tools.openapi.examples import EXAMPLES
from tools.openapi.operation import REQUEST_ID, SECURITY_SCHEMES, operation, plain, public_path
from tools.openapi.schemas import PROBLEM_SCHEMA, REF, Json, components, types_of

_ABOUT = (
    "An agent runtime with memory. Times are epoch milliseconds. A list returns `cursor`: send it as `cursor` for the next"
    " page; it is null on the last. Operators reach what is under `/v1/tenants/` under `/admin/tenants/`, and the runs,"
    " procedures and decisions of a tenant under `/admin/agents/`, behind Cloudflare Access. Answers may get further"
    " members: ignore those that you do not know."
)


def document(resources: Sequence[Resource[Any]] = RESOURCES) -> Json:
    """Return the document of these resources."""
    routes = [(resource, route) for resource in resources for route in resource.routes]
    names, schemas = components(types_of([route for _, route in routes]))
    paths: dict[str, Json] = {}
    for resource, route in routes:
        paths.setdefault(public_path(route), {})[route.method.lower()] = operation(resource, route, names, EXAMPLES)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Retain",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [_tag(resource) for resource in resources],
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Problem": PROBLEM_SCHEMA},
            "headers": {"RequestId": REQUEST_ID},
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def with_plain_problems(whole: Json) -> Json:
    """Return the document with one schema for every problem, without the codes of each route.

    For generators that write a class for each schema: with the codes, these would be more than a thousand.
    """
    plainly = json.loads(json.dumps(whole))
    for methods in plainly["paths"].values():
        for one in methods.values():
            for response in one["responses"].values():
                if PROBLEM in response.get("content", {}):
                    response["content"][PROBLEM] = {"schema": {"$ref": REF.format(model="Problem")}}
    return dict(plainly)


def _tag(resource: Resource[Any]) -> Json:
    about = plain(resource.about)
    return {"name": resource.title, **({"description": about} if about else {})}


def operations(resources: Sequence[Resource[Any]] = RESOURCES) -> dict[str, Route[Any]]:
    """Return the routes by the names of their operations."""
    return {route.name: route for resource in resources for route in resource.routes}
