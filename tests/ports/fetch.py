"""The contract of every `Fetch`, run against `tests/host/echo_server.py`.

origin: the address of that server, without a slash.
"""

from __future__ import annotations

import json
from typing import Any

from retain.errors import Unavailable, UpstreamFailed
from retain.ports import Fetch, HttpResponse
from tests.ports import raises


async def _get(fetch: Fetch, url: str, *, timeout_ms: int = 10_000) -> HttpResponse:
    return await fetch("GET", url, headers={}, body=None, timeout_ms=timeout_ms)


def _echoed(answer: HttpResponse) -> dict[str, Any]:
    assert answer.status == 200
    echoed = json.loads(answer.body)
    assert isinstance(echoed, dict)
    return echoed


async def check_method_query_headers_and_body_arrive(fetch: Fetch, origin: str) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = await fetch(
            method,
            f"{origin}/echo?q=a%20b&q=c",
            headers={"content-type": "text/plain", "X-Contract": "yes"},
            body="é 🦀",
            timeout_ms=10_000,
        )
        echoed = _echoed(answer)
        assert (echoed["method"], echoed["target"], echoed["body"]) == (method, "/echo?q=a%20b&q=c", "é 🦀")
        assert (echoed["headers"]["x-contract"], echoed["headers"]["content-type"]) == ("yes", "text/plain")


async def check_a_request_without_a_body_sends_none(fetch: Fetch, origin: str) -> None:
    assert _echoed(await _get(fetch, f"{origin}/echo"))["body"] == ""


async def check_header_names_of_the_answer_are_lower_case(fetch: Fetch, origin: str) -> None:
    answer = await _get(fetch, f"{origin}/echo")
    assert answer.headers["x-mixed-case"] == "Kept"
    assert all(name == name.lower() for name in answer.headers)


async def check_every_byte_of_the_body_is_kept(fetch: Fetch, origin: str) -> None:
    assert (await _get(fetch, f"{origin}/bytes")).body == bytes(range(256))


async def check_a_body_of_exactly_the_limit_is_read(fetch: Fetch, origin: str) -> None:
    for path in ("/bytes", "/chunked/256"):
        answer = await fetch("GET", origin + path, headers={}, body=None, timeout_ms=10_000, limit_bytes=256)
        assert len(answer.body) == 256


async def check_a_body_over_the_limit_is_abandoned(fetch: Fetch, origin: str) -> None:
    for path in ("/bytes", "/chunked/256"):
        with raises(UpstreamFailed, code="response_too_large", upstream_status=200):
            await fetch("GET", origin + path, headers={}, body=None, timeout_ms=10_000, limit_bytes=255)


async def check_the_limit_holds_for_what_decoding_makes_of_a_body(fetch: Fetch, origin: str) -> None:
    """The server sends 64 KiB that decode to 64 MiB."""
    with raises(UpstreamFailed, code="response_too_large"):
        await fetch("GET", f"{origin}/bomb", headers={}, body=None, timeout_ms=10_000, limit_bytes=1_000_000)


async def check_an_announced_body_over_the_limit_is_not_waited_for(fetch: Fetch, origin: str) -> None:
    with raises(UpstreamFailed, code="response_too_large"):
        await fetch("GET", f"{origin}/endless", headers={}, body=None, timeout_ms=10_000, limit_bytes=1_000_000)


async def check_error_statuses_are_answers(fetch: Fetch, origin: str) -> None:
    for status in (204, 404, 429, 500):
        assert (await _get(fetch, f"{origin}/status/{status}")).status == status


async def check_redirects_are_not_followed(fetch: Fetch, origin: str) -> None:
    answer = await _get(fetch, f"{origin}/redirect")
    assert answer.status == 302
    assert answer.headers["location"].endswith("/echo")


async def check_a_compressed_answer_is_decoded_and_its_headers_describe_the_decoded_body(
    fetch: Fetch, origin: str
) -> None:
    answer = await _get(fetch, f"{origin}/gzip")
    assert answer.body == b"squeezed " * 100
    assert not {"content-encoding", "content-length", "transfer-encoding"} & set(answer.headers)


async def check_cookies_of_one_answer_are_not_sent_with_the_next_request(fetch: Fetch, origin: str) -> None:
    await _get(fetch, f"{origin}/cookie")
    assert "cookie" not in _echoed(await _get(fetch, f"{origin}/echo"))["headers"]


async def check_an_answer_that_starts_too_late_is_a_timeout(fetch: Fetch, origin: str) -> None:
    with raises(Unavailable, code="upstream_timeout"):
        await _get(fetch, f"{origin}/silent", timeout_ms=200)


async def check_an_answer_that_is_complete_is_not_waited_for(fetch: Fetch, origin: str) -> None:
    """The server leaves the stream open. The pieces may come together: what is complete may be followed by more."""
    seen: list[bytes] = []

    def until(piece: bytes) -> bool:
        seen.append(piece)
        return b"third" in b"".join(seen)

    answer = await fetch("GET", f"{origin}/chunked/open", headers={}, body=None, timeout_ms=10_000, until=until)
    assert answer.body == b"".join(seen) == b"first second third "
    assert all(seen)
    whole = await fetch("GET", f"{origin}/chunked/256", headers={}, body=None, timeout_ms=10_000, until=lambda _: False)
    assert len(whole.body) == 256


async def check_an_answer_that_is_left_open_and_never_complete_is_a_timeout(fetch: Fetch, origin: str) -> None:
    with raises(Unavailable, code="upstream_timeout"):
        await fetch("GET", f"{origin}/chunked/open", headers={}, body=None, timeout_ms=500, until=lambda _: False)


async def check_an_answer_that_ends_too_late_is_a_timeout(fetch: Fetch, origin: str) -> None:
    with raises(Unavailable, code="upstream_timeout"):
        await _get(fetch, f"{origin}/stalled", timeout_ms=500)


async def check_a_server_that_hangs_up_is_unreachable(fetch: Fetch, origin: str) -> None:
    with raises(Unavailable, code="upstream_unreachable"):
        await _get(fetch, f"{origin}/hangup")
    with raises(Unavailable, code="upstream_unreachable", upstream_status=200):
        await _get(fetch, f"{origin}/truncated")


async def check_a_port_where_nobody_listens_is_unreachable(fetch: Fetch, origin: str) -> None:
    host = origin.rsplit(":", 1)[0]
    with raises(Unavailable, code="upstream_unreachable"):
        await _get(fetch, f"{host}:9")  # the discard service: closed wherever tests run
