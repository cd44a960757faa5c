"""Answers that break, and answers that are not Retain's: what the Python client makes of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.clients.canned import COMPLETED, ENDED, SPENT, STARTED, Server, problem, standing, streamed

PAGE = "<html><title>Sign in</title></html>"


class Cut(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of an answer whose connection is cut in it."""

    def __init__(self, begun: bytes, error: type[Exception] = httpx.RemoteProtocolError) -> None:
        self._begun = begun
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        yield self._begun
        raise self._error("cut")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._begun
        raise self._error("cut")


def cut(status: int = 200, error: type[Exception] = httpx.RemoteProtocolError) -> httpx.Response:
    return httpx.Response(status, stream=Cut(b'{"run_id": ', error), headers={"content-type": "application/json"})


def page(status: int = 200) -> httpx.Response:
    return httpx.Response(status, html=PAGE)


@pytest.mark.parametrize("error", [httpx.RemoteProtocolError, httpx.ReadError, httpx.ReadTimeout])
def test_a_run_whose_answer_is_cut_in_its_body_is_sent_again_with_the_same_key(
    library: Any, kind: str, error: type[Exception]
) -> None:
    server = Server(library, cut(error=error), cut(503, error), standing())
    assert server.calling(kind, lambda retain: retain.runs.start("sdr", "hello")).run_id == "1"
    assert len({request.headers["idempotency-key"] for request in server.sent}) == 1


def test_answers_that_are_only_cut_are_one_error_and_a_post_without_a_key_is_not_repeated(
    library: Any, kind: str
) -> None:
    server = Server(library, *[cut() for _ in range(4)])
    with pytest.raises(library.RetainError) as failed:
        server.calling(kind, lambda retain: retain.memories.get("x"))
    assert (failed.value.code, len(server.sent)) == ("no_answer", 3)
    with pytest.raises(library.RetainError):
        server.calling(kind, lambda retain: retain.webhooks.rotate("x"))
    assert len(server.sent) == 4


async def _first(rows: AsyncIterator[Any]) -> Any:
    return [row async for row in rows]


def _listed(rows: Any) -> Any:
    return _first(rows) if hasattr(rows, "__aiter__") else list(rows)


CALLS = [
    pytest.param(lambda retain: retain.memories.delete("x"), id="a deletion"),
    pytest.param(lambda retain: retain.attachments.download("x"), id="a file"),
    pytest.param(lambda retain: retain.attachments.upload(b"x"), id="an upload"),
    pytest.param(lambda retain: retain.memories.get("x"), id="one thing"),
    pytest.param(lambda retain: _listed(retain.users.list()), id="a list"),
    pytest.param(lambda retain: _listed(retain.users.export("x")), id="an export"),
    pytest.param(lambda retain: retain.runs.stream("sdr", "hi"), id="a stream"),
    pytest.param(lambda retain: retain.runs.follow("sdr", "desk", "1"), id="a stream of a run"),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_page_instead_of_an_answer_is_one_error_that_shows_it(
    library: Any, kind: str, call: Callable[[Any], Any]
) -> None:
    server = Server(library, page())
    with pytest.raises(library.RetainError, match="Sign in") as failed:
        server.calling(kind, call)
    assert (failed.value.code, failed.value.status, len(server.sent)) == ("unexpected_answer", 200, 1)


@pytest.mark.parametrize("call", [call for call in CALLS if call.id != "a file"])
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda: httpx.Response(200, json=["ok"]), id="other JSON"),
        pytest.param(lambda: httpx.Response(201, text="ok"), id="not JSON"),
        pytest.param(lambda: httpx.Response(299, content=b"\xff\xfe{"), id="not text"),
    ],
)
def test_an_answer_that_does_not_fit_is_one_error(
    library: Any, kind: str, call: Callable[[Any], Any], answer: Callable[[], httpx.Response]
) -> None:
    server = Server(library, answer())
    with pytest.raises(library.RetainError) as failed:
        server.calling(kind, call)
    assert (failed.value.code, len(server.sent)) == ("unexpected_answer", 1)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda: httpx.Response(503, json=["down"]), id="a refusal that is a list"),
        pytest.param(lambda: httpx.Response(400, json={"detail": 1, "code": "x", "request_id": "r"}), id="no text"),
        pytest.param(
            lambda: httpx.Response(200, json={"memories": ["x"], "cursor": None}), id="an entry that is a text"
        ),
        pytest.param(lambda: httpx.Response(200, text="<p>", headers={"content-type": "Text/HTML"}), id="a page"),
    ],
)
def test_what_something_else_answers_is_one_error(
    library: Any, kind: str, answer: Callable[[], httpx.Response]
) -> None:
    server = Server(library, *[answer() for _ in range(3)])
    with pytest.raises(library.RetainError) as failed:
        server.calling(kind, lambda retain: _listed(retain.memories.list()))
    assert failed.value.code == "unexpected_answer"


def test_a_cancelled_run_ends_its_stream_and_letters_of_no_encoding_do_not(library: Any, kind: str) -> None:
    """A server that begins with a byte order mark, and breaks a letter, is read all the same."""
    cancelled = ENDED.replace("run.completed", "run.cancelled").replace('"done"', '"\xff"')
    started = STARTED.partition("\n")[2]  # a mark before the name of the event
    content = b"\xef\xbb\xbf" + (started + cancelled).encode("latin-1")
    server = Server(library, httpx.Response(200, content=content, headers={"content-type": "text/event-stream"}))
    names = server.calling(kind, lambda retain: retain.runs.stream("sdr", "hello"))
    assert (names, len(server.sent)) == (["run.started", "run.cancelled"], 1)


@pytest.mark.parametrize("cut_off", ["", '{"kind":"record"}\n'], ids=["empty", "without its last line"])
def test_an_export_continues_at_its_last_line_and_a_page_without_one_is_one_error(
    library: Any, kind: str, cut_off: str
) -> None:
    pages = ['{"kind":"record"}\n{"kind":"page","cursor":"c"}\n', '{"kind":"record"}\n{"kind":"page","cursor":null}\n']
    server = Server(library, *[httpx.Response(200, text=text) for text in pages])
    assert len(server.calling(kind, lambda retain: _listed(retain.users.export("x")))) == 4
    assert [dict(request.url.params) for request in server.sent] == [{}, {"cursor": "c"}]
    server = Server(library, httpx.Response(200, text=pages[0]), httpx.Response(200, text=cut_off))
    with pytest.raises(library.RetainError, match="cut off") as failed:
        server.calling(kind, lambda retain: _listed(retain.users.export("x")))
    assert failed.value.code == "unexpected_answer"


def test_an_answer_that_does_not_fit_names_the_member_and_not_the_values(library: Any, kind: str) -> None:
    server = Server(library, httpx.Response(201, json={"token": "SECRET"}))
    with pytest.raises(library.RetainError, match=r"expires_at_ms|key_id") as failed:
        server.calling(kind, lambda retain: retain.tokens.create("ann"))
    assert "SECRET" not in str(failed.value)


@pytest.mark.parametrize("letter", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\ufeff"])
def test_an_event_ends_at_a_line_break_and_at_no_other_character(library: Any, kind: str, letter: str) -> None:
    text = json.dumps({"turn": 0, "text": f"a{letter}b"}, ensure_ascii=False)
    server = Server(library, streamed(STARTED, f"event: text.completed\ndata: {text}\n\n", ENDED))
    assert server.calling(kind, lambda retain: retain.runs.stream("sdr", "hi")) == [
        "run.started",
        "text.completed",
        "run.completed",
    ]


@pytest.mark.parametrize("data", ["{", "[]", "7", '{"run_id": "1"}'])
def test_an_event_that_does_not_fit_is_one_error(library: Any, kind: str, data: str) -> None:
    server = Server(library, streamed(STARTED, f"event: run.completed\ndata: {data}\n\n"))
    with pytest.raises(library.RetainError) as failed:
        server.calling(kind, lambda retain: retain.runs.stream("sdr", "hi"))
    assert (failed.value.code, len(server.sent)) == ("unexpected_answer", 1)


def test_events_of_a_run_that_are_not_a_stream_are_one_error(library: Any, kind: str) -> None:
    server = Server(library, standing(), standing())
    with pytest.raises(library.RetainError) as failed:
        server.calling(kind, lambda retain: retain.runs.stream("sdr", "hi"))
    assert (failed.value.code, [request.method for request in server.sent]) == ("unexpected_answer", ["POST", "GET"])


def test_a_stream_that_ends_without_an_event_is_asked_for_again_after_a_pause(
    library: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def asleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("retain_client.asynchronous.run_stream.sleep", asleep)
    monkeypatch.setattr("retain_client.synchronous.run_stream.sleep", pauses.append)
    server = Server(library, *[streamed(": still here\n\n") for _ in range(5)], streamed(STARTED), streamed(ENDED))
    assert server.calling(kind, lambda retain: retain.runs.follow("sdr", "desk", "1")) == [
        "run.started",
        "run.completed",
    ]
    assert pauses == [0.001] * 5


def test_a_redirect_is_one_error_that_names_where_it_leads(library: Any, kind: str) -> None:
    server = Server(library, httpx.Response(302, headers={"location": "https://login.example/"}))
    with pytest.raises(library.RetainError, match=r"login\.example") as failed:
        server.calling(kind, lambda retain: retain.memories.delete("x"))
    assert (failed.value.code, failed.value.status, len(server.sent)) == ("unexpected_answer", 302, 1)


def waiting(**awaited: Any) -> httpx.Response:
    run = {"run_id": "1", "instance_id": "desk", "status": "waiting", "waiting_for": awaited}
    return httpx.Response(200, json=run)


DELEGATE = {"kind": "delegate", "call": "1.0", "run_id": "2", "agent_type": "clerk", "instance_id": "1.clerk"}
APPROVAL = {"kind": "approval", "call": "1.0", "tool": "pay", "arguments": {}, "expires_at_ms": 1}


def test_whoever_waits_for_a_run_learns_that_its_delegate_waits_for_an_approval(library: Any, kind: str) -> None:
    server = Server(library, waiting(**DELEGATE), waiting(**DELEGATE), waiting(**APPROVAL))
    run = server.calling(kind, lambda retain: retain.runs.wait("boss", "desk", "1", poll_s=0.001))
    assert (run.status, run.waiting_for.run_id) == ("waiting", "2")
    assert [request.url.path for request in server.sent][1:] == ["/v1/agents/acme/clerk/instances/1.clerk/runs/2"] * 2


@pytest.mark.parametrize("status", [403, 404])
def test_a_delegate_that_whoever_waits_does_not_reach_is_waited_for(library: Any, kind: str, status: int) -> None:
    refused = problem(status, "no_such_run")
    server = Server(library, waiting(**DELEGATE), refused, httpx.Response(200, json=COMPLETED | SPENT))
    run = server.calling(kind, lambda retain: retain.runs.wait("boss", "desk", "1", poll_s=0.001))
    assert run.output == "done"
