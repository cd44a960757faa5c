"""A run as the journal holds it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from retain.agents.calls.report import FollowedWorkflow
from retain.agents.calls.run_request import RunRequest
from retain.agents.calls.user import User
from retain.agents.runs.events import RunEvent
from retain.agents.runs.run_state import RunState, apply
from retain.json_text import Json, read_own_json
from retain.models.attached import attached_in
from retain.models.chat import ChatMessage, ToolCall, message_with


@dataclass(frozen=True, slots=True)
class Basis:
    """What the decisions of a run rest on, as it was when the run began. Ids and versions, no text.

    agent_version: a digest of the agent's definition. policy: the version of the policy, as the definition names it.
    labels: the decisions that the run's answer may declare. procedure_version: a digest of the workflow's instructions.
    records, profile, episodes: ids of what was in the context.
    """

    at_ms: int
    model: str
    agent_version: str
    policy: str | None = None
    labels: tuple[str, ...] = ()
    procedure_version: str | None = None
    records: tuple[str, ...] = ()
    profile: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionReference:
    """The version of a tenant's own agent with which a run began. digest: of its definition."""

    version: int
    digest: str

    def to_json(self) -> dict[str, Json]:
        """Return the reference as runs store it."""
        return {"version": self.version, "digest": self.digest}


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run: its request, what the model reads first, and the fold of its events up to `seq`.

    episodes_used, records_used, messages_used: how many of them are in `messages`; the last are the conversation's own.
    procedure: the workflow that the run follows. remembered: whether `messages` have records or other conversations' turns.
    basis: what its decisions rest on, None for a run that an earlier version began. agent: the version of its agent, None
    for one of the repository, which has no versions. known: the run's user with what the tenant knows of them, None for what
    the request says.
    """

    run_id: str
    request: RunRequest
    messages: tuple[ChatMessage, ...]
    episodes_used: int
    records_used: int
    procedure: FollowedWorkflow | None = None
    messages_used: int = 0
    remembered: bool = False
    basis: Basis | None = None
    agent: VersionReference | None = None
    known: User | None = None
    state: RunState = field(default_factory=RunState)
    seq: int = 0

    @property
    def user(self) -> User | None:
        """For whom the run acts, as its model and its tools know them."""
        return self.known or self.request.user

    def after(self, event: RunEvent) -> OpenRun:
        """Return the run after the next event of its log."""
        return replace(self, state=apply(self.state, event), seq=self.seq + 1)

    def stored_context(self) -> str:
        """Return what the model reads first as the journal stores it."""
        agent = {} if self.agent is None else {"agent": self.agent.to_json()}
        user = {} if self.known is None or self.known == self.request.user else {"user": self.known.to_json()}
        return json.dumps(
            {
                "messages": [asdict(message) for message in self.messages],
                "episodes_used": self.episodes_used,
                "records_used": self.records_used,
                "procedure": None if self.procedure is None else self.procedure.to_json(),
                "messages_used": self.messages_used,
                "remembered": self.remembered,
                "basis": None if self.basis is None else asdict(self.basis),
                **agent,
                **user,
            }
        )

    @property
    def recalled(self) -> bool:
        """Whether remembered text was in the run's context, so that its answer may repeat it."""
        results = (result for turn in self.state.turns for result in turn.results)
        return self.remembered or any(result.summary is not None for result in results)

    @classmethod
    def stored(cls, run_id: str, request: str, context: str) -> OpenRun:
        """Return the run with this stored request and context, before its first event."""
        first = read_own_json(context)
        basis = first.get("basis")  # runs of earlier versions have none
        agent, user = first.get("agent"), first.get("user")
        return cls(
            run_id,
            RunRequest.from_json(read_own_json(request)),
            tuple(map(_message, first["messages"])),
            first["episodes_used"],
            first["records_used"],
            None if first["procedure"] is None else FollowedWorkflow.from_json(first["procedure"]),
            first.get("messages_used", 0),
            first.get("remembered", True),
            None if basis is None else Basis(**{name: _frozen(value) for name, value in basis.items()}),
            None if agent is None else VersionReference(agent["version"], agent["digest"]),
            None if user is None else User.from_json(user),
        )


def _message(stored: dict[str, Any]) -> ChatMessage:
    calls = tuple(ToolCall(**call) for call in stored["tool_calls"])
    message = ChatMessage(stored["role"], stored["content"], calls, stored["tool_call_id"])
    files = attached_in(stored.get("attachments"))
    return message_with(message.role, message.content, files) if files else message


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
