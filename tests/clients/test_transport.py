"""What the Python client sends and reads, both kinds of it, without a server."""

from __future__ import annotations

import asyncio
import copy
import json
import math
import pickle
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clients.canned import ENDED, STARTED, Server, problem, standing, streamed

MANY = 110
"""More than the connections that httpx opens by default."""


def test_a_run_whose_answer_is_lost_is_sent_again_with_the_same_key_and_body(library: Any, kind: str) -> None:
    server = Server(library, httpx.ReadError("cut"), problem(503, "d1_unavailable"), standing())
    run = server.calling(kind, lambda retain: retain.runs.start("sdr", "hello"))
    assert run.run_id == "1"
    assert len({request.headers["idempotency-key"] for request in server.sent}) == 1
    assert [json.loads(request.content) for request in server.sent] == [{"input": "hello", "stream": False}] * 3
    assert server.sent[0].headers["authorization"] == "Bearer k"


def test_too_many_requests_are_sent_again_unless_the_server_wants_a_long_pause(library: Any, kind: str) -> None:
    server = Server(library, problem(429, "rate_limited", retry_after="0"), problem(429, "run_quota", retry_after="60"))
    with pytest.raises(library.RetainError) as refused:
        server.calling(kind, lambda retain: retain.memories.get("x"))
    error = refused.value
    assert (error.code, error.status, error.retry_after_s, error.request_id) == ("run_quota", 429, 60.0, "r1")
    assert (error.message, error.details, str(error)) == ("no", {"limit": 7}, "run_quota: no")
    assert len(server.sent) == 2


@pytest.mark.parametrize(
    ("answers", "code", "sent"),
    [
        pytest.param(
            lambda: [problem(503, "contended") for _ in range(3)], "contended", 3, id="the attempts are counted"
        ),
        pytest.param(lambda: [httpx.ReadTimeout("late")] * 3, "no_answer", 3, id="no answer"),
        pytest.param(
            lambda: [httpx.Response(403, text="<html>")], "unexpected_answer", 1, id="a page of something between"
        ),
        pytest.param(lambda: [httpx.Response(302)], "unexpected_answer", 1, id="a redirect to a login"),
        pytest.param(lambda: [problem(409, "instance_busy")], "instance_busy", 1, id="a conflict"),
    ],
)
def test_every_failure_is_one_error_with_a_code(
    library: Any, kind: str, answers: Callable[[], Sequence[httpx.Response | Exception]], code: str, sent: int
) -> None:
    server = Server(library, *answers())
    with pytest.raises(library.RetainError) as failed:
        server.calling(kind, lambda retain: retain.memories.recall("tea"))
    assert (failed.value.code, len(server.sent)) == (code, sent)


def test_the_message_of_a_refusal_names_each_place_that_does_not_fit(library: Any, kind: str) -> None:
    body = {
        "code": "invalid_body",
        "detail": "the body does not fit",
        "request_id": "r1",
        "problems": ["a: b", "c: d", 7],
    }
    server = Server(library, httpx.Response(400, json=body))
    with pytest.raises(library.RetainError) as refused:
        server.calling(kind, lambda retain: retain.memories.recall("x"))
    assert refused.value.message == "the body does not fit: a: b; c: d"
    assert refused.value.details["problems"] == body["problems"]


def test_an_error_reaches_another_process_whole(library: Any, kind: str) -> None:
    server = Server(library, problem(429, "run_quota", retry_after="60"))
    with pytest.raises(library.RetainError) as refused:
        server.calling(kind, lambda retain: retain.memories.get("x"))
    for arrived in (pickle.loads(pickle.dumps(refused.value)), copy.copy(refused.value)):
        assert type(arrived) is library.RetainError
        assert (vars(arrived), arrived.args) == (vars(refused.value), ("no",))


@pytest.mark.parametrize(
    ("url", "key", "message"),
    [
        pytest.param("retain.example", "k", "must begin with https://", id="no scheme"),
        pytest.param("127.0.0.1:8787", "k", "must begin with https://|not an address", id="a host and a port"),
        pytest.param("https://", "k", "name a host", id="no host"),
        pytest.param("https://retain.example:x", "k", "not an address", id="not an address"),
        pytest.param("https://retain.example/?a=b", "k", "ends with its path", id="a query"),
        pytest.param("https://retain.example/base#top", "k", "ends with its path", id="a fragment"),
        pytest.param("https://ann:SECRET@retain.example", "k", "no user and no password", id="a password"),
        pytest.param("https://retain.example", "", "key must be", id="no key"),
        pytest.param("https://retain.example", "SECRET\n", "key must be", id="a line break after the key"),
        pytest.param("https://retain.example", "Bearer SECRET", "key must be", id="a word before the key"),
        pytest.param("https://retain.example", "SECRÉT", "key must be", id="a letter beyond ASCII"),
    ],
)
def test_what_cannot_be_an_address_or_a_key_is_refused_at_once_without_the_key(
    library: Any, kind: str, url: str, key: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        getattr(library, kind)(url, key, "acme")
    assert "SECR" not in str(refused.value)


@pytest.mark.parametrize("error", [httpx.LocalProtocolError, httpx.UnsupportedProtocol])
def test_a_request_that_is_not_valid_for_http_is_sent_once_and_its_headers_are_in_no_error(
    library: Any, kind: str, error: type[httpx.TransportError]
) -> None:
    server = Server(library, *[error("Illegal header value b'SECRET'")] * 3)
    with pytest.raises(library.RetainError) as failed:
        server.calling(kind, lambda retain: retain.memories.get("x"))
    shown = "".join(traceback.format_exception(failed.value))
    assert (failed.value.code, len(server.sent), "SECRET" in shown) == ("no_answer", 1, False)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        pytest.param(lambda retain: retain.memories.recall("Bob", topk=1), "RecallBody has no field topk", id="recall"),
        pytest.param(lambda retain: retain.memories.store("Bob", subjct="Cy"), "no field subjct", id="store"),
        pytest.param(
            lambda retain: retain.memories.recall("Bob", context=[{"role": "user", "content": "a", "at": 1}]),
            "no field context.0.at",
            id="a turn",
        ),
        pytest.param(
            lambda retain: retain.runs.start("sdr", "hi", user={"id": "a", "nme": "A"}), "user.nme", id="a user"
        ),
        pytest.param(
            lambda retain: retain.runs.start("sdr", "hi", attachments=[{"id": "a"}, {"dat": "x"}]),
            "attachments.1.dat",
            id="a file",
        ),
        pytest.param(
            lambda retain: retain.schedules.create("sdr", "hi", at_ms=1, user={"id": "a", "nme": "A"}),
            "user.nme",
            id="a schedule's user",
        ),
    ],
)
def test_a_field_that_a_body_does_not_have_is_refused_by_its_name(
    library: Any, kind: str, call: Callable[[Any], Any], named: str
) -> None:
    server = Server(library)
    with pytest.raises(TypeError, match=named):
        server.calling(kind, call)
    assert server.sent == []


@pytest.mark.parametrize(
    "part", ["", ".", "..", None, "\ud800"], ids=["nothing", "a dot", "two dots", "None", "half of a pair"]
)
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda retain, part: retain.users.forget(part), id="a user"),
        pytest.param(lambda retain, part: retain.memories.delete(part), id="a memory"),
        pytest.param(lambda retain, part: retain.attachments.download(part), id="an attachment"),
        pytest.param(lambda retain, part: retain.runs.start(part, "hi"), id="an agent"),
        pytest.param(lambda retain, part: retain.runs.stream(part, "hi"), id="a stream"),
        pytest.param(lambda retain, part: retain.runs.get("sdr", "desk", part), id="a run"),
    ],
)
def test_what_cannot_be_one_part_of_an_address_is_refused_before_anything_is_sent(
    library: Any, kind: str, call: Callable[[Any, Any], Any], part: Any
) -> None:
    server = Server(library)
    with pytest.raises(library.RetainError) as refused:
        server.calling(kind, lambda retain: call(retain, part))
    assert (refused.value.code, refused.value.status, server.sent) == ("invalid_id", None, [])


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda retain: retain.memories.get("x" * 70_000), id="an id that is too long"),
        pytest.param(lambda retain: retain.runs.start("sdr", "\ud800"), id="half of a pair to say"),
        pytest.param(lambda retain: retain.runs.start("sdr", "hello", idempotency_key="schlüssel"), id="a key"),
        pytest.param(lambda retain: retain.runs.stream("sdr", "hello", idempotency_key="schlüssel"), id="a stream"),
        pytest.param(lambda retain: retain.runs.start("sdr", "hello", metadata={"rate": math.nan}), id="no number"),
    ],
)
def test_what_fits_into_no_request_is_refused_before_it_is_sent(
    library: Any, kind: str, call: Callable[[Any], Any]
) -> None:
    server = Server(library)
    with pytest.raises(library.RetainError) as refused:
        server.calling(kind, call)
    assert (refused.value.code, refused.value.status, server.sent) == ("invalid_request", None, [])


def test_a_run_without_an_input_is_refused_by_its_name(library: Any, kind: str) -> None:
    server = Server(library)
    with pytest.raises(TypeError, match="RunBody needs 'input'"):
        server.calling(kind, lambda retain: retain.runs.start("sdr", None))


@pytest.mark.parametrize(("seconds", "sent"), [(-5, 2), (60, 1)])
def test_the_pause_that_the_server_asks_for_may_be_a_date(library: Any, kind: str, seconds: int, sent: int) -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
    server = Server(library, problem(429, "rate_limited", retry_after=until), problem(404, "no_such_record"))
    with pytest.raises(library.RetainError) as refused:
        server.calling(kind, lambda retain: retain.memories.get("x"))
    assert len(server.sent) == sent
    if sent == 1:
        assert 50 < refused.value.retry_after_s <= 60


def test_a_run_brings_the_schema_of_its_answer_and_a_list_the_time_of_what_was_known(library: Any, kind: str) -> None:
    server = Server(library, standing(), httpx.Response(200, json={"memories": [], "cursor": None}))
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    server.calling(kind, lambda retain: retain.runs.start("sdr", "hello", output_schema=schema))
    assert json.loads(server.sent[0].content)["output_schema"] == schema

    def listed(retain: Any) -> Any:
        pages = retain.memories.list(as_of_ms=7)
        return list(pages) if kind == "Retain" else first(pages)

    async def first(pages: Any) -> list[Any]:
        return [memory async for memory in pages]

    assert server.calling(kind, listed) == []
    assert server.sent[1].url.query == b"as_of_ms=7"


def test_a_stream_that_ends_early_is_continued_after_its_last_event(library: Any, kind: str) -> None:
    server = Server(
        library,
        streamed(STARTED, "event: tool.ca"),
        httpx.ReadError("cut"),
        streamed("id: 3\nevent: tool.called\ndata: {}\n\n"),
        streamed(": still here\n\n"),
        streamed(ENDED),
    )
    names = server.calling(kind, lambda retain: retain.runs.stream("sdr", "hello"))
    assert names == ["run.started", "tool.called", "run.completed"]
    resumed = [(request.method, request.headers.get("last-event-id")) for request in server.sent]
    assert resumed == [("POST", None), ("GET", "0"), ("GET", "0"), ("GET", "3"), ("GET", "3")]
    assert server.sent[1].url.path == "/v1/agents/acme/sdr/instances/desk/runs/1/events"


def test_a_stream_of_a_run_that_is_under_way_already_follows_it(library: Any, kind: str) -> None:
    server = Server(library, standing(), streamed(STARTED, ENDED))
    names = server.calling(kind, lambda retain: retain.runs.stream("sdr", "hello", idempotency_key="first"))
    assert names == ["run.started", "run.completed"]
    assert [request.method for request in server.sent] == ["POST", "GET"]


def test_a_stream_that_has_nothing_more_ends_and_one_that_only_breaks_is_given_up(library: Any, kind: str) -> None:
    read = Server(library, httpx.Response(204))
    assert read.calling(kind, lambda retain: retain.runs.follow("sdr", "desk", "1", last_event_id="9")) == []
    assert read.sent[0].headers["last-event-id"] == "9"
    for answer in ("", "retry: 1000\n\n", "data: {}"):
        broken = Server(library, *[streamed(answer) for _ in range(9)])
        with pytest.raises(library.RetainError) as failed:
            broken.calling(kind, lambda retain: retain.runs.follow("sdr", "desk", "1"))
        assert (failed.value.code, len(broken.sent)) == ("no_answer", 3)


def test_who_leaves_a_stream_early_leaves_no_connection_open(library: Any, kind: str) -> None:
    server = Server(library, streamed(STARTED, ENDED))

    async def first(retain: Any) -> str:
        async for event in retain.runs.stream("sdr", "hello"):
            return str(event.name)
        return ""

    def first_of(retain: Any) -> Any:
        return next(iter(retain.runs.stream("sdr", "hello"))).name if kind == "Retain" else first(retain)

    assert server.calling(kind, first_of) == "run.started"


def test_a_stream_waits_for_no_other_one_however_many_are_open(library: Any) -> None:
    all_begun = asyncio.Event()
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        if connections == MANY:
            all_begun.set()
        await all_begun.wait()
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{STARTED}{ENDED}".encode())
        writer.close()

    async def names(retain: Any) -> list[str]:
        return [event.name async for event in retain.runs.stream("sdr", "hello")]

    async def streams() -> list[list[str]]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        once = library.Retries(attempts=1)
        async with server, library.AsyncRetain(url, "k", "acme", timeout_s=5, retries=once) as retain:
            return await asyncio.gather(*(names(retain) for _ in range(MANY)))

    assert asyncio.run(streams()) == [["run.started", "run.completed"]] * MANY


def test_a_list_reads_its_pages_as_they_are_needed(library: Any) -> None:
    def page(*ids: str, cursor: str | None) -> httpx.Response:
        return httpx.Response(200, json={"agents": [agent(name) for name in ids], "cursor": cursor})

    def agent(name: str) -> dict[str, Any]:
        return {
            "agent_type": name,
            "description": "",
            "house": None,
            "delegates": [],
            "source": "repository",
            "version": None,
        }

    server = Server(library, page("a", "b", cursor="next"), page("c", cursor=None))

    def listed(retain: Any) -> list[tuple[str, int]]:
        return [(entry.agent_type, len(server.sent)) for entry in retain.agents.list(limit=2)]

    assert server.calling("Retain", listed) == [("a", 1), ("b", 1), ("c", 2)]
    assert [request.url.query for request in server.sent] == [b"limit=2", b"limit=2&cursor=next"]


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b.c"]), st.text(), st.none() | st.integers(0, 99)), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 30),
    st.booleans(),
)
def test_events_are_read_as_they_were_written(
    library: Any, events: list[tuple[str, str, int | None]], end: str, size: int, ascii_only: bool
) -> None:
    lines = []
    for name, text, number in events:
        lines += [": a comment", f"event: {name}", *([] if number is None else [f"id: {number}"])]
        lines += [f"data: {line}" for line in json.dumps({"text": text}, indent=1, ensure_ascii=ascii_only).split("\n")]
        lines.append("")
    reader = library.server_events.EventReader()
    written = "".join(f"{line}{end}" for line in [*lines, ":"]).encode()
    read = [event for at in range(0, len(written), size) for event in reader.feed(written[at : at + size])]
    assert [(event.name, event.data["text"], event.id) for event in read] == [
        (name, text, None if number is None else str(number)) for name, text, number in events
    ]
