"""Every route behind Cloudflare Access, with a path and a body to try it with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from retain.admin.routes import ROUTER as ADMIN
from retain.agent_memory.routes import ROUTER as AGENT_MEMORY
from retain.agents.front_ends.chat_routes import ROUTER as CHAT
from retain.agents.routes import ROUTER as AGENTS
from retain.routing.route import Route

if TYPE_CHECKING:
    from tests.shell.worker import Answer

_TABLES: tuple[tuple[Route[Any], ...], ...] = (ADMIN.routes, AGENTS.routes, CHAT.routes, AGENT_MEMORY.routes)
ROUTES: dict[str, Route[Any]] = {f"{route.method} {route.path}": route for routes in _TABLES for route in routes}
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
ACCOUNT = "0123456789abcdef"
"""The account of Cloudflare's API that is answered."""
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
    "account": ACCOUNT,
    "profile": "ann",
    "session_id": "s1",
    "message_id": f"msg_{ULID}",
    "model": "sdr",
    "version": "1",
}
"""Values of path parameters; an identifier for every other."""


def path_of(route: Route[Any], tenant: str = "acme") -> str:
    """Return a path of the route; of one that erases a tenant, with a query that it refuses."""
    samples = {**SAMPLES, "tenant": tenant}

    def sample(found: re.Match[str]) -> str:
        name = found[1]
        fitting = (samples.get(name, ULID), "0" * 32)
        return next(text for text in fitting if re.fullmatch(route.parameters[name].pattern, text))

    path = re.sub(r"\{(\w+)\}", sample, route.path)
    erases = route.method == "DELETE" and path.endswith(f"/namespaces/{tenant}")
    return f"{path}?not=a-parameter" if erases else path


def trial_body(route: Route[Any], tenant: str = "acme") -> object:
    """Return a body: with the tenant if the route takes that from there, else one that no route accepts."""
    if route.tenant_in == "body":
        return {"tenant": tenant, "agent_type": "sdr", "memories": [{"content": "x"}]}
    return None if route.method in ("GET", "DELETE") else {"not": "a field"}


def code_of(answer: Answer) -> str | None:
    """Return the code of a problem, also of one as Cloudflare's API or OpenAI's has it; None for another answer."""
    if answer.status < 400:
        return None
    content = answer.content
    found = content["errors"][0]["reason"] if "errors" in content else content.get("error", content)["code"]
    assert isinstance(found, str)
    return found
