"""Server-sent events are read as the standard says, however the bytes are divided."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retain.errors import UpstreamFailed
from retain.server_sent_events import EventReader, ServerSentEvent


def read(*pieces: bytes) -> list[ServerSentEvent]:
    reader = EventReader()
    return [event for piece in pieces for event in reader.feed(piece)]


CASES: dict[str, tuple[str, list[ServerSentEvent]]] = {
    "one line": ("data: hello\n\n", [ServerSentEvent("hello")]),
    "CRLF": ("data: a\r\n\r\ndata: b\r\n\r\n", [ServerSentEvent("a"), ServerSentEvent("b")]),
    "CR": ("data: a\r\rdata: b\r\r", [ServerSentEvent("a"), ServerSentEvent("b")]),
    "mixed ends": ("data: a\r\n\ndata: b\n\r\n", [ServerSentEvent("a"), ServerSentEvent("b")]),
    "several lines of data": ("data: a\ndata:\ndata: b\n\n", [ServerSentEvent("a\n\nb")]),
    "one space is taken away": ("data:  a\ndata:b\n\n", [ServerSentEvent(" a\nb")]),
    "a type": ("event: ping\ndata: {}\n\ndata: x\n\n", [ServerSentEvent("{}", "ping"), ServerSentEvent("x")]),
    "a type without data": ("event: ping\n\ndata: x\n\n", [ServerSentEvent("x")]),
    "an id stays": ("id: 7\ndata: a\n\ndata: b\n\n", [ServerSentEvent("a", id="7"), ServerSentEvent("b", id="7")]),
    "an id with NUL is none": ("id: 7\0\ndata: a\n\n", [ServerSentEvent("a")]),
    "comments": (": hello\n\n:\ndata: a\n: b\n\n", [ServerSentEvent("a")]),
    "empty data": ("data\n\ndata:\n\n", [ServerSentEvent(""), ServerSentEvent("")]),
    "a colon in the data": ('data: {"a": 1}\n\n', [ServerSentEvent('{"a": 1}')]),
    "other fields": ("retry: 10\nfoo: bar\nDATA: x\ndata: a\n\n", [ServerSentEvent("a")]),
    "an error of llama.cpp": (
        'error: {"code": 400}\n\ndata: [DONE]\n\n',
        [ServerSentEvent('{"code": 400}', "error"), ServerSentEvent("[DONE]")],
    ),
    "a byte order mark": ("\ufeffdata: a\n\n", [ServerSentEvent("a")]),
    "a second byte order mark": ("\ufeff\ufeffdata: a\n\n", []),
    "an end that is missing": ("data: a\n\ndata: b\n", [ServerSentEvent("a")]),
    "separators that are no ends of lines": ("data: a\u2028b\x0bc\x85\n\n", [ServerSentEvent("a\u2028b\x0bc\x85")]),
    "beyond ASCII": ("data: \u00e9\U0001f980\n\n", [ServerSentEvent("\u00e9\U0001f980")]),
}


@pytest.mark.parametrize(("text", "events"), CASES.values(), ids=CASES)
def test_a_stream_is_read_as_the_standard_says(text: str, events: list[ServerSentEvent]) -> None:
    assert read(text.encode()) == events


@pytest.mark.parametrize(("text", "events"), CASES.values(), ids=CASES)
def test_single_bytes_are_read_the_same(text: str, events: list[ServerSentEvent]) -> None:
    assert read(*(bytes([byte]) for byte in text.encode())) == events


def test_bytes_that_are_not_text_are_replaced() -> None:
    assert read(b"data: a\xff\xe2\x82\n\n") == [ServerSentEvent("a\ufffd\ufffd")]


LINES = st.sampled_from(
    ["data: a", "data:", "data: \u00e9\U0001f980", "event: x", "id: 1", ": c", "", "", "\ufeff", "foo"]
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r", "\r\n"])), max_size=12).map(
    lambda parts: "".join(line + end for line, end in parts).encode()
)


@given(STREAMS, st.lists(st.integers(0, 100), max_size=8))
@example(b"data: a\r\n\r\n\n", [8, 9, 10, 11])
def test_the_division_into_pieces_does_not_matter(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(places)]
    assert read(*pieces) == read(stream)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=30)


@given(st.lists(TEXTS), st.integers(1, 9))
def test_what_is_written_is_read(texts: list[str], size: int) -> None:
    stream = "".join("".join(f"data: {line}\n" for line in text.split("\n")) + "\n" for text in texts).encode()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert [event.data for event in read(*pieces)] == texts


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 50, b"data: xxxxxxxxxx\n"])
def test_an_event_without_end_is_given_up(piece: bytes) -> None:
    reader = EventReader(100)
    with pytest.raises(UpstreamFailed) as caught:
        [event for _ in range(30) for event in reader.feed(piece)]
    assert caught.value.code == "malformed_answer"
