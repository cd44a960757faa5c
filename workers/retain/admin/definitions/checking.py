"""What is wrong with an agent's definition: the same for staged files and for what tenants send."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from retain.agents.definitions import AgentDefinition, ModelConfig
from retain.errors import InvalidInput, LimitExceeded
from retain.json_text import Json
from retain.routing.bodies import message_of, place_of

MAX_PROBLEMS = 50
"""Most problems that one answer names."""


@dataclass(frozen=True, slots=True)
class DefinitionProblem:
    """Something that is wrong. pointer: where, as a JSON Pointer into the definition; "" for the whole."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"

    def to_json(self) -> dict[str, Json]:
        """Return the problem as HTTP answers have it."""
        return {"pointer": self.pointer, "message": self.message}


def shape_problems(error: ValidationError) -> list[DefinitionProblem]:
    """Return what does not fit the fields of a definition."""
    return [
        DefinitionProblem(
            "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in place_of(found)),
            message_of(found),
        )
        for found in error.errors(include_url=False, include_context=False, include_input=False)[:MAX_PROBLEMS]
    ]


def reference_problems(
    definition: AgentDefinition,
    *,
    functions: Collection[str],
    scripts: Collection[str],
    delegates: Collection[str],
) -> list[DefinitionProblem]:
    """Return what a definition names that does not exist. The arguments have what does."""
    found = [
        DefinitionProblem(f"/functions/{place}", f"names the function {name}, which no file of tools/ declares")
        for place, name in enumerate(definition.functions)
        if name not in functions
    ]
    found += [
        DefinitionProblem(f"/delegates/{place}", f"delegates to {name}, which does not exist")
        for place, name in enumerate(definition.delegates)
        if name not in delegates
    ]
    script = definition.model.script
    if script is not None and script not in scripts:
        found.append(DefinitionProblem("/model/script", f"names the script {script}, which does not exist"))
    return found


def memory_problems(definition: AgentDefinition) -> list[DefinitionProblem]:
    """Return what a definition says of a memory that it does not enable."""
    memory = definition.memory_config
    if memory.long_term_enabled or memory.recall == "tool":  # the default
        return []
    why = f"recall: {memory.recall} needs memory_config.long_term_enabled: true; without it nothing is recalled"
    return [DefinitionProblem("/memory_config/recall", why)]


def model_problems(model: ModelConfig, provider: str) -> list[DefinitionProblem]:
    """Return why no model would answer. provider: the deployment's."""
    own = model.provider or provider
    if own == "scripted" and model.script is None:
        return [
            DefinitionProblem(
                "/model",
                f"no model answers for it. CHAT_PROVIDER is {provider}: name a script (model.script), or a provider and a"
                " model (model.provider, model.name), or set CHAT_PROVIDER, in .dev.vars for local use",
            )
        ]
    if own not in ("scripted", provider) and model.name is None:
        return [
            DefinitionProblem(
                "/model/name",
                f"model.name is missing: CHAT_PROVIDER is {provider}, so an agent with the provider {own} must name a model"
                " of it",
            )
        ]
    return []


@dataclass(frozen=True, slots=True)
class TenantModels:
    """The models that tenants' own agents may name: the deployment's, those of the repository's agents, and more.

    provider, name: of the deployment's model. more: as `provider/name`; `*` for every model.
    """

    provider: str
    name: str
    of_repository: Collection[tuple[str | None, str | None]] = ()
    more: Collection[str] = ()

    def problems(self, model: ModelConfig) -> list[DefinitionProblem]:
        """Return why a definition may not have this model, or why it would not answer."""
        found = model_problems(model, self.provider)
        if found or "*" in self.more or model.provider == "scripted":
            return found
        wanted = self._whole(model.provider, model.name)
        allowed = {self._whole(None, None), *(self._whole(*one) for one in self.of_repository)}
        if wanted in allowed or "/".join(wanted) in self.more:
            return []
        names = ", ".join(sorted("/".join(one) for one in allowed if one[0] != "scripted"))
        why = f"{'/'.join(wanted)} is not a model for tenants' own agents: {names}, or what AGENT_MODELS adds"
        return [DefinitionProblem("/model", why)]

    def _whole(self, provider: str | None, name: str | None) -> tuple[str, str]:
        own = provider or self.provider
        return own, (name or self.name) if own == self.provider else name or ""


def read_definition(
    agent_type: str, content: Mapping[str, object], most_bytes: int
) -> AgentDefinition | list[DefinitionProblem]:
    """Return the definition of a tenant's agent, or what does not fit. `type` may be absent, or is the agent's.

    Raises: LimitExceeded (code `agent_too_large`).
    """
    try:
        definition = AgentDefinition.model_validate({"type": agent_type, **content})
    except ValidationError as error:
        return shape_problems(error)
    if definition.type != agent_type:
        return [DefinitionProblem("/type", f"must be {agent_type}, as the path has it, or absent")]
    size = len(definition.model_dump_json().encode("utf-8", "surrogatepass"))
    if size > most_bytes:
        raise LimitExceeded(
            f"a definition has at most {most_bytes} bytes as JSON with every default, and this one {size}",
            code="agent_too_large",
            limit_bytes=most_bytes,
        )
    return definition


def invalid_definition(problems: list[DefinitionProblem]) -> InvalidInput:
    """Return the error for a definition with these problems."""
    return InvalidInput("the definition is not valid", code="invalid_agent", problems=list(map(str, problems)))
