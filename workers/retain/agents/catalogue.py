"""The catalogue: the agents, function tools and scripts that were staged with the Worker."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from retain.agents.definitions import STAGED, AgentDefinition
from retain.errors import Misconfigured, NotFound
from retain.json_text import JsonObject, read_own_json

if TYPE_CHECKING:
    from retain.agents.tools.functions import FunctionTool


class AgentCatalogue:
    """Agent definitions by type, scripts of the scripted model and modules of function tools by name."""

    def __init__(
        self,
        agents: Mapping[str, AgentDefinition],
        scripts: JsonObject,
        functions: Mapping[str, str] | None = None,
    ) -> None:
        self._agents = agents
        self._scripts = scripts
        self._functions = functions or {}
        self._loaded: dict[str, FunctionTool] = {}

    @classmethod
    def from_json(cls, text: str) -> AgentCatalogue:
        """Return the catalogue that staging wrote (`agents.json`)."""
        staged = read_own_json(text)
        agents = {
            name: AgentDefinition.model_validate(agent, context=STAGED) for name, agent in staged["agents"].items()
        }
        return cls(agents, staged["scripts"], staged.get("functions"))

    def has(self, agent_type: str) -> bool:
        """Return whether there is an agent of this type."""
        return agent_type in self._agents

    def agent(self, agent_type: str) -> AgentDefinition:
        """Return a definition. Raises: NotFound (code `unknown_agent`)."""
        definition = self._agents.get(agent_type)
        if definition is None:
            raise NotFound(f"there is no agent of type {agent_type}", code="unknown_agent")
        return definition

    def defines(self, definition: AgentDefinition) -> bool:
        """Return whether a definition is one of these, and not a tenant's own of the same name."""
        return self._agents.get(definition.type) == definition

    def page(
        self, *, limit: int, cursor: str | None, only: str | None = None
    ) -> tuple[list[AgentDefinition], str | None]:
        """Return definitions by their types, after the one named by the cursor, and the cursor of the next page.

        only: the one that is listed if there is such an agent; None for all.
        """
        types = sorted(name for name in self._agents if name > (cursor or "") and only in (None, name))
        shown = [self._agents[name] for name in types[:limit]]
        return shown, shown[-1].type if len(types) > limit else None

    def script(self, name: str | None) -> Any:
        """Return a script. Raises: Misconfigured (code `no_such_script`)."""
        if name is None or name not in self._scripts:
            raise Misconfigured(f"there is no script named {name} in agents/scripts", code="no_such_script")
        return self._scripts[name]

    def has_script(self, name: str) -> bool:
        """Return whether there is a script of this name."""
        return name in self._scripts

    def models(self) -> frozenset[tuple[str | None, str | None]]:
        """Return the providers and names of models that the agents name; None where an agent takes the deployment's."""
        return frozenset((one.model.provider, one.model.name) for one in self._agents.values())

    def has_function(self, name: str) -> bool:
        """Return whether there is a function tool of this name."""
        return name in self._functions

    def function(self, name: str) -> FunctionTool:
        """Return a function tool; the first call imports its module.

        Raises: NotFound (code `no_such_function`); Misconfigured (code `invalid_function`).
        """
        from retain.agents.tools.functions import FunctionTool

        if name not in self._loaded:
            if name not in self._functions:
                raise NotFound(f"there is no function {name} in agents/tools", code="no_such_function")
            try:
                module = importlib.import_module(self._functions[name])
            except ImportError as error:
                raise Misconfigured(
                    f"the function {name} cannot be a tool: {self._functions[name]} cannot be imported: {error}",
                    code="invalid_function",
                ) from error
            self._loaded[name] = FunctionTool(getattr(module, name))
        return self._loaded[name]
