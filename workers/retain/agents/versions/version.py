"""One version of an agent that a tenant defines itself."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from pydantic import ValidationError

from retain.agents.definitions import AgentDefinition
from retain.agents.runs.open_run import VersionReference
from retain.errors import NotFound
from retain.json_text import Json, read_own_json
from retain.ports import Row

MAX_DEFINITION_BYTES = 65_536
"""Largest definition, in bytes of its JSON with every default, in UTF-8."""


@dataclass(frozen=True)
class AgentVersion:
    """One version. definition_text: JSON with every default; None for the deletion of the agent."""

    agent_type: str
    version: int
    digest: str
    definition_text: str | None
    restored_from: int | None = None
    created_by: str = ""
    created_at_ms: int = 0

    @property
    def reference(self) -> VersionReference:
        """What a run stores of it."""
        return VersionReference(self.version, self.digest)

    @property
    def deleted(self) -> bool:
        """Whether this is the deletion of the agent."""
        return self.definition_text is None

    @cached_property
    def definition(self) -> AgentDefinition:
        """The definition. Raises: NotFound (code `agent_unreadable`) for one that this Retain does not take."""
        try:
            return AgentDefinition.model_validate(read_own_json(self.definition_text or "null"))
        except ValidationError as error:
            raise NotFound(
                f"version {self.version} of the agent {self.agent_type} does not fit this version of Retain: define it"
                " again",
                code="agent_unreadable",
            ) from error

    def to_json(self) -> dict[str, Json]:
        """Return the version as lists have it, without its definition."""
        return {
            "agent_type": self.agent_type,
            "version": self.version,
            "digest": self.digest,
            "deleted": self.deleted,
            "restored_from": self.restored_from,
            "created_by": self.created_by,
            "created_at_ms": self.created_at_ms,
        }


def version_of(row: Row) -> AgentVersion:
    """Return the version in a row of `agent_versions`."""
    return AgentVersion(
        row["agent_type"],
        int(row["version"]),
        row["digest"],
        row["definition"],
        row["restored_from"],
        row["created_by"],
        int(row["created_at_ms"]),
    )


def stored_text(definition: AgentDefinition) -> str:
    """Return a definition as it is stored: equal definitions are equal texts."""
    return definition.model_dump_json()


def digest_of_definition(definition: AgentDefinition) -> str:
    """Return the digest by which decisions and runs name a definition."""
    return digest_of_text(stored_text(definition))


def digest_of_text(definition_text: str) -> str:
    """Return the digest of a definition as it is stored."""
    return hashlib.sha256(definition_text.encode()).hexdigest()[:16]
