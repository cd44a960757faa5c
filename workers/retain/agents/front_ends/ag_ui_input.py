"""What a client of AG-UI asks for: `RunAgentInput`, and the run or the answer that it means.

Source: https://docs.ag-ui.com/spec/1.0/basic/run-input
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic.alias_generators import to_camel

from retain.agents.calls.asked import AskedRun, UserBody
from retain.agents.calls.requests import AnswerRequest
from retain.agents.front_ends.ag_ui_events import AgUiRun, AnsweredQuestion
from retain.agents.front_ends.messages import ReadMessage, newest_files, newest_question
from retain.agents.front_ends.parts import ContentPart
from retain.errors import InvalidInput
from retain.identifiers import ULID, check_agent_type, check_instance_id
from retain.routing.bodies import BodyModel, problems_of

Model = TypeVar("Model", bound=BaseModel)
MAX_NAME = 240
"""Longest id of a run of AG-UI."""


class _AgUiModel(BaseModel):
    """The base of what the protocol describes: members that a version adds are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, alias_generator=to_camel)


class AgUiMessage(_AgUiModel):
    """A message of the conversation, as the client knows it."""

    id: str = ""
    role: Literal["developer", "system", "assistant", "user", "tool", "activity", "reasoning"]
    content: str | list[ContentPart] | dict[str, JsonValue] | None = None


class AgUiAnswer(_AgUiModel):
    """The answer to what an earlier run asks."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: JsonValue = None


class _Wishes(BodyModel):
    """What `forwardedProps.retain` may hold."""

    user: UserBody | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    output_schema: dict[str, JsonValue] | None = None


class _Approval(BodyModel):
    """What the payload of an answer has to be."""

    approved: bool
    reason: str | None = Field(default=None, max_length=1000)


@dataclass(frozen=True, slots=True)
class AgUiReply:
    """The answer to what a run asks, or a delegate for which it waits.

    run_id, answered: of the run that the stream continues, and of its call. request: for the run that asks, which is that of
    `delegate` (the type of an agent and an instance) if there is one.
    """

    run_id: str
    answered: AnsweredQuestion
    request: AnswerRequest
    delegate: tuple[str, str] | None = None


class AgUiInput(_AgUiModel):
    """The body of a request of AG-UI's HttpAgent. thread_id: the instance. run_id: makes a repeated request the same run."""

    thread_id: str
    run_id: str = Field(min_length=1, max_length=MAX_NAME)
    messages: list[AgUiMessage]
    tools: list[JsonValue] | None = None
    context: list[JsonValue] | None = None
    state: JsonValue = None
    forwarded_props: JsonValue = None
    resume: list[AgUiAnswer] | None = None

    @property
    def run(self) -> AgUiRun:
        """How the client names what it asks for."""
        ignored = [name for name in ("tools", "context", "state") if getattr(self, name)]
        if any(message.role in ("system", "developer") for message in self.messages):
            ignored.append("system")
        return AgUiRun(self.thread_id, self.run_id, tuple(ignored))

    def asked(self) -> AskedRun:
        """Return the run that is asked for: what the user said last. The instance knows what was said before.

        Raises: InvalidInput (code `no_user_message`, `unsupported_content`, `invalid_body`, `invalid_user`).
        """
        wishes = self._wishes()
        messages: list[ReadMessage] = [(message.role, message.content) for message in self.messages]
        return AskedRun(
            newest_question(messages),
            wishes.metadata,
            self.thread_id,
            f"ag-ui:{self.run_id}",
            stream=True,
            user=None if wishes.user is None else wishes.user.to_user(),
            output_schema=wishes.output_schema,
            files=newest_files(messages),
        )

    def answer(self, by: str) -> AgUiReply | None:
        """Return the answer to what a run asks, None for a request without one. by: who sends it.

        Raises: InvalidInput (code `invalid_body`).
        """
        if not self.resume:
            return None
        if len(self.resume) > 1:
            raise InvalidInput("a run asks one question at a time", code="invalid_body", problems=["resume: one entry"])
        given = self.resume[0]
        run_id, call, delegate, asked = _named(given.interrupt_id)
        if given.status == "cancelled":
            request = AnswerRequest(*asked, approved=False, by=by, reason="the question was dismissed")
        else:
            approval = _read(_Approval, given.payload, ("resume", "0", "payload"))
            request = AnswerRequest(*asked, approval.approved, by, approval.reason)
        return AgUiReply(run_id, AnsweredQuestion(call, delegated=delegate is not None), request, delegate)

    def _wishes(self) -> _Wishes:
        props = self.forwarded_props
        wishes = props.get("retain") if isinstance(props, dict) else None
        return _Wishes() if wishes is None else _read(_Wishes, wishes, ("forwardedProps", "retain"))


def _named(interrupt_id: str) -> tuple[str, str, tuple[str, str] | None, tuple[str, str]]:
    """Return the run that a question interrupts, its call, the delegate that asks if one does, and that run and call.

    Raises: InvalidInput (code `invalid_body`).
    """
    parts = interrupt_id.split(":")
    run_id, call, agent_type, instance_id, asker, asked = (*parts, *[""] * 6)[:6]
    if ULID.fullmatch(run_id) is not None and call:
        if len(parts) == 2:
            return run_id, call, None, (run_id, call)
        if len(parts) == 6 and ULID.fullmatch(asker) is not None and asked:
            return run_id, call, (check_agent_type(agent_type), check_instance_id(instance_id)), (asker, asked)
    problems = ["resume.0.interruptId: the id of no question"]
    raise InvalidInput("the body does not fit", code="invalid_body", problems=problems)


def _read(model: type[Model], value: object, place: Sequence[str]) -> Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = [f"{'.'.join(place)}.{problem}" for problem in problems_of(error)]
        raise InvalidInput("the body does not fit", code="invalid_body", problems=problems) from error
