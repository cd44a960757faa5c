"""Contents within JSON bodies: the same bytes as when the body is written as a whole, in less memory."""

from __future__ import annotations

import json
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from retain.models.embedded import EmbeddedContents, as_base64


def written(texts: list[str], contents: list[bytes]) -> tuple[str | bytes, bytes]:
    """Return a body with contents between texts, and the same written as a whole."""
    embedded = EmbeddedContents()
    marked = [f"data:{text};base64,{embedded.mark(content)}" for text, content in zip(texts, contents, strict=True)]
    whole = [f"data:{text};base64,{as_base64(content)}" for text, content in zip(texts, contents, strict=True)]
    body = embedded.body({"before": texts, "urls": marked, "after": "é"})
    return body, json.dumps({"before": texts, "urls": whole, "after": "é"}, separators=(",", ":")).encode()


@given(st.lists(st.tuples(st.text(), st.binary(max_size=50)), min_size=1, max_size=4))
def test_a_body_with_marks_is_the_body_that_is_written_as_a_whole(files: list[tuple[str, bytes]]) -> None:
    body, whole = written([text for text, _ in files], [content for _, content in files])
    assert body == whole


def test_a_content_longer_than_a_piece_and_one_used_twice_are_written_whole() -> None:
    content = bytes(range(256)) * 3_000 + b"end"
    body, whole = written(["a", "b"], [content, content])
    assert body == whole


def test_a_body_without_contents_is_text() -> None:
    assert EmbeddedContents().body({"a": "é"}) == '{"a":"\\u00e9"}'


def test_a_text_that_looks_like_a_mark_of_another_request_stays_text() -> None:
    other = EmbeddedContents().mark(b"secret")
    embedded = EmbeddedContents()
    mark = embedded.mark(b"own")
    assert (
        embedded.body({"text": other, "file": mark})
        == json.dumps({"text": other, "file": as_base64(b"own")}, separators=(",", ":")).encode()
    )


def test_writing_a_body_takes_little_more_memory_than_the_body() -> None:
    content = bytes(5 * 1_048_576)
    embedded = EmbeddedContents()
    payload = {"url": embedded.mark(content)}
    tracemalloc.start()
    try:
        body = embedded.body(payload)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < len(body) + 1_048_576
