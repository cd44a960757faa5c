"""OAuth 2.0 Protected Resource Metadata: who issues the tokens of the MCP servers, if the deployment says so.

Clients of MCP look it up after a 401. Without a configured server there is nothing to say: Cloudflare Access with its
managed OAuth answers before the Worker, and keys are made by operators.
Source: https://www.rfc-editor.org/rfc/rfc9728
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from retain.errors import NotFound
from retain.http import Response, json_response
from retain.routing.parameters import PathParameter
from retain.routing.requests import PathRequest
from retain.routing.route import Answer, Resource, Route
from retain.routing.router import Router

WELL_KNOWN = "/.well-known/oauth-protected-resource"
"""Where the metadata is; a resource's path follows."""
_RESOURCES = re.compile(r"mcp|v1/agents/[^/]+/mcp|(?:v1|admin)/tenants/[^/]+/mcp")
"""The paths of the MCP servers, without their slash."""
_LOOPBACK = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?")


@dataclass(frozen=True, slots=True)
class ProtectedResources:
    """The MCP servers of a deployment. servers: the issuers of their tokens, none if nothing is configured."""

    servers: Sequence[str]

    def challenge(self, host: str, path: str) -> str | None:
        """Return what a 401 says about a path: where its metadata is, None where there is none."""
        if not self.servers or _RESOURCES.fullmatch(path[1:]) is None:
            return None
        return f'Bearer resource_metadata="{_origin(host)}{WELL_KNOWN}{path}"'


@dataclass(frozen=True, slots=True)
class ProtectedResourceAnswer:
    """The metadata of a protected resource, as RFC 9728 names it."""

    resource: str
    authorization_servers: Sequence[str]
    bearer_methods_supported: Sequence[Literal["header"]] = ("header",)
    resource_name: str = "Retain"


async def show_protected_resource(resources: ProtectedResources, request: PathRequest) -> Response:
    """Report which authorization servers issue the tokens of an MCP server, to anyone."""
    path = request.path["resource"]
    if not resources.servers or _RESOURCES.fullmatch(path) is None:
        raise NotFound("this is not an MCP server with an authorization server", code="no_such_route")
    shown = ProtectedResourceAnswer(f"{_origin(request.http.host)}/{path}", tuple(resources.servers))
    answer = json_response({name: getattr(shown, name) for name in shown.__slots__})
    return Response(answer.status, answer.body, {**answer.headers, "access-control-allow-origin": "*"})


def _origin(host: str) -> str:
    return f"{'http' if _LOOPBACK.fullmatch(host) else 'https'}://{host}"


RESOURCE: Resource[ProtectedResources] = Resource(
    "Authorization servers",
    (
        Route(
            "GET",
            f"{WELL_KNOWN}/{{+resource}}",
            show_protected_resource,
            guard="anyone",
            answers=(
                Answer(
                    200,
                    "[metadata](mcp.md#who-issues-tokens) of the MCP server at the path `resource`",
                    ProtectedResourceAnswer,
                ),
            ),
            errors=("no_such_route",),
            parameters={"resource": PathParameter(_RESOURCES.pattern, str)},
        ),
    ),
)
ROUTER: Router[ProtectedResources] = Router((RESOURCE,), guard="anyone")
