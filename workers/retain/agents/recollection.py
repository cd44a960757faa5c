"""What an agent recalls, within the bounds of its definition: for its context and for `recall_memory`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retain.agents.definitions import MemoryConfig
from retain.memory.recall.excerpt import excerpt
from retain.memory.semantic import Hit, RecallQuery


@dataclass(frozen=True, slots=True)
class Recollection:
    """A found record as the model reads it. shortened: the text is a passage of the record, with marks."""

    hit: Hit
    text: str
    shortened: bool


def query_of(
    config: MemoryConfig, text: str, *, top_k: int | None = None, min_score: float | None = None
) -> RecallQuery:
    """Return the recall that a definition allows: with its filter, and its floor and number unless others are given.

    Raises: InvalidInput.
    """
    return RecallQuery(
        text,
        config.top_k if top_k is None else top_k,
        filter=config.filter,
        min_score=config.min_score if min_score is None else min_score,
    )


def recollected(hits: Sequence[Hit], query: str, config: MemoryConfig, bytes_per_token: float) -> list[Recollection]:
    """Return the records that fit into `recall_tokens` together, in order; each takes at most `record_tokens`.

    A longer one is shortened to the passage that fits the query best. The first that no longer fits ends the list.
    """
    found: list[Recollection] = []
    room = int(config.recall_tokens * bytes_per_token)
    most = min(room, int(config.record_tokens * bytes_per_token))
    for hit in hits:
        text = excerpt(hit.record.content, query, most)
        room -= len(text.encode("utf-8", "replace"))
        if room < 0:
            break
        found.append(Recollection(hit, text, text != hit.record.content))
    return found
