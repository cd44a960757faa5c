"""Bounds that are checked before bytes are kept, seen from outside: in the memory of the running server."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.process_memory import Growth
from tools.local_server import LocalServer

pytestmark = pytest.mark.workerd

MIB = 1024 * 1024
ISOLATE_BYTES = 128 * MIB
"""What an isolate may take. Source: https://developers.cloudflare.com/workers/platform/limits/#memory"""
HUGE_BYTES = 64 * MIB

PLACES = {
    "a tool call without a key": ("/api/v1/tools/echo", 401, "missing_api_key"),
    "a route that does not exist": ("/nowhere", 404, "no_such_route"),
    "a run": ("/v1/agents/acme/order_triage/run", 413, "body_too_large"),
}


def _zeros(size: int) -> Iterator[bytes]:
    for _ in range(size // (64 * 1024)):
        yield bytes(64 * 1024)


@pytest.mark.parametrize(("path", "status", "code"), PLACES.values(), ids=list(PLACES))
def test_a_huge_body_without_a_length_is_never_in_memory(
    api: httpx.Client, server: LocalServer, path: str, status: int, code: str
) -> None:
    with Growth(server.process.pid) as growth:
        answer = api.post(path, content=_zeros(HUGE_BYTES), timeout=120)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert growth.peak_bytes < ISOLATE_BYTES
