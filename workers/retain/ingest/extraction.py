"""The port of fact extraction, from messages to facts, and the names of subjects and predicates."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from retain.ingest.speech.speakers import Role, is_machine
from retain.memory.records.limits import MAX_PART_BYTES
from retain.memory.records.object_keys import key_of, key_words
from retain.memory.records.record import Kind

FUNCTIONAL = frozenset(
    {
        "name", "preferred_name", "pronouns", "age", "birthday", "birth_year", "born_in", "comes_from", "lives_in",
        "address", "email", "work_email", "phone", "work_phone", "works_at", "works_as", "job_title", "marital_status",
        "diet", "anniversary", "smokes",
    }
)  # fmt: skip
"""Predicates that have one object at a time, so that a newer fact closes the older one."""

ENDED = "no_longer:"
"""Begins the predicate of a fact that has ended, as in `no_longer:lives_in:paris`."""
DENIED = "not:"
"""Begins the predicate of what somebody denied: it is not stored, and closes the fact that was valid."""


_VITAL = frozenset({"name", "preferred_name", "pronouns"})
_VITAL_WORDS = frozenset(
    {"allergic", "allergy", "allergies", "condition", "diagnosed", "diet", "disability", "medication", "takes"}
)
"""Words of relations that somebody is harmed by forgetting."""


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A message from which facts are extracted.

    id: of its record. at_ms: when it was uttered, if known. role: the speaker's, if known (`retain.ingest.speech.speakers`).
    """

    id: str
    speaker: str
    content: str
    at_ms: int | None = None
    role: Role | None = None

    @property
    def by_machine(self) -> bool:
        """Whether the speaker is not a person."""
        return is_machine(self.speaker, self.role)


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A fact in parts, and as a sentence that is complete without its context.

    confidence: in [0, 1), set by rule. message: the id of the message from which it was extracted.
    """

    subject: str
    predicate: str
    object: str
    content: str
    kind: Kind
    confidence: float
    message: str

    @property
    def importance(self) -> float:
        """How much it matters where not all that is known has room, in [0, 1]; 0.5 is what any record has.

        What harms when it is forgotten, and instructions, before who somebody is, before tastes, before what passes.
        """
        name = self.predicate.partition(":")[0]
        if self.kind in {"event", "task"} or self.predicate.startswith((ENDED, DENIED)):
            return 0.4
        if self.kind == "instruction" or name in _VITAL or _VITAL_WORDS.intersection(name.split("_")):
            return 0.8
        return 0.6 if name in FUNCTIONAL or name.startswith("has_") or name in {"has", "is", "speaks"} else 0.5

    @property
    def is_stored(self) -> bool:
        """Whether it becomes a record: what was denied only closes one."""
        return not self.predicate.startswith(DENIED)

    def to_json(self) -> dict[str, str | float]:
        """Return the constructor's keywords, as which the fact is kept until it is stored."""
        return asdict(self)


class Extractor(Protocol):
    """Extracts facts from messages."""

    @property
    def batch(self) -> int:
        """The most messages that one call takes."""
        ...

    @property
    def local(self) -> bool:
        """Whether it only computes, without a model: then facts are stored together with their messages."""
        ...

    async def extract(self, messages: Sequence[SourceMessage]) -> list[ExtractedFact]:
        """Return the facts that the messages state, in the order of the messages. Has no side effect.

        An empty list means that there are no facts; a failure raises.
        Raises: Unavailable when retrying may help; UpstreamFailed when a model's answer is invalid; Misconfigured.
        """
        ...


def subject_of(speaker: str) -> str:
    """Return the subject of a speaker's facts about themselves: `speaker:` and the name, normalised."""
    return _bounded("speaker:", speaker)


def entity(name: str) -> str:
    """Return the subject for something that is not the speaker: `entity:` and its name, normalised."""
    return _bounded("entity:", name)


def predicate_of(name: str, object_text: str, *, functional: bool | None = None) -> str:
    """Return the predicate under which a fact is stored.

    A predicate that has one object at a time keeps its name, so that a newer fact closes the older one; any other also
    names its object, as in `likes:green_tea`, so that no fact closes another. functional: whether it has one object at a
    time; None looks it up in `FUNCTIONAL`.
    """
    alone = name in FUNCTIONAL if functional is None else functional
    return name if alone else f"{name}:{key_of(object_text)}"


def ending_of(prefix: str, name: str, object_text: str) -> str:
    """Return the predicate of an ended or denied fact. prefix: `ENDED` or `DENIED`. name: the relation alone."""
    return f"{prefix}{name}:{key_of(object_text)}"


def is_functional(name: str) -> bool:
    """Return whether a relation has one object at a time."""
    return name in FUNCTIONAL or name.startswith(("favorite_", "birthday_of_"))


def _bounded(prefix: str, name: str) -> str:
    text = prefix + key_words(name)
    if len(text.encode()) <= MAX_PART_BYTES:
        return text
    return f"{text[:100]}_{hashlib.sha256(name.encode()).hexdigest()[:32]}"
