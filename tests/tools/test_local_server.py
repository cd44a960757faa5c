"""A port that was taken in the meantime costs one attempt; the server still starts."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.servers import staged
from tools import local_server
from tools.local_server import PortTaken, start, stop

pytestmark = pytest.mark.workerd


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        yield port


def test_a_chosen_port_that_was_taken_is_chosen_again_and_a_given_one_is_refused(
    taken: int, migrated_state: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    free_port, offered = local_server.free_port, [taken]
    monkeypatch.setattr(local_server, "free_port", lambda: offered.pop() if offered else free_port())
    with staged("taken-port") as config:
        server = start(migrated_state(), config=config)
        try:
            assert not server.base_url.endswith(f":{taken}")
            assert httpx.get(f"{server.base_url}/healthz", trust_env=False).status_code == 200
        finally:
            stop(server)
        with pytest.raises(PortTaken, match="is in use"):
            start(migrated_state(), config=config, port=taken)
