"""The request for a run: what the agent is asked, by which parent, and what the run may spend."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from retain.agents.calls.fields import Fields
from retain.agents.calls.user import User
from retain.json_text import Json, JsonObject
from retain.models.attached import Attached

RunInput: TypeAlias = str | JsonObject
"""What an agent is asked: a text, or an object that its model reads as JSON."""


@dataclass(frozen=True, slots=True)
class PriorMessage:
    """What the application says was said before, where Retain has no conversation of its own.

    files: those that the message brought. One without an id is named to the model, and not read.
    """

    role: Literal["user", "assistant"]
    content: str
    files: tuple[Attached, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the message as it is sent and as the journal keeps it."""
        files: list[Json] = [file.to_json() for file in self.files]
        return {"role": self.role, "content": self.content, **({"files": files} if files else {})}


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may still spend together with its delegates. None: no bound."""

    tokens: int | None = None
    delegations: int | None = None


@dataclass(frozen=True, slots=True)
class RunReference:
    """A run of the same tenant, and the instance that runs it."""

    run_id: str
    agent_type: str
    instance_id: str

    def to_json(self) -> dict[str, Json]:
        """Return the reference as it is sent and logged."""
        return {"run_id": self.run_id, "agent_type": self.agent_type, "instance_id": self.instance_id}

    @classmethod
    def from_json(cls, content: JsonObject) -> RunReference:
        """Return the reference. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(fields.text("run_id"), fields.text("agent_type"), fields.text("instance_id"))


@dataclass(frozen=True, slots=True)
class Fork:
    """What a run begins with: the first turns of another run of its instance. turns: None for all that it achieved."""

    run_id: str
    turns: int | None = None


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request for one run.

    idempotency_key: for a second request with the same key the instance returns the same run. stream: whether the
    answer's text is kept for followers while the model writes it. parent, depth: the run that delegated to this one, and
    how many runs are above this one. budget: what the parent lets it spend. user: for whom the run acts; None for nobody
    in particular. by: the principal that starts the run; None for a request of an earlier version. output_schema: the JSON
    Schema of the object that the answer must be; None for what the definition says. prior: what was said before, oldest
    first, instead of the instance's own conversation; none for that. fork: what the run begins with, None for nothing.
    schedule_id: of the schedule that begins the run. attachments: the files that its input brings.
    """

    input: RunInput
    metadata: JsonObject = field(default_factory=dict)
    idempotency_key: str | None = None
    stream: bool = False
    parent: RunReference | None = None
    depth: int = 0
    budget: Budget = Budget()
    user: User | None = None
    by: str | None = None
    output_schema: JsonObject | None = None
    prior: tuple[PriorMessage, ...] = ()
    fork: Fork | None = None
    schedule_id: str | None = None
    attachments: tuple[Attached, ...] = ()

    @property
    def digest(self) -> str:
        """A hash that differs for another request with the same idempotency key, whoever makes it."""
        asked = [self.input, self.metadata, *([] if self.user is None else [self.user.id])]
        asked += [] if self.output_schema is None else [{"output_schema": self.output_schema}]
        asked += (
            [{"prior": [one.to_json() if one.files else [one.role, one.content] for one in self.prior]}]
            if self.prior
            else []
        )
        asked += [] if self.fork is None else [{"fork": [self.fork.run_id, self.fork.turns]}]
        asked += [{"attachments": [one.id for one in self.attachments]}] if self.attachments else []
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    @property
    def file_ids(self) -> list[str]:
        """The ids of all files that the run may read: its input's, and those of earlier messages that it brought."""
        every = (*self.attachments, *(file for message in self.prior for file in message.files))
        return list(dict.fromkeys(file.id for file in every if file.id))

    def logged(self) -> dict[str, Json]:
        """Return what D1 keeps of what the run is asked."""
        files: list[Json] = [file.to_json() for file in self.attachments]
        return {"input": self.input, "metadata": self.metadata, **({"attachments": files} if files else {})}

    @property
    def user_id(self) -> str | None:
        """The id of the run's user, if it has one."""
        return None if self.user is None else self.user.id

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent and as the journal keeps it."""
        fields: dict[str, Json] = {
            "input": self.input,
            "metadata": self.metadata,
            "idempotency_key": self.idempotency_key,
            "stream": self.stream,
            "depth": self.depth,
            "budget": {"tokens": self.budget.tokens, "delegations": self.budget.delegations},
        }
        parent = self.parent
        if parent is not None:
            fields["parent_run_id"] = parent.run_id
            fields["parent"] = {"agent_type": parent.agent_type, "instance_id": parent.instance_id}
        if self.user is not None:
            fields["user"] = self.user.to_json()
        if self.by is not None:
            fields["by"] = self.by
        if self.output_schema is not None:
            fields["output_schema"] = self.output_schema
        if self.prior:
            fields["prior"] = [one.to_json() for one in self.prior]
        if self.fork is not None:
            fields["fork"] = {"run_id": self.fork.run_id, "turns": self.fork.turns}
        if self.schedule_id is not None:
            fields["schedule_id"] = self.schedule_id
        if self.attachments:
            fields["attachments"] = [one.to_json() for one in self.attachments]
        return fields

    @classmethod
    def from_json(cls, content: JsonObject) -> RunRequest:
        """Return the request from its `to_json` form. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        metadata = fields.object_or_none("metadata")
        budget = fields.object_or_none("budget")
        parent = fields.object_or_none("parent")
        user = fields.object_or_none("user")
        schema = fields.object_or_none("output_schema")
        fork = fields.object_or_none("fork")
        return cls(
            input=fields.text_or_object("input"),
            metadata={} if metadata is None else metadata.content,
            idempotency_key=fields.text_or_none("idempotency_key"),
            stream=fields.flag("stream", default=False),
            parent=None
            if parent is None
            else RunReference(fields.text("parent_run_id"), parent.text("agent_type"), parent.text("instance_id")),
            depth=fields.integer("depth", default=0),
            budget=Budget()
            if budget is None
            else Budget(budget.integer_or_none("tokens"), budget.integer_or_none("delegations")),
            user=None if user is None else User.from_json(user.content),
            by=fields.text_or_none("by"),
            output_schema=None if schema is None else schema.content,
            prior=tuple(map(_prior, fields.objects("prior"))) if "prior" in content else (),
            fork=None if fork is None else Fork(fork.text("run_id"), fork.integer_or_none("turns")),
            schedule_id=fields.text_or_none("schedule_id"),
            attachments=tuple(map(_attached, fields.objects("attachments"))) if "attachments" in content else (),
        )


def _attached(fields: Fields) -> Attached:
    return Attached(
        fields.text("id"), fields.text("name"), fields.text("media_type"), fields.integer("bytes", default=0)
    )


def _prior(fields: Fields) -> PriorMessage:
    files = tuple(map(_attached, fields.objects("files"))) if "files" in fields.content else ()
    return PriorMessage("assistant" if fields.text("role") == "assistant" else "user", fields.text("content"), files)


def input_text(value: RunInput) -> str:
    """Return a run's input as the user's message: text unchanged, an object as JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if isinstance(value, Mapping) else value
