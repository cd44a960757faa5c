"""The document and its page, as the real workerd serves them."""

from __future__ import annotations

import re

import httpx
import pytest

from tools.openapi import document

pytestmark = pytest.mark.workerd


def test_the_document_is_served_to_anyone_and_not_sent_twice(api: httpx.Client) -> None:
    first = api.get("/openapi.json")
    assert first.status_code == 200
    assert first.headers["content-type"].startswith("application/json")
    assert first.json() == document()
    again = api.get("/openapi.json", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_page_needs_nothing_from_elsewhere(api: httpx.Client) -> None:
    page = api.get("/openapi")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert loaded == ["/openapi/swagger-ui.css", "/openapi/swagger-ui-bundle.js", "/openapi/page.js"]
    for path in loaded:
        answer = api.get(path)
        assert answer.status_code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_console_runs_its_own_script_alone(api: httpx.Client) -> None:
    page = api.get("/console")
    assert page.status_code == 200
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert (policy["default-src"], policy["script-src"], policy["connect-src"]) == ("'none'", "'self'", "'self'")
    assert policy["frame-ancestors"] == "'none'"
    loaded = re.findall(r'(?:src|href)="(/[^"]+)"', page.text)
    assert [api.get(path).status_code for path in loaded] == [200, 200]
    assert "<script>" not in page.text


def test_the_address_of_the_server_leads_to_the_console(api: httpx.Client) -> None:
    answer = api.get("/")
    assert (answer.status_code, answer.headers["location"]) == (302, "/console")


def test_what_is_public_hides_no_route_of_the_worker(api: httpx.Client) -> None:
    assert api.get("/healthz").headers["x-request-id"]
    assert api.get("/openapi/other.js").json()["code"] == "no_such_route"
