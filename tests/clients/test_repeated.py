"""What the Python client sends again, after which pause, and what a stream continues after, without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.clients.canned import COMPLETED, ENDED, SPENT, STARTED, Server, problem, standing, streamed


@pytest.fixture
def waited(library: Any, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses in seconds of both clients, none of which takes time."""
    pauses: list[float] = []

    async def asleep(seconds: float) -> None:
        pauses.append(seconds)

    for module in ("transport", "run_stream", "runs"):
        monkeypatch.setattr(f"retain_client.asynchronous.{module}.sleep", asleep)
        monkeypatch.setattr(f"retain_client.synchronous.{module}.sleep", pauses.append)
    return pauses


def creating(retain: Any) -> Any:
    """Create a webhook: what must not happen twice, and has no key."""
    return retain.webhooks.create("https://hooks.example")


UNKNOWN = [httpx.ReadTimeout, httpx.WriteTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError]


@pytest.mark.parametrize("failure", [httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout])
def test_what_never_reached_the_server_is_sent_again_whatever_it_is(
    library: Any, kind: str, waited: list[float], failure: Callable[[str], Exception]
) -> None:
    server = Server(library, failure("no"), failure("no"), problem(409, "too_many_webhooks"))
    with pytest.raises(library.RetainError, match="too_many_webhooks"):
        server.calling(kind, creating)
    assert (len(server.sent), len(waited)) == (3, 2)


@pytest.mark.parametrize("failure", UNKNOWN)
def test_what_may_have_reached_the_server_is_not_sent_again_if_it_must_not_happen_twice(
    library: Any, kind: str, waited: list[float], failure: Callable[[str], Exception]
) -> None:
    server = Server(library, failure("no"))
    with pytest.raises(library.RetainError, match="no_answer"):
        server.calling(kind, creating)
    assert (len(server.sent), waited) == (1, [])


def test_each_repetition_comes_after_a_pause_that_grows(library: Any, kind: str, waited: list[float]) -> None:
    server = Server(library, problem(503, "contended"), httpx.ReadError("cut"), standing())
    server.calling(kind, lambda retain: retain.runs.start("sdr", "hello"))
    first, second = waited
    assert 0.0005 <= first <= 0.001 <= second <= 0.002


def unreadable(text: str = "text/event-stream") -> httpx.Response:
    """Return an answer that claims to be compressed and is not."""
    headers = {"content-encoding": "gzip", "content-type": text}
    return httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"not gzip"))


def test_an_answer_that_cannot_be_decoded_is_as_one_that_was_cut(library: Any, kind: str, waited: list[float]) -> None:
    server = Server(library, unreadable("application/json"), standing())
    assert server.calling(kind, lambda retain: retain.runs.start("sdr", "hello")).run_id == "1"
    server = Server(library, streamed(STARTED), unreadable(), streamed(ENDED))
    names = server.calling(kind, lambda retain: retain.runs.stream("sdr", "hello"))
    assert (names, len(server.sent), len(waited)) == (["run.started", "run.completed"], 3, 2)


def test_a_stream_that_breaks_often_and_brings_something_each_time_is_never_given_up(
    library: Any, kind: str, waited: list[float]
) -> None:
    server = Server(library, streamed(STARTED), *[cut(_event(number)) for number in range(1, 7)], streamed(ENDED))
    names = server.calling(kind, lambda retain: retain.runs.stream("sdr", "hello"))
    assert names == ["run.started", *["tool.called"] * 6, "run.completed"]
    assert len(waited) == 6


class Cut(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that breaks off after a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __iter__(self) -> Iterator[bytes]:
        yield self._text.encode()
        raise httpx.ReadError("cut")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


def cut(text: str) -> httpx.Response:
    """Return a stream that breaks off after a text."""
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Cut(text))


def _event(number: int) -> str:
    return f"id: {number}\nevent: tool.called\ndata: {{}}\n\n"


def test_a_stream_continues_after_the_last_event_with_an_id_in_the_run_that_it_began(library: Any, kind: str) -> None:
    """Pieces of text have no id, and what a delegate does names the delegate's run."""
    piece = 'event: text.delta\ndata: {"text": "he"}\n\n'
    delegated = 'id: 3\nevent: tool.called\ndata: {"run_id": "2", "instance_id": "1.clerk"}\n\n'
    server = Server(library, streamed(STARTED, delegated, piece), streamed(ENDED))
    server.calling(kind, lambda retain: retain.runs.stream("sdr", "hello"))
    continued = server.sent[1]
    assert continued.headers["last-event-id"] == "3"
    assert continued.url.path == "/v1/agents/acme/sdr/instances/desk/runs/1/events"


def test_a_run_is_waited_for_no_longer_than_was_given(library: Any, kind: str, waited: list[float]) -> None:
    open_run = httpx.Response(200, json={"run_id": "1", "instance_id": "desk", "status": "running"})
    server = Server(library, open_run)
    run = server.calling(kind, lambda retain: retain.runs.wait("sdr", "desk", "1", timeout_s=5, poll_s=6))
    assert (run.status, waited) == ("running", [])
    server = Server(library, open_run, httpx.Response(200, json=COMPLETED | SPENT))
    assert server.calling(kind, lambda retain: retain.runs.wait("sdr", "desk", "1", poll_s=6)).output == "done"
    assert waited == [6]


@pytest.mark.parametrize("named", ["²", "Mon, 01 Jan 0001 00:00:00 +2359", "soon"])
def test_a_pause_that_nobody_can_read_is_not_one_that_the_server_wants(
    library: Any, kind: str, waited: list[float], named: str
) -> None:
    refused = httpx.Response(429, json={}, headers=[(b"retry-after", named.encode("latin-1"))])
    server = Server(library, refused, standing())
    server.calling(kind, lambda retain: retain.runs.start("sdr", "hello"))
    assert [pause <= 0.001 for pause in waited] == [True]


def test_a_short_pause_of_the_server_does_not_shorten_the_client_s(library: Any) -> None:
    assert library.Retries(first_pause_s=8).after_answer(1, 429, 1.0, again=False) >= 4
