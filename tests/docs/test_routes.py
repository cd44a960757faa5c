"""docs/http.md lists the routes that exist, with the fields that they take and codes that exist."""

from __future__ import annotations

import importlib
import pkgutil

from pydantic import BaseModel

from retain import agents
from retain.admin import resources
from retain.admin.routes import ROUTES as ADMIN
from retain.agents.routes import ROUTES as AGENTS
from retain.gateway.routes import MCP_PATH, PREFIX
from retain.memory.records.record import EDITABLE
from tests.docs.error_codes import error_codes
from tests.docs.markdown import page, spans

_HTTP = page("docs/http.md")
_ELSEWHERE = {"GET /healthz", f"POST {PREFIX}{{tool_name}}", f"POST {MCP_PATH}"}
"""Routes without a row in a table of routes."""


def _routes() -> list[list[str]]:
    return [row for row in _HTTP.rows() if len(row) == 5]


def _bodies() -> list[type[BaseModel]]:
    """Return the models of request bodies: those that the routes' modules define."""
    names = [
        f"{area.__name__}.{found.name}" for area in (resources, agents) for found in pkgutil.iter_modules(area.__path__)
    ]
    modules = [importlib.import_module(name) for name in names if name != "retain.agents.definitions"]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.__module__ == module.__name__
    ]


def test_every_route_is_documented_and_every_documented_route_exists() -> None:
    tables = {f"{route.method} {route.pattern}" for route in AGENTS}
    tables |= {f"{route.method} {route.pattern}" for route in ADMIN}
    documented = [spans(row[0])[0] for row in _routes()]
    assert sorted(documented) == sorted(tables | _ELSEWHERE)


def test_every_route_says_who_may_use_it() -> None:
    for row in _routes():
        path = spans(row[0])[0].split()[1]
        key = path.startswith("/api/") or path == MCP_PATH
        wanted = "Access" if path.startswith(("/admin/", "/v1/")) else "API key" if key else "anyone"
        assert row[1] == wanted, path


def test_every_field_of_a_body_is_documented() -> None:
    named = set(spans(_HTTP.prose))
    fields = {f"{body.__name__}.{field}" for body in _bodies() for field in body.model_fields}
    assert {"RunBody.input", "RecallBody.explain"} <= fields
    assert {field for field in fields if field.split(".")[1] not in named} == set()
    assert set(EDITABLE) <= named


def test_every_code_of_a_route_exists() -> None:
    codes = {code for row in _routes() for code in spans(row[4])}
    assert codes
    assert codes <= set(error_codes())
