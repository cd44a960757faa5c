"""The OpenAPI document: valid, and complete for every route."""

from __future__ import annotations

import json
import subprocess
import sys

import schemathesis

from tools.http_docs import RESOURCES
from tools.openapi import STATUSES, codes_of, document, operations
from tools.paths import ROOT

DOCUMENT = document()
ROUTES = [route for resource in RESOURCES for route in resource.routes]


def test_it_is_a_valid_document() -> None:
    schemathesis.openapi.from_dict(DOCUMENT).validate()


def test_every_route_is_an_operation_with_its_own_name() -> None:
    listed = {
        (method.upper(), path): operation["operationId"]
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    }
    assert listed.keys() == {(route.method, route.path) for route in ROUTES}
    assert sorted(listed.values()) == sorted(operations()) == sorted(set(operations()))


def test_every_code_of_a_route_is_in_the_response_of_its_status() -> None:
    for route in ROUTES:
        responses = DOCUMENT["paths"][route.path][route.method.lower()]["responses"]
        for code in codes_of(route):
            assert f"`{code}`" in responses[str(STATUSES.get(code, 500))]["description"]


def test_every_reference_leads_to_a_schema() -> None:
    text = json.dumps(DOCUMENT)
    named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= DOCUMENT["components"]["schemas"].keys()
    assert {"Problem", "RunBody", "StoreBody"} <= named


def test_codes_have_the_status_of_their_class() -> None:
    assert {
        code: STATUSES[code] for code in ("invalid_body", "unknown_tenant", "body_too_large", "d1_unavailable")
    } == {
        "invalid_body": 400,
        "unknown_tenant": 404,
        "body_too_large": 413,
        "d1_unavailable": 503,
    }


def test_a_parameter_of_json_says_so_and_none_is_null() -> None:
    listed = DOCUMENT["paths"]["/admin/tenants/{tenant}/memories"]["get"]["parameters"]
    by_name = {parameter["name"]: parameter for parameter in listed}
    assert list(by_name["filter"]["content"]) == ["application/json"]
    assert by_name["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 200}
    assert by_name["cursor"]["schema"] == {"type": "string"}


def test_the_command_prints_the_document() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.openapi"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout) == DOCUMENT
