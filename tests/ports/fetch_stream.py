"""The contract of every `FetchStream`, run against `tests/host/echo_server.py`.

origin: the address of that server, without a slash.
"""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager

from retain.errors import InvalidInput, Unavailable, UpstreamFailed
from retain.ports import MAX_STREAM_BYTES, FetchStream, StreamedResponse
from tests.ports import raises


def _get(
    stream: FetchStream,
    url: str,
    *,
    silence_ms: int = 10_000,
    timeout_ms: int = 10_000,
    limit_bytes: int = MAX_STREAM_BYTES,
) -> AbstractAsyncContextManager[StreamedResponse]:
    limits = {"silence_ms": silence_ms, "timeout_ms": timeout_ms, "limit_bytes": limit_bytes}
    return stream("GET", url, headers={}, body=None, **limits)


async def _read(answer: StreamedResponse) -> bytes:
    pieces = [piece async for piece in answer.chunks]
    assert all(pieces), "a piece is never empty"
    return b"".join(pieces)


async def check_method_headers_and_body_arrive(stream: FetchStream, origin: str) -> None:
    async with stream(
        "POST",
        f"{origin}/echo?q=1",
        headers={"content-type": "text/plain", "X-Contract": "yes"},
        body="é 🦀",
        silence_ms=10_000,
        timeout_ms=10_000,
    ) as answer:
        assert (answer.status, answer.headers["x-mixed-case"]) == (200, "Kept")
        echoed = json.loads(await _read(answer))
    assert (echoed["method"], echoed["target"], echoed["body"]) == ("POST", "/echo?q=1", "é 🦀")
    assert echoed["headers"]["x-contract"] == "yes"


async def check_the_pieces_are_the_whole_body(stream: FetchStream, origin: str) -> None:
    async with _get(stream, f"{origin}/bytes") as answer:
        assert await _read(answer) == bytes(range(256))


async def check_a_compressed_answer_is_decoded(stream: FetchStream, origin: str) -> None:
    async with _get(stream, f"{origin}/gzip") as answer:
        assert await _read(answer) == b"squeezed " * 100
        assert not {"content-encoding", "content-length", "transfer-encoding"} & set(answer.headers)


async def check_the_limit_ends_a_stream_that_continues(stream: FetchStream, origin: str) -> None:
    for path, limit_bytes in (("/bytes", 255), ("/chunked/256", 255), ("/bomb", 1_000_000)):
        received = 0
        with raises(UpstreamFailed, code="response_too_large"):
            async with _get(stream, origin + path, limit_bytes=limit_bytes) as answer:
                async for piece in answer.chunks:
                    received += len(piece)
        assert received <= limit_bytes


async def check_what_was_sent_is_there_before_the_answer_ends(stream: FetchStream, origin: str) -> None:
    async with _get(stream, f"{origin}/stalled") as answer:
        async for piece in answer.chunks:
            assert b"0123456789".startswith(piece)
            break


async def check_error_statuses_are_answers_and_may_be_empty(stream: FetchStream, origin: str) -> None:
    for status in (204, 404, 429, 500):
        async with _get(stream, f"{origin}/status/{status}") as answer:
            assert (answer.status, await _read(answer)) == (status, b"")


async def check_redirects_are_not_followed(stream: FetchStream, origin: str) -> None:
    async with _get(stream, f"{origin}/redirect") as answer:
        assert answer.status == 302


async def check_an_answer_that_does_not_begin_in_time_is_a_timeout(stream: FetchStream, origin: str) -> None:
    for limits in ({"silence_ms": 200}, {"timeout_ms": 200}):
        with raises(Unavailable, code="upstream_timeout"):
            async with _get(stream, f"{origin}/silent", **limits):
                raise AssertionError("the answer began")


async def check_an_answer_that_falls_silent_is_a_timeout(stream: FetchStream, origin: str) -> None:
    for limits in ({"silence_ms": 500}, {"timeout_ms": 500}):
        async with _get(stream, f"{origin}/stalled", **limits) as answer:
            with raises(Unavailable, code="upstream_timeout"):
                await _read(answer)


async def check_an_answer_that_takes_too_long_is_a_timeout(stream: FetchStream, origin: str) -> None:
    async with _get(stream, f"{origin}/endless", silence_ms=5_000, timeout_ms=500) as answer:
        with raises(Unavailable, code="upstream_timeout"):
            await _read(answer)


async def check_a_server_that_hangs_up_is_unreachable(stream: FetchStream, origin: str) -> None:
    with raises(Unavailable, code="upstream_unreachable"):
        async with _get(stream, f"{origin}/hangup"):
            raise AssertionError("there was an answer")
    async with _get(stream, f"{origin}/truncated") as answer:
        with raises(Unavailable, code="upstream_unreachable"):
            await _read(answer)


async def check_an_invalid_address_is_invalid_input(stream: FetchStream, origin: str) -> None:
    with raises(InvalidInput, code="invalid_url"):
        async with _get(stream, "ftp://127.0.0.1/"):
            raise AssertionError("there was an answer")
