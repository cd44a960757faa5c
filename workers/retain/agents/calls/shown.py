"""What HTTP answers have of runs, conversations and instances: the types of what their `to_json` return.

For the OpenAPI document; the tests hold every answer to it.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from retain.agents.calls.answers import LogEntry, QueuedSummary, RunSummary
from retain.agents.calls.report import BegunCall, EndStatus, FollowedWorkflow, OpenStatus, RunMemory, RunUsage
from retain.json_text import JsonObject
from retain.memory.conversations.reading import Conversation, Message
from retain.memory.conversations.statements import MessageRole
from retain.outbox import OwedEntries


class ListedAgentJson(TypedDict):
    """An agent. delegates: the agents to which it may delegate. version: None for an agent of the repository."""

    agent_type: str
    description: str
    house: str | None
    delegates: list[str]
    source: Literal["repository", "tenant"]
    version: int | None


class AgentsJson(TypedDict):
    """A page of agents, by their types."""

    agents: list[ListedAgentJson]
    cursor: str | None


class ServerReportJson(TypedDict):
    """What a model's server reported of its failure. status: of HTTP."""

    status: NotRequired[int]
    upstream_code: NotRequired[str]
    upstream_message: NotRequired[str]
    retry_after_ms: NotRequired[int]


class AwaitedApprovalJson(TypedDict):
    """The run waits for a person's answer about a call. call: `turn.index`. The call is rejected at `expires_at_ms`."""

    kind: Literal["approval"]
    call: str
    tool: str
    arguments: JsonObject
    expires_at_ms: int


class AwaitedDelegateJson(TypedDict):
    """The run waits for the end of a delegate's run, which itself waits."""

    kind: Literal["delegate"]
    call: str
    run_id: str
    agent_type: str
    instance_id: str


class AwaitedModelJson(ServerReportJson):
    """The run waits for the model's server, and asks it again at `retry_at_ms`."""

    kind: Literal["model"]
    code: str
    message: str
    retry_at_ms: int
    gives_up_at_ms: int


AwaitedJson: TypeAlias = AwaitedApprovalJson | AwaitedDelegateJson | AwaitedModelJson


class RunStandingJson(TypedDict):
    """An open run. cancelling: it stops before its next side effect. queue_position: 1 for the next to begin."""

    run_id: str
    instance_id: str
    status: OpenStatus
    by: NotRequired[str]
    cancelling: NotRequired[bool]
    waiting_for: NotRequired[AwaitedJson]
    queue_position: NotRequired[int]


class RunErrorJson(ServerReportJson):
    """Why a run ended without an answer. by: who cancelled it."""

    code: str
    message: str
    by: NotRequired[str]


class RunResultJson(TypedDict):
    """An ended run. done: the tool calls of a cancelled run."""

    run_id: str
    instance_id: str
    status: EndStatus
    by: NotRequired[str]
    output: str | None
    finish_reason: NotRequired[str]
    steps: int
    usage: RunUsage
    memory: RunMemory
    procedure: NotRequired[FollowedWorkflow]
    error: NotRequired[RunErrorJson]
    done: NotRequired[list[BegunCall]]


RunReportJson: TypeAlias = RunStandingJson | RunResultJson


class PosteriorJson(TypedDict):
    """What an instance believes of a workflow: a Beta distribution of its success."""

    alpha: float
    beta: float


class SummaryLineJson(TypedDict):
    """One line of a conversation's summary."""

    run_id: str
    role: MessageRole
    text: str
    at_ms: int


class SummaryJson(TypedDict):
    """The summary of a conversation. through: the last run that it has."""

    lines: list[SummaryLineJson]
    through: str | None


class ShownConversationJson(TypedDict):
    """A conversation with its summary. status: of its newest run."""

    agent_type: str
    instance_id: str
    user_id: str | None
    title: str | None
    status: str
    runs: int
    created_at_ms: int
    last_run_at_ms: int
    last_run_id: str
    summary: SummaryJson


class InstanceJson(TypedDict):
    """An instance: its newest runs and log entries, its queue, its working keys, and what it believes of its workflows.

    owed: what it has that D1 does not have yet.
    """

    instance_id: str
    turn_state: list[RunSummary]
    queue: list[QueuedSummary]
    run_log: list[LogEntry]
    working: JsonObject
    procedures: dict[str, dict[str, PosteriorJson]]
    owed: OwedEntries
    conversation: ShownConversationJson | None


class ConversationsJson(TypedDict):
    """A page of conversations, that with the newest run first."""

    instances: list[Conversation]
    cursor: str | None


class MessagesJson(TypedDict):
    """A page of the messages of a conversation."""

    messages: list[Message]
    cursor: str | None
