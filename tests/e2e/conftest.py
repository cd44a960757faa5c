"""A second server, whose chat model is a puppet that speaks OpenAI's wire format, and which a test may crash."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.e2e.local_state import LocalState
from tests.e2e.puppet import MODEL, Puppet
from tests.e2e.servers import client_of, staged
from tests.support.anthropic_server import AnthropicServer
from tools.local_server import LocalServer, start, stop

SYNCHRONOUS = ("requests", "urllib3", "idna", "charset_normalizer", "certifi")
"""`requests` with what it needs: for the function tools of the tests. All in Python."""
_numbers = itertools.count(1)


@dataclass
class Steered:
    """The server that asks the puppet. After a crash `server` and `api` are new ones."""

    config: Path
    state: LocalState
    server: LocalServer
    api: httpx.Client

    def tenant(self) -> str:
        """Register a tenant that no other test knows, and return its id."""
        tenant_id = f"steered-{next(_numbers)}"
        assert self.api.put(f"/admin/tenants/{tenant_id}").status_code == 201
        return tenant_id

    def crash(self) -> None:
        """End the server without notice."""
        self.server.kill()
        self.api.close()

    def restart(self) -> None:
        """Start it again on what it left behind."""
        self.server = start(self.state.root, config=self.config)
        self.api = client_of(self.server)


@pytest.fixture(scope="session")
def puppet() -> Iterator[Puppet]:
    """The model."""
    model = Puppet()
    with model:
        yield model


@pytest.fixture(scope="session")
def anthropic() -> Iterator[AnthropicServer]:
    """A model of Anthropic, which answers what a test lines up."""
    model = AnthropicServer()
    with model:
        yield model


@pytest.fixture(scope="session")
def steered(migrated_state: Callable[[], Path], puppet: Puppet, anthropic: AnthropicServer) -> Iterator[Steered]:
    """The server that asks the puppet."""
    variables = {
        "CHAT_PROVIDER": "openai",
        "CHAT_BASE_URL": puppet.base_url,
        "CHAT_MODEL": MODEL,
        "CHAT_API_KEY": puppet.api_key,
        "AGENT_MEMORY_ANSWERS": "chat",
        "EVAL_JUDGE": "chat",
        "ANTHROPIC_BASE_URL": anthropic.base_url,
        "ANTHROPIC_API_KEY": anthropic.api_key,
    }
    with staged("steered", variables, SYNCHRONOUS) as config:
        state = LocalState(migrated_state())
        server = start(state.root, config=config)
        running = Steered(config, state, server, client_of(server))
        try:
            yield running
        finally:
            running.api.close()
            stop(running.server)
