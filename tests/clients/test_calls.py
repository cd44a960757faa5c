"""What calls of the Python client send, where it is not the argument alone, without a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from tests.clients.canned import ENDED, STARTED, Server, standing, streamed

CALLS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "approve": (lambda retain: retain.runs.approve("sdr", "desk", "1", "1.0"), {"call": "1.0", "decision": "approve"}),
    "reject": (
        lambda retain: retain.runs.reject("sdr", "desk", "1", "1.0", reason="no"),
        {"call": "1.0", "decision": "reject", "reason": "no"},
    ),
    "a user by their id": (
        lambda retain: retain.runs.start("sdr", "hello", user="ann"),
        {"input": "hello", "stream": False, "user": {"id": "ann"}},
    ),
    "a user with a name": (
        lambda retain: retain.runs.start("sdr", "hello", user={"id": "ann", "name": "Ann"}, background=True),
        {"input": "hello", "stream": False, "background": True, "user": {"id": "ann", "name": "Ann"}},
    ),
}


@pytest.mark.parametrize(("call", "body"), CALLS.values(), ids=CALLS.keys())
def test_a_call_sends_its_body(library: Any, kind: str, call: Callable[[Any], Any], body: dict[str, Any]) -> None:
    server = Server(library, standing())
    server.calling(kind, call)
    assert json.loads(server.sent[0].content) == body


def test_a_stream_asks_for_one(library: Any, kind: str) -> None:
    server = Server(library, streamed(STARTED, ENDED))
    server.calling(kind, lambda retain: retain.runs.stream("sdr", "hello"))
    assert json.loads(server.sent[0].content) == {"input": "hello", "stream": True}


def test_a_filter_is_json_and_what_a_change_is_based_on_is_quoted(library: Any, kind: str) -> None:
    async def listed(pages: Any) -> list[Any]:
        return [memory async for memory in pages]

    def first(retain: Any) -> Any:
        pages = retain.memories.list(filter={"kind": {"$in": ["fact"]}})
        return list(pages) if kind == "Retain" else listed(pages)

    server = Server(library, httpx.Response(200, json={"memories": [], "cursor": None}))
    assert server.calling(kind, first) == []
    assert json.loads(server.sent[0].url.params["filter"]) == {"kind": {"$in": ["fact"]}}
    server = Server(library, httpx.Response(412, json={"code": "memory_changed", "detail": "no", "request_id": "r1"}))
    with pytest.raises(library.RetainError, match="memory_changed"):
        server.calling(kind, lambda retain: retain.memories.update("0A", if_match="7", content="x"))
    assert server.sent[0].headers["if-match"] == '"7"'


def test_the_type_of_an_upload_is_that_of_its_name_unless_it_is_given(library: Any, kind: str) -> None:
    for given, sent in (
        ({"name": "a.png"}, "image/png"),
        ({"name": "a.png", "media_type": "image/webp"}, "image/webp"),
        ({}, "application/octet-stream"),
    ):
        server = Server(library, httpx.Response(413, json={"code": "too_large", "detail": "no", "request_id": "r1"}))
        with pytest.raises(library.RetainError, match="too_large"):
            server.calling(kind, partial(_uploaded, **given))
        assert server.sent[0].headers["content-type"] == sent


def test_an_id_is_one_part_of_the_address_whatever_is_in_it(library: Any, kind: str) -> None:
    server = Server(library, httpx.Response(204))
    server.calling(kind, lambda retain: retain.memories.delete("a/../b?c#d%2F"))
    assert server.sent[0].url.raw_path == b"/v1/tenants/acme/memories/a%2F..%2Fb%3Fc%23d%252F"


def test_every_page_of_what_was_cancelled_is_returned(library: Any, kind: str) -> None:
    run = {"status": "cancelled", "instance_id": "a", "agent_type": "sdr", "error": None}
    pages = [{"runs": [{**run, "run_id": "1"}], "cursor": "c"}, {"runs": [{**run, "run_id": "2"}], "cursor": None}]
    server = Server(library, *[httpx.Response(200, json=page) for page in pages])
    cancelled = server.calling(kind, lambda retain: retain.runs.cancel_all(user="ann"))
    assert [run.run_id for run in cancelled] == ["1", "2"]
    assert [json.loads(request.content) for request in server.sent] == [
        {"user_id": "ann"},
        {"user_id": "ann", "cursor": "c"},
    ]


def _uploaded(retain: Any, **given: str) -> Any:
    return retain.attachments.upload(b"PNG", **given)
