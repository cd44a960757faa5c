"""The port of fact extraction: messages in, facts out, and how their parts are named."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from retain.memory.records.limits import MAX_PART_BYTES
from retain.memory.records.record import Kind

MAX_KEY_CHARACTERS = 80
"""Length of what is said about, as part of a predicate."""

FUNCTIONAL = frozenset(
    {
        "name", "preferred_name", "pronouns", "age", "birthday", "birth_year", "born_in", "comes_from", "lives_in",
        "address", "email", "work_email", "phone", "work_phone", "works_at", "works_as", "job_title", "marital_status",
        "diet", "anniversary",
    }
)  # fmt: skip
"""Predicates that hold of one thing at a time, so that a newer fact closes the older one."""

_NOT_IN_KEYS = re.compile(r"[^\w]+")
_MACHINES = frozenset(
    {"assistant", "ai", "bot", "chatbot", "system", "tool", "function", "agent", "model", "developer"}
)


@dataclass(frozen=True, slots=True)
class Said:
    """A message that facts are drawn from. id: of the record that holds it. at_ms: when it was said, if known."""

    id: str
    speaker: str
    content: str
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A fact in parts, and as a sentence that stands by itself.

    confidence: in [0, 1), set by rule. message: the id of the message that it was drawn from.
    """

    subject: str
    predicate: str
    object: str
    content: str
    kind: Kind
    confidence: float
    message: str

    def to_json(self) -> dict[str, str | float]:
        """Return the fact as it is kept until it is stored: the keywords of the constructor."""
        return asdict(self)


class Extractor(Protocol):
    """Draws facts from messages."""

    @property
    def batch(self) -> int:
        """How many messages one call takes."""
        ...

    async def extract(self, messages: Sequence[Said]) -> list[ExtractedFact]:
        """Return the facts that the messages state, in the order of the messages. Has no side effect.

        No fact is an answer; a failure is an error.
        Raises: Unavailable when retrying may help; UpstreamFailed when the answer of a model is not one; Misconfigured.
        """
        ...


def subject_of(speaker: str) -> str:
    """Return the subject of what a speaker says of themselves: `speaker:` and the name, normalised."""
    return _bounded("speaker:", speaker)


def entity(name: str) -> str:
    """Return the subject for something that is not the speaker: `entity:` and its name, normalised."""
    return _bounded("entity:", name)


def predicate_of(name: str, said_object: str, *, functional: bool | None = None) -> str:
    """Return the predicate under which a fact is stored.

    What holds of one thing at a time keeps its name, so that a newer fact closes the older one; anything else also
    names its object, as `likes:green_tea`, so that no two of them meet. functional: None asks `FUNCTIONAL`.
    """
    alone = name in FUNCTIONAL if functional is None else functional
    return name if alone else f"{name}:{key_of(said_object)}"


def key_of(text: str) -> str:
    """Return a text as part of a predicate: folded words joined by `_`; long ones end with a digest instead."""
    key = _NOT_IN_KEYS.sub("_", unicodedata.normalize("NFKC", text).casefold()).strip("_") or "_"
    if len(key) <= MAX_KEY_CHARACTERS:
        return key
    return f"{key[: MAX_KEY_CHARACTERS - 13]}_{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def is_machine(speaker: str) -> bool:
    """Tell whether a speaker's name says that it is no person: what it says of itself is no fact."""
    return speaker.strip().casefold() in _MACHINES


def _bounded(prefix: str, name: str) -> str:
    text = prefix + (_NOT_IN_KEYS.sub("_", unicodedata.normalize("NFKC", name).casefold()).strip("_") or "_")
    if len(text.encode()) <= MAX_PART_BYTES:
        return text
    return f"{text[:100]}_{hashlib.sha256(name.encode()).hexdigest()[:32]}"
