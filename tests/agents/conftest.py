"""What the tests of agents share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.definitions import AgentDefinition
from retain.models.chat import ChatModel
from tests.support.instances import Deployment, Upstream, catalogue

pytest.register_assert_rewrite("tests.agents.remembered")


@pytest.fixture
def deploy() -> Iterator[Callable[..., Deployment]]:
    """Make deployments that are closed after the test."""
    made: list[Deployment] = []

    def make(
        agents: AgentCatalogue | None = None,
        *,
        upstreams: Sequence[Upstream] = (),
        chat: ChatModel | Mapping[str, ChatModel] | None = None,
    ) -> Deployment:
        """Return a deployment. chat: every agent's model, or each agent's; the agents' scripts by default."""

        def model(definition: AgentDefinition) -> ChatModel:
            assert chat is not None
            return chat[definition.type] if isinstance(chat, Mapping) else chat

        made.append(Deployment(agents, upstreams=upstreams, chat=None if chat is None else model))
        return made[-1]

    yield make
    for deployment in made:
        deployment.close()


def agent(name: str, **more: Any) -> dict[str, Any]:
    """Return a definition with the fields that every agent needs."""
    return {"type": name, "description": f"Does {name}.", "instructions": f"Do {name}.", **more}


@pytest.fixture
def agents() -> Callable[..., AgentCatalogue]:
    """Make catalogues of the shipped agents and more, each given as its type and further fields of its definition.

    functions: module of each function tool besides the shipped ones.
    """

    def make(functions: Mapping[str, str] | None = None, **more: dict[str, Any]) -> AgentCatalogue:
        return catalogue(*(agent(name, **fields) for name, fields in more.items()), functions=functions)

    return make
