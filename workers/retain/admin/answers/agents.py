"""The agents that tenants define themselves."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from retain.agents.calls.shown import ListedAgentJson
from retain.json_text import JsonObject


class AgentVersionJson(TypedDict):
    """A version of an agent. deleted: whether it is the agent's deletion. restored_from: the version that it repeats."""

    agent_type: str
    version: int
    digest: str
    deleted: bool
    restored_from: int | None
    created_by: str
    created_at_ms: int


class ShownVersionJson(AgentVersionJson):
    """A version with its definition, every default included; null for a deletion."""

    definition: JsonObject | None


class AgentVersionsJson(TypedDict):
    """A page of versions, the newest first."""

    versions: list[AgentVersionJson]
    cursor: str | None


class DefinitionProblemJson(TypedDict):
    """Something that is wrong in a definition. pointer: where, as a JSON Pointer; "" for the whole."""

    pointer: str
    message: str


class DefinedAgentJson(ShownVersionJson):
    """The version that a change added, or the current one if it changed nothing."""

    added: bool
    warnings: list[DefinitionProblemJson]


class ShownAgentJson(TypedDict):
    """An agent. version, created_by, created_at_ms: null for an agent of the repository.

    definition: null for a key, if the agent is one of the repository.
    """

    agent_type: str
    source: Literal["repository", "tenant"]
    version: int | None
    digest: str
    definition: JsonObject | None
    restored_from: int | None
    created_by: str | None
    created_at_ms: int | None


class CheckedAgentJson(TypedDict):
    """What is wrong with a definition. digest: null for one that cannot be read."""

    valid: bool
    problems: list[DefinitionProblemJson]
    warnings: list[DefinitionProblemJson]
    digest: str | None


class DefinitionsJson(TypedDict):
    """A page of agents, by their types."""

    agents: list[ListedAgentJson]
    cursor: str | None
