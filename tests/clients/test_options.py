"""Every argument of every method of the Python client reaches the request, by its name."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, unquote

import httpx

from tests.clients.canned import Server, problem

OF_THE_CLIENT = {"timeout_s", "poll_s"}
"""How long a call waits: the server does not need it."""
SENT_AS = {"media_type": "content_type"}
"""Under which name an argument is sent, if not its own."""
WHOLE_BODY = {"definition", "fields"}
"""Arguments whose members are the body's."""
GIVEN: dict[str, Any] = {
    "kind": "fact",
    "purpose": "judge",
    "order": "desc",
    "state": "paused",
    "status": "failed",
    "definition": {"description": "of the definition"},
    "fields": {"content": "of the fields"},
    "messages": [{"content": "hello", "speaker": "ann"}],
    "events": ["run.failed"],
    "attachments": ["0A"],
}
"""What is given where the annotation says too little."""


def test_every_argument_reaches_the_request_by_its_name(library: Any) -> None:
    tried = 0
    for name, call in _methods(library):
        arguments = _arguments(call)
        server = Server(library, problem(404, "no_such_thing"))
        try:
            server.calling("Retain", partial(_called, name=name, given=arguments))
        except library.RetainError as refused:
            assert refused.code == "no_such_thing", (name, refused)
        request, *more = server.sent
        assert not more, name
        in_path = _in_path(request, arguments)
        assert in_path == [argument for argument in arguments if argument in in_path], (name, request.url)
        sent = _sent(request)
        lost = {
            argument: value
            for argument, value in arguments.items()
            if argument not in in_path and not _is_sent(name, argument, value, sent)
        }
        assert not lost, (name, lost, request.url, sent)
        tried += len(arguments)
    assert tried > 150


def _methods(library: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    with library.Retain("https://retain.example", "k", "acme") as retain:
        for group, part in vars(retain).items():
            if type(part).__module__ == f"retain_client.synchronous.{group}":
                yield from ((f"{group}.{name}", getattr(part, name)) for name in vars(type(part)) if name[0] != "_")


def _arguments(call: Callable[..., Any]) -> dict[str, Any]:
    """Return a value for each argument, unlike those of the others."""
    values: dict[str, Any] = {}
    for number, (name, parameter) in enumerate(inspect.signature(call).parameters.items(), 1):
        kind = str(parameter.annotation)
        if name in OF_THE_CLIENT or (name == "fields" and "memory_id" not in values):
            continue
        if name in GIVEN:
            values[name] = GIVEN[name]
        elif kind.startswith("Mapping"):
            values[name] = {"of": name}
        elif "str" in kind:
            values[name] = f"of {name}"
        elif "bytes" in kind:
            values[name] = b"PNG"
        else:
            values[name] = {"bool": True, "date": date(2026, 1, number)}.get(kind.partition(" ")[0], number)
    return values


def _called(retain: Any, name: str, given: dict[str, Any]) -> Any:
    group, _, method = name.partition(".")
    found = getattr(getattr(retain, group), method)(
        **{name: value for name, value in given.items() if name != "fields"}, **given.get("fields", {})
    )
    return list(found) if hasattr(found, "__iter__") and not hasattr(found, "last_event_id") else found


def _in_path(request: httpx.Request, arguments: dict[str, Any]) -> list[str]:
    """Return the arguments that are parts of the path, in its order."""
    parts = [unquote(part) for part in request.url.raw_path.decode().partition("?")[0].split("/")]
    return [name for part in parts for name, value in arguments.items() if str(value) == part]


def _sent(request: httpx.Request) -> dict[str, Any]:
    sent: dict[str, Any] = {name.replace("-", "_"): value for name, value in request.headers.items()}
    sent |= parse_qsl(request.url.query.decode())
    return sent | (
        json.loads(request.content) if sent.get("content_type") == "application/json" else {"content": request.content}
    )


def _is_sent(name: str, argument: str, value: Any, sent: dict[str, Any]) -> bool:
    if argument in WHOLE_BODY:
        return dict(value).items() <= sent.items()
    found = sent.get("user_id" if (name, argument) == ("runs.cancel_all", "user") else SENT_AS.get(argument, argument))
    spellings = [value, str(value), f'"{value}"', json.dumps(value, default=str), {"id": value}]
    return found in spellings or (argument == "attachments" and found == [{"id": value[0]}])
