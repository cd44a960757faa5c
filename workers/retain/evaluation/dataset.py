"""Datasets: what is evaluated, on which cases, and which scores it must reach. Validated when one is put."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any

from pydantic import Field, JsonValue, field_validator, model_validator

from retain.agents.calls.user import User
from retain.dataclass_models import with_fields_of
from retain.errors import InvalidInput
from retain.evaluation.expectations import Expected, Id, Metric, Name, Share, Strict, check_patterns
from retain.memory.records.record import NewRecord

MAX_CASES = 200
DATASET_NAME = re.compile(r"[a-z0-9_-]{1,64}")
MAX_MEMORIES = 100
"""Fixture memories of one case."""


@with_fields_of(User)
class CaseUser(Strict):
    """The user for whom the runs of a case act. The fields are those of `User`."""

    def to_user(self) -> User:
        """Return the user. Raises: InvalidInput (code `invalid_user`)."""
        return User(**self.model_dump())

    @model_validator(mode="after")
    def _is_valid(self) -> CaseUser:
        try:
            self.to_user()
        except InvalidInput as error:
            raise ValueError(error.message) from error
        return self


class EarlierConversation(Strict):
    """A conversation that ended before the case began: in an instance of its own, with a user or with nobody."""

    user: CaseUser | None = None
    inputs: Annotated[tuple[str | dict[str, JsonValue], ...], Field(strict=False, min_length=1, max_length=10)]


@with_fields_of(NewRecord, omit=("utterance",))
class Fixture(Strict):
    """A memory that is stored before its case begins.

    It belongs to the dataset's agent, or to the scope of its recall, unless it names another agent or a house, or is
    `tenant_wide`. user_id: it belongs to this user of the agent. The other fields are those of `NewRecord`.
    """

    id: Id
    user_id: str | None = Field(default=None, min_length=1, max_length=128)
    agent_type: Name | None = None
    house: Name | None = None
    tenant_wide: bool = False

    @model_validator(mode="after")
    def _one_scope(self) -> Fixture:
        if (self.agent_type is not None) + (self.house is not None) + self.tenant_wide > 1:
            raise ValueError("a memory belongs to an agent, to a house, or is tenant_wide")
        if self.user_id is not None and (self.house is not None or self.tenant_wide):
            raise ValueError("a memory of a user belongs to an agent")
        return self

    def record(self) -> NewRecord:
        """Return the record to store. Raises: InvalidInput; LimitExceeded."""
        return NewRecord(**self.model_dump(exclude={"id", "user_id", "agent_type", "house", "tenant_wide"}))


class StubAnswer(Strict):
    """One answer of a stubbed tool: to calls that have at least the arguments of `when`, or to all calls without it.

    answer: a text, or a value that is sent as JSON. error: a failure that the model reads instead of an answer.
    """

    when: dict[str, JsonValue] | None = None
    answer: Any = None
    error: Annotated[str, Field(min_length=1, max_length=1000)] | None = None

    @model_validator(mode="after")
    def _answer_or_error(self) -> StubAnswer:
        if (self.error is not None) == ("answer" in self.model_fields_set):
            raise ValueError("a stub gives an answer or an error")
        check_patterns(self.when)
        return self


def _any_arguments() -> dict[str, JsonValue]:
    return {"type": "object"}


class Stub(Strict):
    """A stubbed tool of the gateway: what the model reads of it, and its answers; the first that fits is returned."""

    description: str = Field(default="", max_length=1000)
    parameters: dict[str, JsonValue] = Field(default_factory=_any_arguments)
    answers: Annotated[tuple[StubAnswer, ...], Field(strict=False, min_length=1, max_length=50)]


class Case(Strict):
    """One case.

    user: for whom its runs act. conversations: those that the agent had before, in order. earlier: inputs to the same
    instance, run in order before the input that is scored.
    """

    id: Id
    input: str | dict[str, JsonValue]
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    user: CaseUser | None = None
    conversations: Annotated[tuple[EarlierConversation, ...], Field(strict=False, max_length=10)] = ()
    earlier: Annotated[tuple[str | dict[str, JsonValue], ...], Field(strict=False, max_length=10)] = ()
    memories: Annotated[tuple[Fixture, ...], Field(strict=False, max_length=MAX_MEMORIES)] = ()
    tools: dict[Name, Stub] = Field(default_factory=dict)
    expected: Expected

    @model_validator(mode="after")
    def _memories_differ(self) -> Case:
        ids = [memory.id for memory in self.memories]
        if len(set(ids)) < len(ids):
            raise ValueError("two memories of a case have the same id")
        distinguishing = {"content", "user_id", "agent_type", "house", "tenant_wide"}
        known = [tuple(memory.model_dump(include=distinguishing).values()) for memory in self.memories]
        if len(set(known)) < len(known):
            raise ValueError("two memories of a case are the same")
        wanted = self.expected.memories
        unknown = sorted(set(wanted.grades) - set(ids)) if wanted else []
        if unknown:
            raise ValueError(f"no memory of the case has the id {unknown[0]}")
        return self


class RecallTarget(Strict):
    """Recall as an agent or a house would; over the whole tenant when neither is given."""

    agent_type: Name | None = None
    house: Name | None = None
    top_k: int = Field(default=5, ge=1, le=50)
    filter: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_scope(self) -> RecallTarget:
        if self.agent_type is not None and self.house is not None:
            raise ValueError("name an agent or a house, not both")
        return self


class Target(Strict):
    """What is evaluated: an agent, or recall."""

    agent: Name | None = None
    recall: RecallTarget | None = None

    @model_validator(mode="after")
    def _agent_or_recall(self) -> Target:
        if (self.agent is None) == (self.recall is None):
            raise ValueError("a dataset evaluates an agent or recall")
        return self


class Definition(Strict):
    """A dataset without its cases. thresholds: what the averages of a run must reach."""

    description: str = Field(default="", max_length=2000)
    target: Target
    thresholds: dict[Metric, Share] = Field(default_factory=dict)


class Dataset(Definition):
    """A dataset with its cases."""

    cases: Annotated[tuple[Case, ...], Field(strict=False, min_length=1, max_length=MAX_CASES)]

    @field_validator("cases")
    @classmethod
    def _ids_differ(cls, cases: tuple[Case, ...]) -> tuple[Case, ...]:
        ids = [case.id for case in cases]
        if len(set(ids)) < len(ids):
            raise ValueError("two cases have the same id")
        return cases

    @model_validator(mode="after")
    def _cases_fit_the_target(self) -> Dataset:
        scored = {"pass_rate"}.union(*(case.expected.metrics for case in self.cases))
        idle = sorted(set(self.thresholds) - scored)
        if idle:
            raise ValueError(f"no case is scored by {idle[0]}, which has a threshold")
        if self.target.recall is not None:
            for case in self.cases:
                if (
                    not isinstance(case.input, str)
                    or case.earlier
                    or case.conversations
                    or case.user
                    or case.tools
                    or case.expected.calls
                ):
                    raise ValueError(f"case {case.id}: recall takes a text and calls no tools")
                wanted = case.expected.memories
                if wanted is not None and wanted.k > self.target.recall.top_k:
                    raise ValueError(f"case {case.id}: k is more than the top_k that recall returns")
        return self

    def check_memories(self) -> None:
        """Check the fixture memories of the cases. Raises: InvalidInput; LimitExceeded."""
        for case in self.cases:
            for memory in case.memories:
                memory.record()

    def definition(self) -> str:
        """Return the dataset without its cases, as stored."""
        return _text(self._shared())

    def content(self) -> list[str]:
        """Return the cases as stored: models read the fields of an input in the order in which they were written."""
        return [stored(case) for case in self.cases]

    @property
    def version(self) -> str:
        """The SHA-256 of the content; the spelling and the order of fields do not change it."""
        parts = [_text(part, sort_keys=True) for part in (self._shared(), *map(_fields, self.cases))]
        return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def _shared(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, exclude={"cases"}, exclude_unset=True)


def stored(part: Strict) -> str:
    """Return a part of a dataset as stored."""
    return _text(_fields(part))


def _fields(part: Strict) -> dict[str, Any]:
    return part.model_dump(mode="json", by_alias=True, exclude_unset=True)


def check_dataset_name(value: str) -> str:
    """Return the name of a dataset, or raise InvalidInput (code `invalid_dataset_name`)."""
    if DATASET_NAME.fullmatch(value) is None:
        raise InvalidInput("a dataset's name has 1 to 64 of a-z, 0-9, '_' and '-'", code="invalid_dataset_name")
    return value


def _text(value: object, *, sort_keys: bool = False) -> str:
    return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=True)
