"""A deployment that answers what a test has prepared, and samples of its answers: for states that are hard to reach."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, Request, Route

from tests.e2e.waiting import eventually
from tools.console import console_files
from tools.openapi import document
from tools.openapi.document import operations
from tools.openapi.operation import public_path

URL = "https://console.example"
TENANT = "acme"
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_files = cache(console_files)
_document = cache(document)
_routes = cache(operations)

EVERY = tuple(operations())
"""The names of all operations."""

Answer = dict[str, Any]


def sample(operation: str, **others: Any) -> Answer:
    """Return an answer of an operation as the document has it, null where that is possible, with other members."""
    route = _routes()[operation]
    answers = _document()["paths"][public_path(route)][route.method.lower()]["responses"]
    success = next(answer for status, answer in answers.items() if status.startswith("2") and "content" in answer)
    made: Answer = _value(success["content"]["application/json"]["schema"], operation)
    assert others.keys() <= made.keys(), others.keys() - made.keys()
    return {**made, **others}


def problem(code: str) -> Answer:
    """Return a refusal."""
    return {"code": code, "detail": f"It is refused: {code}.", "request_id": "r1"}


def memory(**others: Any) -> Answer:
    """Return a memory about Ann."""
    return sample("get_memory", id="1", last_event_id="e1", subject="ann", **others)


def waiting_run() -> Answer:
    """Return a run that waits for an approval."""
    waits = {"kind": "approval", "call": "1.0", "tool": "refund", "arguments": {}, "expires_at_ms": 1}
    return sample("inspect_run", run_id="1", status="waiting", completed_at_ms=None, waiting_for=waits)


class Deployment:
    """Answers for a page. answers: by operation, one after the other, the last for good: an answer, or a status with one.

    An operation without one answers its sample. asked: the operations, with their requests. held: operations whose requests
    are not answered until the test does so.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.answers: dict[str, list[Answer | tuple[int, Answer]]] = {}
        self.asked: list[tuple[str, Request]] = []
        self.held: dict[str, list[Callable[[], None]]] = {}
        page.route(f"{URL}/**", self._handle)

    def open(self, address: str) -> None:
        """Open a place of the tenant."""
        self.page.goto("about:blank")
        self.page.goto(f"{URL}/console#/{TENANT}/{address}")

    def button(self, name: str) -> Locator:
        """Return the buttons of this name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def requests(self, operation: str) -> list[Request]:
        """Return what an operation was asked."""
        return [request for name, request in self.asked if name == operation]

    def sent(self, operation: str) -> list[Request]:
        """Return what an operation was asked, as soon as it was asked something: a press may be ahead of its request."""
        return eventually(lambda: self.page.evaluate("1") and self.requests(operation), bool)

    def queries(self, operation: str) -> list[dict[str, str]]:
        """Return the queries of what an operation was asked."""
        return [
            {name: values[0] for name, values in parse_qs(urlsplit(request.url).query).items()}
            for request in self.requests(operation)
        ]

    def release(self, operation: str) -> None:
        """Answer what is held of an operation, and from now on at once."""
        for answer in self.held.pop(operation):
            answer()

    def _handle(self, route: Route) -> None:
        path = urlsplit(route.request.url).path
        file = "console.html" if path == "/console" else path[1:]
        if file in _files():
            kind = _TYPES[file.rpartition(".")[2]]
            route.fulfill(body=_files()[file], headers={"content-type": kind})
            return
        operation = next(
            name for name, one in _routes().items() if one.method == route.request.method and _matches(one.path, path)
        )
        self.asked.append((operation, route.request))
        if operation in self.held:
            self.held[operation].append(lambda: self._answer(operation, route))
        else:
            self._answer(operation, route)

    def _answer(self, operation: str, route: Route) -> None:
        prepared = self.answers.get(operation, [])
        found = (prepared.pop(0) if len(prepared) > 1 else prepared[0]) if prepared else _usual(operation)
        status, body = found if isinstance(found, tuple) else (200, found)
        kind = "application/json" if status < 300 else "application/problem+json"
        body_text = "" if status == 204 else json.dumps(body)
        # A longer pause than the client makes: it asks once.
        route.fulfill(status=status, headers={"content-type": kind, "retry-after": "60"}, body=body_text)


def _usual(operation: str) -> Answer | tuple[int, Answer]:
    route = _routes()[operation]
    if operation == "get_own_access":
        return sample(operation, operations=[*EVERY])
    answers = _document()["paths"][public_path(route)][route.method.lower()]["responses"]
    return (204, {}) if "204" in answers else sample(operation)


def _matches(pattern: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(pattern)), path) is not None


def _value(schema: Any, name: str) -> Any:
    if "$ref" in schema:
        return _value(_document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]], name)
    one_of = schema.get("anyOf") or schema.get("oneOf")
    if one_of:
        return None if {"type": "null"} in one_of else _value(one_of[0], name)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    kind = schema.get("type")
    if isinstance(kind, list):
        return None if "null" in kind else _value({**schema, "type": kind[0]}, name)
    match kind:
        case "object":
            return {key: _value(member, key) for key, member in schema.get("properties", {}).items()}
        case "array":
            return [_value(schema["items"], name)]
        case "string":
            return f"the {name}"
        case "integer" | "number":
            return 1_700_000_000_000 if name.endswith("_ms") else 1
        case "boolean":
            return False
        case _:
            return {}
