"""The bodies of requests about memories."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from retain.dataclass_models import with_fields_of
from retain.memory.records.limits import END_OF_NUMBERS
from retain.memory.records.record import EditableFields, NewRecord
from retain.routing.bodies import BodyModel


@with_fields_of(NewRecord, omit=("utterance",))
class MemoryBody(BodyModel):
    """One memory to store."""

    def to_record(self) -> NewRecord:
        """Return the record to store. Raises: InvalidInput; LimitExceeded."""
        return NewRecord(**self.model_dump(include=set(MemoryBody.model_fields)))


class SeedBody(BodyModel):
    """Memories of one agent."""

    tenant: str
    agent_type: str
    memories: list[MemoryBody] = Field(min_length=1, max_length=100)


class StoreBody(MemoryBody):
    """One memory and its owner; without agent, house or user it belongs to the whole tenant."""

    agent_type: str | None = None
    house: str | None = None
    user_id: str | None = None


@with_fields_of(EditableFields, presence="optional")
class EditBody(BaseModel):
    """The changed fields of one memory. A field that cannot be edited is accepted here and refused by name later."""

    model_config = ConfigDict(extra="allow", strict=True)

    valid_to_ms: int | None = Field(default=None, ge=0, lt=END_OF_NUMBERS)


class TurnBody(BodyModel):
    """A turn of a conversation, as models have it. role: is not read."""

    role: str
    content: str


def texts_of(turns: Sequence[str | TurnBody]) -> list[str]:
    """Return the texts of turns."""
    return [turn if isinstance(turn, str) else turn.content for turn in turns]


class RecallBody(BodyModel):
    """What to recall. Without agent, house and user, every memory of the tenant is searched.

    min_score: leave out what is less relevant, 0 to 1. as_of_ms: what was known then. valid_at_ms: what was or will be valid
    then, as far as is known now or was known at `as_of_ms`. context: the last turns of the conversation before the query,
    oldest first. explain: with the parts of each score, and what found it. runners_up: how many of the best candidates after
    those are shown too, 0 to 20.
    """

    query: str
    top_k: int = 5
    min_score: float = 0.0
    agent_type: str | None = None
    house: str | None = None
    user_id: str | None = None
    as_of_ms: int | None = None
    valid_at_ms: int | None = None
    filter: dict[str, JsonValue] = Field(default_factory=dict)
    context: list[str | TurnBody] = Field(default_factory=list)
    explain: bool = False
    runners_up: int = 0
