"""Every route behind Cloudflare Access, with a path and a body to try it with."""

from __future__ import annotations

import re
from typing import Any

from retain.admin.routes import ROUTER as ADMIN
from retain.agents.routes import ROUTER as AGENTS
from retain.routing.route import Route

_TABLES: tuple[tuple[Route[Any], ...], ...] = (ADMIN.routes, AGENTS.routes)
ROUTES: dict[str, Route[Any]] = {f"{route.method} {route.path}": route for routes in _TABLES for route in routes}
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
SAMPLES = {
    "tenant": "acme",
    "agent_type": "sdr",
    "instance_id": "desk",
    "user": "ann",
    "kind": "preference",
    "service": "crm",
    "session": "s1",
    "name": "dataset",
    "subject": "group:ops",
    "error_id": "0" * 32,
}
"""Values of path parameters; an identifier for every other."""


def path_of(route: Route[Any], tenant: str = "acme") -> str:
    """Return a path of the route."""
    samples = {**SAMPLES, "tenant": tenant}

    def sample(found: re.Match[str]) -> str:
        name = found[1]
        fitting = (samples.get(name, ULID), "0" * 32)
        return next(text for text in fitting if re.fullmatch(route.parameters[name].pattern, text))

    return re.sub(r"\{(\w+)\}", sample, route.path)


def trial_body(route: Route[Any], tenant: str = "acme") -> object:
    """Return a body: with the tenant if the route takes that from there, else one that no route accepts."""
    if route.tenant_in == "body":
        return {"tenant": tenant, "agent_type": "sdr", "memories": [{"content": "x"}]}
    return None if route.method in ("GET", "DELETE") else {"not": "a field"}
