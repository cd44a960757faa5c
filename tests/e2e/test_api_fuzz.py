"""The API as its OpenAPI document describes it: Schemathesis sends what the document allows, and what it forbids.

The Worker answers each request with a documented status, media type and code, and never with a fault of its own.
`API_EXAMPLES` of the environment is how many requests of each kind an operation gets, other ones in each run; without it
few, always the same.
"""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from retain.routing.route import Route
from tools.openapi import PROBLEM, codes_of, document, operations

pytestmark = pytest.mark.workerd

EXAMPLES = int(os.environ.get("API_EXAMPLES", "0"))
EVENTS = "text/event-stream"


def _without_events(part: Any) -> Any:
    """Return a part of the document without the schemas of event streams: Schemathesis takes them for that of each event."""
    if isinstance(part, list):
        return [_without_events(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {name: {} if name == EVENTS else _without_events(one) for name, one in part.items()}


DOCUMENT = _without_events(document())
OPERATIONS = operations()
ASKED = [
    pytest.param(name, mode, id=f"{name}-{mode.value}")
    for name, route in OPERATIONS.items()
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or route.parameters or route.body or route.query
]
"""Operations, and how they are asked: an operation without any input cannot be asked what it forbids."""
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@schemathesis.serializer("application/x-ndjson")
def _lines(_: schemathesis.SerializationContext, value: Any) -> bytes:
    return (
        "\n".join(json.dumps(line) for line in value if line is not None).encode() if isinstance(value, list) else b"{"
    )


@pytest.fixture(scope="module")
def operation_of(api: httpx.Client) -> Any:
    """Return an operation of the document, at the server's address."""
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.config.update(base_url=str(api.base_url))
    return schema.find_operation_by_id


@pytest.mark.parametrize(("name", "mode"), ASKED)
def test_every_answer_is_a_documented_one(
    api: httpx.Client, operation_of: Any, name: str, mode: GenerationMode
) -> None:
    route = OPERATIONS[name]
    tenant = f"fuzz-{list(OPERATIONS).index(name)}-{mode.value}"
    known = {"tenant": tenant, "agent_type": "order_triage", "instance_id": "desk"}
    assert api.put(f"/admin/tenants/{tenant}").status_code in (200, 201)
    fixed = {parameter: known[parameter] for parameter in route.parameters if parameter in known}

    @settings(
        max_examples=EXAMPLES or 3,
        deadline=None,
        database=None,
        derandomize=not EXAMPLES,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation_of(name).as_strategy(mode, path_parameters=fixed))
    def ask(case: Case[Any]) -> None:
        _require_documented(case, route)

    try:
        ask()
    finally:  # a quota of every tenant would refuse what the next routes are asked
        assert api.put("/admin/quotas", json=dict.fromkeys(("memories", "runs_a_day", "tokens_a_day"))).is_success


def _require_documented(case: Case[Any], route: Route[Any]) -> None:
    answer = case.call(timeout=60)
    case.validate_response(answer, checks=CHECKS)
    assert answer.headers["x-request-id"]
    if answer.headers.get("content-type", [""])[0] == PROBLEM:
        assert answer.json()["code"] in codes_of(route), answer.json()
