"""Agent definitions: the contents of a YAML file in `agents/`, validated.

pydantic checks them when they are staged and again when the Worker loads them; their schemas are compiled the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, field_validator, model_validator

from retain.errors import RetainError
from retain.json_schema import compile_object_schema
from retain.memory.episodes import EpisodeSource
from retain.memory.filters import compile_filter
from retain.memory.recall.relevance import MIN_SCORE
from retain.models.attached import FileKind

STAGED: Final[Mapping[str, bool]] = {"staged": True}
"""The context in which definitions are read that were checked before: to compile a schema takes milliseconds."""
BUILT_IN = frozenset(
    {
        "recall_memory",
        "store_memory",
        "learn_fact",
        "forget_memory",
        "get_working_memory",
        "set_working_memory",
        "schedule_wakeup",
        "delegate",
    }
)
"""Names of the runtime's own tools, which no tool of the gateway may have."""
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
# Comments, since a reference page reads the patterns of what has a docstring as markup.
# A list of names: the list may be any sequence, the names are texts.
Names = Annotated[tuple[Name, ...], Field(strict=False)]

Learning = Literal["rules", "model"]
"""How facts are learned from a run."""

Workflow = Annotated[str, Field(min_length=1, max_length=4_000)]
"""A workflow's instructions."""


class _StrictDefinition(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ProfileConfig(_StrictDefinition):
    """How much of what is known of a run's user goes into the context. tokens: estimated, with the section's fence."""

    records: int = Field(default=20, ge=1, le=100)
    tokens: int = Field(default=500, ge=50, le=10_000)


class ConversationConfig(_StrictDefinition):
    """How much of its own conversation a run reads.

    messages, tokens: bounds of the newest messages, which come as messages; none with `messages: 0`. When one is exceeded,
    the older ones go into the summary until half of each is left. summary_tokens: the bound of the summary. attachments:
    how many files of these messages are sent again with their content, the newest; of the others the model reads the name.
    """

    messages: int = Field(default=40, ge=0, le=200)
    tokens: int = Field(default=4_000, ge=200, le=200_000)
    summary_tokens: int = Field(default=600, ge=0, le=10_000)
    attachments: int = Field(default=4, ge=0, le=20)


class MemoryConfig(_StrictDefinition):
    """What an agent remembers and how it recalls.

    long_term_enabled: gives the agent semantic memory. recall: `tool` offers `recall_memory`, `context` recalls before
    the first turn, `both` does both. store: whether `store_memory` is offered. share: whether it may also store
    into the agent's house. facts, forget: whether `learn_fact` and `forget_memory` are offered. episodes: how many past
    turns go into the context. episodes_from: whose they are: those of the same instance, or of every instance of the
    agent in the tenant. user:
    whether what it stores for a user is the agent's alone, or shared. top_k: how many records a recall into the context
    returns. profile: how much of what is known of the run's user goes into the context; None for nothing. learn: how
    facts are learned of the user from their own words after a run; None for not at all.
    min_score: the least relevance of a recalled record, 0 to 1. filter: conditions on kind, subject, metadata and
    the other fields that every recalled record meets, see `retain.memory.filters`. filters: the names by which the model may
    narrow `recall_memory` further; none for no filter of its own. record_tokens: estimated tokens of one recalled record, of
    which a longer one is shortened. recall_tokens: of all records that one recall returns.
    """

    long_term_enabled: bool = False
    recall: Literal["tool", "context", "both"] = "tool"
    store: bool = True
    share: bool = False
    episodes: int = Field(default=10, ge=0, le=50)
    episodes_from: EpisodeSource = "instance"
    user: Literal["agent", "shared"] = "agent"
    conversation: ConversationConfig = ConversationConfig()
    top_k: int = Field(default=5, ge=1, le=20)
    profile: ProfileConfig | None = None
    facts: bool = False
    forget: bool = False
    learn: Learning | None = None
    min_score: float = Field(default=MIN_SCORE, ge=0, le=1)
    filter: dict[str, JsonValue] = Field(default={})
    filters: list[str] = Field(default=[], max_length=16)
    record_tokens: int = Field(default=500, ge=50, le=20_000)
    recall_tokens: int = Field(default=2_000, ge=50, le=100_000)

    @field_validator("filter")
    @classmethod
    def _filter_compiles(cls, wanted: dict[str, JsonValue]) -> dict[str, JsonValue]:
        try:
            compile_filter(wanted)
        except RetainError as error:
            raise ValueError(error.message) from error
        return wanted

    @field_validator("filters")
    @classmethod
    def _names_compile(cls, names: list[str]) -> list[str]:
        try:
            compile_filter(dict.fromkeys(names))
        except RetainError as error:
            raise ValueError(error.message) from error
        return names


class ModelConfig(_StrictDefinition):
    """Which chat model an agent uses. Absent fields take the deployment's.

    name: required for a provider other than the deployment's, except `scripted`.
    script: the script in `agents/scripts/` that answers when the provider is `scripted`.
    accepts: which attachments the agent takes. Every model reads text; whether it takes images and PDFs, its author knows.
    """

    provider: Literal["openai", "anthropic", "workers-ai", "scripted"] | None = None
    name: str | None = None
    script: Name | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_output_tokens: int = Field(default=1024, ge=1, le=32_768)
    accepts: Annotated[tuple[FileKind, ...], Field(strict=False)] = ("text",)

    @model_validator(mode="after")
    def _provider_takes_them(self) -> ModelConfig:
        if self.provider == "workers-ai" and "pdf" in self.accepts:
            raise ValueError("models of Workers AI take no PDF")
        return self


class Limits(_StrictDefinition):
    """The limits of a run.

    max_tool_calls: how many calls of tools one answer of the model may contain.
    context_tokens: estimated tokens of the whole prompt. run_tokens: tokens that the run and all its delegates may read
    and write together, as the models count them; None for no bound. max_delegations: how many runs the run and all its
    delegates may start. approval_hours: after how many hours an unanswered request for approval counts as rejected.
    model_wait_minutes: how long a run waits for a model's server that is down; 0 lets it fail at once. run_minutes: how long
    a run may work, without the time that it waits for a person or a model's server. busy: what happens to a run while its
    instance is busy with another one. max_queued_runs: how many are queued at most. queue_minutes: how long each is.
    """

    max_turns: int = Field(default=8, ge=1, le=50)
    max_tool_calls: int = Field(default=32, ge=1, le=128)
    context_tokens: int = Field(default=16_000, ge=500, le=1_000_000)
    run_tokens: int | None = Field(default=None, ge=1)
    max_delegations: int = Field(default=20, ge=0, le=1_000)
    approval_hours: float = Field(default=24, gt=0, le=24 * 30)
    model_wait_minutes: float = Field(default=30, ge=0, le=24 * 60)
    run_minutes: float = Field(default=60, gt=0, le=24 * 60)
    busy: Literal["refuse", "queue"] = "refuse"
    max_queued_runs: int = Field(default=16, ge=1, le=100)
    queue_minutes: float = Field(default=60, gt=0, le=24 * 60)


# A tool's name on its server, where a dot may stand.
ServedName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,60}$")]
MAX_SERVED_NAME = 64
"""Longest name of a tool that every provider of models takes, with its server's.

Source: https://platform.openai.com/docs/api-reference/chat/create
"""


def served_name(server: str, tool: str) -> str:
    """Return the name by which the model calls a tool of an MCP server. Providers take no dots in names."""
    return f"{server}__{tool.replace('.', '_')}"


class McpServerConfig(_StrictDefinition):
    """Which tools of an MCP server an agent has.

    tools: their names on the server; the agent has no others. approval: those that a person approves before each call.
    idempotent: those of which a call may be repeated; by default those that the server declares read-only or idempotent.
    """

    tools: Annotated[tuple[ServedName, ...], Field(strict=False, min_length=1, max_length=64)]
    approval: Annotated[tuple[ServedName, ...], Field(strict=False)] = ()
    idempotent: Annotated[tuple[ServedName, ...], Field(strict=False)] | None = None

    @model_validator(mode="after")
    def _tools_are_named(self) -> McpServerConfig:
        unknown = sorted({*self.approval, *(self.idempotent or ())} - set(self.tools))
        if unknown:
            raise ValueError(f"approval and idempotent name what is not in tools: {', '.join(unknown)}")
        return self


# A decision, as an answer's first word.
Label = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]


class DecisionConfig(_StrictDefinition):
    """The decisions that an agent's answers declare, each of which is logged with what it rests on.

    labels: what an answer may begin with, or name as `decision` if it is a JSON object. policy: the version of the policy
    that the instructions follow; write another one when the policy changes.
    """

    labels: Annotated[tuple[Label, ...], Field(strict=False, min_length=1, max_length=50)]
    policy: str | None = Field(default=None, min_length=1, max_length=100)

    @field_validator("labels")
    @classmethod
    def _labels_differ(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        if len({label.casefold() for label in labels}) < len(labels):
            raise ValueError("labels must differ in more than case")
        return labels


class AgentDefinition(_StrictDefinition):
    """One agent.

    house: the group of agents whose shared memories it sees. tools: names of gateway tools of the tenant. mcp_servers: by
    the name of a gateway tool of the tenant that is an MCP server, which of its tools the agent has. functions: names of
    function tools in `agents/tools/`. delegates: agents it may delegate to. approval: those of its tools that a person
    approves before each call. working_memory: offers the tools `get_working_memory` and `set_working_memory`. wakeups:
    offers `schedule_wakeup`. procedures: by task type, workflows by id with their instructions, of which each run follows
    one; the first task type is that of runs that name none. decisions: what its answers decide, for the decision log.
    output_schema: the JSON Schema of the object that each answer must be, unless a run brings its own.
    """

    type: Name
    house: Name | None = None
    description: str = Field(min_length=1, max_length=500)
    instructions: str = Field(min_length=1, max_length=20_000)
    model: ModelConfig = ModelConfig()
    tools: Names = ()
    mcp_servers: dict[Name, McpServerConfig] = Field(default={}, max_length=8)
    functions: Names = ()
    approval: Names = ()
    delegates: Names = ()
    working_memory: bool = False
    wakeups: bool = False
    memory_config: MemoryConfig = MemoryConfig()
    procedures: dict[Name, Annotated[dict[Name, Workflow], Field(min_length=1, max_length=20)]] = Field(
        default={}, max_length=20
    )
    decisions: DecisionConfig | None = None
    output_schema: dict[str, JsonValue] | None = None
    limits: Limits = Limits()

    @field_validator("output_schema")
    @classmethod
    def _schema_compiles(cls, schema: dict[str, JsonValue] | None, info: ValidationInfo) -> dict[str, JsonValue] | None:
        if schema is not None and info.context is not STAGED:
            compile_object_schema(schema)
        return schema

    @model_validator(mode="after")
    def _parts_agree(self) -> AgentDefinition:
        named = (*self.tools, *self.functions)
        if len(set(named)) < len(named) or len(set(self.delegates)) < len(self.delegates):
            raise ValueError("tools, functions and delegates must each be named once")
        if self.type in self.delegates:
            raise ValueError("an agent cannot delegate to itself")
        memory = self.memory_config
        if memory.share and not (self.house and memory.long_term_enabled and memory.store):
            raise ValueError("share needs a house, long_term_enabled and store")
        for name, wanted in (("profile", memory.profile), ("facts", memory.facts), ("learn", memory.learn)):
            if wanted and not memory.long_term_enabled:
                raise ValueError(f"{name} needs long_term_enabled")
        if memory.forget and not (memory.long_term_enabled and memory.recall != "context"):
            raise ValueError("forget needs long_term_enabled, and recall by the tool, which answers the ids")
        workflows = [name for workflows in self.procedures.values() for name in workflows]
        if len(set(workflows)) < len(workflows):
            raise ValueError("a workflow's id must be used once, in one task type")
        served = [served_name(server, tool) for server, config in self.mcp_servers.items() for tool in config.tools]
        if len({*served, *named}) < len(served) + len(named) or max(map(len, served), default=0) > MAX_SERVED_NAME:
            raise ValueError(
                f"names of tools with their server's must differ, and have {MAX_SERVED_NAME} characters at most"
            )
        taken = BUILT_IN & {*named, *served}
        if taken:
            raise ValueError(f"these tools are the runtime's own: {', '.join(sorted(taken))}")
        unknown = sorted(set(self.approval) - BUILT_IN - set(named))
        if unknown:
            raise ValueError(f"approval names what is not a tool of this agent: {', '.join(unknown)}")
        return self
