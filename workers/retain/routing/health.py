"""Whether the Worker runs: answered to anyone, without reading anything."""

from __future__ import annotations

from retain.http import Response, json_response
from retain.routing.requests import PathRequest
from retain.routing.route import Answer, Resource, Route
from retain.routing.router import Router
from retain.version import __version__


async def show_health(_: None, __: PathRequest) -> Response:
    """Report that the Worker runs, and its version."""
    return json_response({"status": "ok", "version": __version__})


RESOURCE: Resource[None] = Resource(
    "Health",
    tuple(
        Route(method, "/healthz", show_health, guard="anyone", answers=(Answer(200, '`{"status": "ok", "version"}`'),))
        for method in ("GET", "HEAD")
    ),
)
ROUTER: Router[None] = Router((RESOURCE,), guard="anyone")
