"""The contract that tests are held to notices each way in which server and document can differ."""

from __future__ import annotations

import json

import pytest

from tests.support.contract import FILE, STREAM, Breach, check_answer, check_body, check_headers, route_of
from tools.openapi import PROBLEM

HEALTH = route_of("GET", "/healthz")
RECALL = route_of("POST", "/v1/tenants/acme/memories/recall")


def _problem(code: str) -> str:
    fields = {"type": "about:blank", "title": "t", "status": 400, "detail": "d", "request_id": "r"}
    return json.dumps({**fields, "code": code, "problems": ["further members are allowed"]})


def test_what_is_documented_passes() -> None:
    assert HEALTH is not None
    assert RECALL is not None
    check_answer(HEALTH, 200, "application/json", '{"status": "ok", "version": "1"}')
    check_answer(RECALL, 200, "application/json; charset=utf-8", '{"memories": [], "degraded": []}')
    check_answer(RECALL, 400, PROBLEM, _problem("empty_query"))
    check_body(RECALL, '{"query": "tea"}')


@pytest.mark.parametrize(
    ("status", "media_type", "body"),
    [
        pytest.param(200, "application/json", '{"memories": []}', id="a member is missing"),
        pytest.param(200, "application/json", '{"memories": [], "degraded": [], "more": 1}', id="a member more"),
        pytest.param(200, "application/json", '{"memories": {}, "degraded": []}', id="another type"),
        pytest.param(200, "text/plain", "text", id="another media type"),
        pytest.param(201, "application/json", "{}", id="another status"),
        pytest.param(400, PROBLEM, _problem("queue_full"), id="a code of another route"),
        pytest.param(404, PROBLEM, _problem("empty_query"), id="a code of another status"),
    ],
)
def test_each_difference_is_a_breach(status: int, media_type: str, body: str) -> None:
    assert RECALL is not None
    with pytest.raises(Breach):
        check_answer(RECALL, status, media_type, body)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        pytest.param({"content-type": "text/event-stream; charset=utf-8"}, STREAM, id="a stream"),
        pytest.param({"content-type": "image/png", "content-disposition": "attachment"}, FILE, id="a file"),
    ],
)
def test_a_stream_or_a_file_without_what_browsers_and_proxies_need_is_a_breach(
    kind: dict[str, str], wanted: dict[str, str]
) -> None:
    assert RECALL is not None
    check_headers(RECALL, kind | wanted)
    for name in wanted:
        with pytest.raises(Breach):
            check_headers(RECALL, kind | {**wanted, name: "another"})


def test_a_body_that_is_accepted_and_not_documented_is_a_breach() -> None:
    assert RECALL is not None
    with pytest.raises(Breach):
        check_body(RECALL, '{"question": "tea"}')


def test_a_route_has_two_beginnings() -> None:
    assert route_of("POST", "/admin/tenants/acme/memories/recall") is RECALL
    assert route_of("GET", "/nothing") is None
