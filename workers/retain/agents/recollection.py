"""What an agent recalls, within the bounds of its definition: for its context and for `recall_memory`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from retain.agents.calls.run_request import RunInput
from retain.agents.definitions import MemoryConfig
from retain.errors import InvalidInput
from retain.json_text import Json, JsonObject
from retain.memory.filters import names_of
from retain.memory.recall.excerpt import excerpt
from retain.memory.recall.query import MAX_CONTEXT_TURNS, MAX_QUERY_BYTES, latest
from retain.memory.semantic import Hit, RecallQuery
from retain.models.chat import ChatMessage

FENCE = '<memory section="'
"""How remembered text begins in a run's messages."""


@dataclass(frozen=True, slots=True)
class Recollection:
    """A found record as the model reads it. shortened: the text is a passage of the record, with marks."""

    hit: Hit
    text: str
    shortened: bool

    @property
    def known(self) -> dict[str, str]:
        """When it was said and by whom, as far as is known: `said_at`, `speaker`; of a fact `since` when it is so."""
        record = self.hit.record
        if record.utterance is None:
            return {"said_at" if record.kind in {"event", "task"} else "since": moment(record.valid_from_ms)}
        at_ms = record.utterance.at_ms
        return {
            **({} if at_ms is None else {"said_at": moment(at_ms)}),
            "speaker": " ".join(record.utterance.speaker.split()),
        }

    @property
    def line(self) -> str:
        """The text as a context has it: "tomorrow" and "I" say little without when it was said, and by whom."""
        return stamped(self.text, self.known)


def moment(at_ms: int) -> str:
    """Return a time as a model reads it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def stamped(text: str, known: Mapping[str, str]) -> str:
    """Return a text with what is known of it in front: to `retain.memory.recall.wording` it says the same."""
    if "since" in known:
        return f"(since {known['since']}) {text}"
    by = f"by {known['speaker']}" if "speaker" in known else ""
    return f"({' '.join(filter(None, ('said', known.get('said_at'), by)))}) {text}"


def query_text(run_input: RunInput) -> str:
    """Return what to recall for an input: its beginning, as long as a query may be; "" for a blank input.

    Of an object these are its names and values, because braces and quotation marks say nothing about it.
    """
    text = run_input if isinstance(run_input, str) else " ".join(_words(run_input))
    encoded = text.strip().encode("utf-8", "replace")
    return encoded[:MAX_QUERY_BYTES].decode("utf-8", "ignore")


def _words(value: Json) -> list[str]:
    """Return the names and values in a JSON value, in order; truth values and null have no words."""
    found: list[str] = []
    rest: list[Json] = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, Mapping):
            rest += [part for name in reversed(list(one)) for part in (one[name], name)]
        elif isinstance(one, Sequence) and not isinstance(one, str):
            rest += one[::-1]
        elif one is not None and not isinstance(one, bool):
            found.append(str(one))
    return found


def conversation_of(messages: Sequence[ChatMessage]) -> str:
    """Return the end of the conversation in a run's first messages: without the instructions and what is remembered."""
    messages_read = [one.content for one in messages if one.role != "system" and not one.content.startswith(FENCE)]
    return latest(messages_read[-MAX_CONTEXT_TURNS:])


def query_of(
    config: MemoryConfig,
    text: str,
    *,
    top_k: int | None = None,
    min_score: float | None = None,
    narrowed: JsonObject | None = None,
    conversation: str = "",
) -> RecallQuery:
    """Return the recall that a definition allows: with its filter, and its floor and number unless others are given.

    conversation: the end of what was said before it.
    narrowed: a filter by names that the definition allows; a record must meet both.
    Raises: InvalidInput (code `invalid_filter` for a name that the definition does not allow).
    """
    if refused := sorted(names_of(narrowed or {}) - set(config.filters)):
        allowed = ", ".join(config.filters) or "no name"
        raise InvalidInput(f"the filter takes {allowed}, not {', '.join(refused)}", code="invalid_filter")
    conditions = [one for one in (config.filter, narrowed) if one]
    return RecallQuery(
        text,
        config.top_k if top_k is None else top_k,
        filter={"$and": conditions} if len(conditions) == 2 else dict(*conditions),
        min_score=config.min_score if min_score is None else min_score,
        context=(conversation,) if conversation else (),
    )


def recollected(hits: Sequence[Hit], query: str, config: MemoryConfig, bytes_per_token: float) -> list[Recollection]:
    """Return the records that fit into `recall_tokens` together, in order; each line takes at most `record_tokens`.

    A longer one is shortened to the passage that fits the query best. The first that no longer fits ends the list.
    """
    found: list[Recollection] = []
    room = int(config.recall_tokens * bytes_per_token)
    most = min(room, int(config.record_tokens * bytes_per_token))
    for hit in hits:
        stamp_bytes = _bytes(Recollection(hit, "", shortened=False).line)
        text = excerpt(hit.record.content, query, most - stamp_bytes)
        one = Recollection(hit, text, text != hit.record.content)
        room -= _bytes(one.line)
        if room < 0:
            break
        found.append(one)
    return found


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
