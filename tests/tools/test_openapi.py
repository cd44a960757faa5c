"""The OpenAPI document: valid, and complete for every route."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import schemathesis
from openapi_spec_validator import validate

from tools.http_docs import RESOURCES
from tools.openapi import PROBLEM, STATUSES, codes_of, document, operations, public_path
from tools.openapi.document import with_plain_problems
from tools.paths import ROOT

DOCUMENT = document()
ROUTES = [route for resource in RESOURCES for route in resource.routes]


def test_it_is_a_valid_document() -> None:
    schemathesis.openapi.from_dict(DOCUMENT).validate()
    validate(DOCUMENT)


def test_every_route_is_an_operation_with_its_own_name() -> None:
    listed = {
        (method.upper(), path): operation["operationId"]
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    }
    assert listed.keys() == {(route.method, public_path(route)) for route in ROUTES}
    assert sorted(listed.values()) == sorted(operations()) == sorted(set(operations()))


def test_every_code_of_a_route_is_in_the_response_of_its_status() -> None:
    for route in ROUTES:
        if route.method == "HEAD":
            continue
        responses = DOCUMENT["paths"][public_path(route)][route.method.lower()]["responses"]
        declared = [
            (code, int(status))
            for status, response in responses.items()
            for code in _codes(response.get("content", {}).get(PROBLEM))
        ]
        assert sorted(declared) == [(code, status) for code in codes_of(route) for status in STATUSES[code]]


def _codes(problem: Any) -> list[str]:
    return [] if problem is None else list(problem["schema"]["allOf"][1]["properties"]["code"]["enum"])


def test_names_of_operations_say_what_is_done_to_what() -> None:
    assert [name for name in operations() if re.fullmatch(r"[a-z]+(_[a-z]+)+", name) is None] == []


def test_an_operation_says_which_role_and_which_scope_it_needs() -> None:
    recall = DOCUMENT["paths"]["/v1/tenants/{tenant}/memories/recall"]["post"]
    assert recall["security"] == [{"Access": ["viewer"]}, {"ApplicationKey": ["memory:read"]}]
    run = DOCUMENT["paths"]["/v1/agents/{tenant}/{agent_type}/run"]["post"]
    assert run["security"] == [{"Access": ["operator"]}, {"ApplicationKey": ["runs"]}, {"UserToken": ["runs"]}]
    assert DOCUMENT["paths"]["/admin/quotas"]["put"]["security"] == [{"Access": ["owner"]}]
    assert DOCUMENT["paths"]["/mcp"]["post"]["security"] == [{"GatewayKey": []}, {"GatewayKeyHeader": []}]
    assert DOCUMENT["paths"]["/healthz"]["get"]["security"] == []


UNTYPED = {"call_tool", "send_agents_message", "send_gateway_message", "send_memory_message"}
"""What an upstream answers, and messages of a protocol with a specification of its own."""


def test_every_json_answer_has_a_type() -> None:
    untyped = {
        route.name
        for route in ROUTES
        for answer in route.answers
        if answer.model is None and answer.status != 204 and "application/json" in answer.media_types
    }
    assert untyped == UNTYPED


def test_an_answer_that_is_streamed_is_one_of_events() -> None:
    run = DOCUMENT["paths"]["/v1/agents/{tenant}/{agent_type}/run"]["post"]["responses"]["200"]["content"]
    assert run["text/event-stream"] == {"schema": {"type": "string"}}
    assert run["application/json"] == {"schema": {"$ref": "#/components/schemas/RunResult"}}


def test_what_may_be_absent_from_an_answer_is_not_required() -> None:
    result = DOCUMENT["components"]["schemas"]["RunResult"]
    assert set(result["properties"]) - set(result["required"]) == {"by", "done", "error", "finish_reason", "procedure"}
    usage = DOCUMENT["components"]["schemas"]["RunUsage"]
    assert set(usage["properties"]) == set(usage["required"]), "a default of the code is not absent from what it writes"


def test_every_reference_leads_to_a_schema() -> None:
    text = json.dumps(DOCUMENT)
    named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= DOCUMENT["components"]["schemas"].keys()
    assert {"Problem", "RunBody", "StoreBody"} <= named


def test_codes_have_the_status_of_their_class() -> None:
    assert {
        code: STATUSES[code]
        for code in ("invalid_body", "unknown_tenant", "body_too_large", "d1_unavailable", "invalid_line")
    } == {
        "invalid_body": [400],
        "unknown_tenant": [404],
        "body_too_large": [413],
        "d1_unavailable": [503],
        "invalid_line": [400, 413],
    }


def test_a_parameter_of_json_says_so_and_none_is_null() -> None:
    listed = DOCUMENT["paths"]["/v1/tenants/{tenant}/memories"]["get"]["parameters"]
    by_name = {parameter["name"]: parameter for parameter in listed}
    assert list(by_name["filter"]["content"]) == ["application/json"]
    assert by_name["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 200}
    assert by_name["cursor"]["schema"] == {"type": "string"}


def test_where_any_text_is_allowed_no_texts_are_listed() -> None:
    assert DOCUMENT["components"]["schemas"]["Rejection"]["properties"]["code"] == {"type": "string"}


def test_generators_that_write_classes_get_one_schema_for_every_problem() -> None:
    plain = with_plain_problems(DOCUMENT)
    validate(plain)
    assert "allOf" not in json.dumps(plain["paths"])
    assert plain["components"] == DOCUMENT["components"]
    assert "allOf" in json.dumps(DOCUMENT["paths"])


def test_the_command_prints_the_document() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.openapi"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout) == DOCUMENT
