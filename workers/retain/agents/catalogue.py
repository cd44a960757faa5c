"""The catalogue: the agents and scripts that were staged with the Worker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from retain.agents.definitions import AgentDefinition
from retain.errors import Misconfigured, NotFound


class Catalogue:
    """Agent definitions by type, and scripts of the scripted model by name."""

    def __init__(self, agents: Mapping[str, AgentDefinition], scripts: Mapping[str, Any]) -> None:
        self._agents = agents
        self._scripts = scripts

    @classmethod
    def from_json(cls, text: str) -> Catalogue:
        """Return the catalogue that staging wrote (`agents.json`)."""
        staged = json.loads(text)
        agents = {name: AgentDefinition.model_validate(agent) for name, agent in staged["agents"].items()}
        return cls(agents, staged["scripts"])

    def agent(self, agent_type: str) -> AgentDefinition:
        """Return a definition. Raises: NotFound (code `unknown_agent`)."""
        definition = self._agents.get(agent_type)
        if definition is None:
            raise NotFound(f"there is no agent of type {agent_type}", code="unknown_agent")
        return definition

    def script(self, name: str | None) -> Any:
        """Return a script. Raises: Misconfigured (code `no_such_script`)."""
        if name is None or name not in self._scripts:
            raise Misconfigured(f"there is no script named {name} in agents/scripts", code="no_such_script")
        return self._scripts[name]
