"""Where incoming messages belong in a conversation that may hold some of them already.

A message with an id is the one with that id. Without ids, a request is taken for a window on the conversation: the place
is sought where it lies without contradicting what is there (a repeated request, an overlapping window, a longer one,
an earlier one). Where no such place exists, runs of messages that cannot be equal by chance are found again. What is
left is new. When in doubt a message counts as known: then its words are remembered already.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

TELLING_RUN = 3
"""So many equal messages in a row are no coincidence …"""
TELLING_LENGTH = 24
"""… nor is one of so many characters."""


class Placeable(Protocol):
    """An incoming message, as far as its place depends on it."""

    @property
    def id(self) -> str | None:
        """The sender's id of it."""
        ...

    @property
    def key(self) -> str:
        """What makes two messages equal."""
        ...

    @property
    def at_ms(self) -> int | None:
        """When it was said."""
        ...

    @property
    def length(self) -> int:
        """Characters of its content."""
        ...


@dataclass(frozen=True, slots=True)
class PlacedMessage:
    """A message that has its place. key: "" for one that was erased, which may have been any."""

    position: int
    id: str | None
    key: str
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class MessagePlacement:
    """What becomes of incoming messages, by their order.

    known: order to the position of the message that it is. new: order to the position that it gets. changed: orders of
    messages whose ids are known with other words.
    """

    known: Mapping[int, int]
    new: Mapping[int, int]
    changed: frozenset[int]


def place(
    incoming: Sequence[Placeable], known: Iterable[PlacedMessage], span: tuple[int, int] | None
) -> MessagePlacement:
    """Return the place of each incoming message.

    known: at least every message of the conversation that could be one of the incoming ones. span: the first and last
    position of the conversation, None when it is empty. New messages go behind the last one, or before the first when
    they lead up to it.
    """
    rows = list(known)
    found, changed, repeated = _by_id(incoming, rows)
    low, high = span if span is not None else (0, -1)
    offset = _align(incoming, rows, span, found, changed) if span is not None else None
    settled = found.keys() | changed.keys() | repeated.keys()
    new: dict[int, int] = {}
    for order in reversed(range(0 if offset is None else low - offset)):
        if order not in settled:
            low -= 1
            new[order] = low
    for order in range(len(incoming)):
        if order not in settled and order not in new:
            high += 1
            new[order] = high
    for order, first in repeated.items():
        found[order] = new[first] if first in new else found[first]
    return MessagePlacement(found, new, frozenset(changed))


def _by_id(
    incoming: Sequence[Placeable], rows: Sequence[PlacedMessage]
) -> tuple[dict[int, int], dict[int, int | None], dict[int, int]]:
    """Find messages by their ids.

    Returns the positions of those found; of those with other words, None for one that follows in the same request; and
    for repetitions within the request the order of the first.
    """
    ids = {row.id: row for row in rows if row.id is not None}
    found: dict[int, int] = {}
    changed: dict[int, int | None] = {}
    repeated: dict[int, int] = {}
    seen: dict[str, int] = {}
    for order, message in enumerate(incoming):
        if message.id is None:
            continue
        row = ids.get(message.id)
        if row is not None and row.key == message.key:
            found[order] = row.position
        elif row is not None:
            changed[order] = row.position
        elif message.id not in seen:
            seen[message.id] = order
        elif incoming[seen[message.id]].key == message.key:
            repeated[order] = seen[message.id]
        else:
            changed[order] = None
    return found, changed, repeated


def _align(
    incoming: Sequence[Placeable],
    rows: Sequence[PlacedMessage],
    span: tuple[int, int],
    found: dict[int, int],
    changed: Mapping[int, int | None],
) -> int | None:
    """Add to `found` what is equal by its place; return where the window lies, None when it is not one window."""
    by_key: dict[str, list[PlacedMessage]] = defaultdict(list)
    for row in rows:
        by_key[row.key].append(row)
    erased = {row.position for row in by_key.pop("", [])}
    certain = {*found.items(), *[(order, at) for order, at in changed.items() if at is not None]}
    pairs = certain | {
        (order, row.position)
        for order, message in enumerate(incoming)
        if order not in found and order not in changed
        for row in by_key.get(message.key, [])
        if (message.id is None or row.id is None) and _same_time(message.at_ms, row.at_ms)
    }
    offset = _offset(pairs, erased, span, len(incoming))
    if offset is not None:
        low, high = span
        for order in range(max(0, low - offset), min(len(incoming), high - offset + 1)):
            if order not in changed:
                found.setdefault(order, order + offset)
    dated = {row.position for row in rows if row.at_ms is not None}
    for run in _runs(pairs - certain):
        taken = set(found.values())
        fresh = [(order, at) for order, at in run if order not in found and at not in taken]
        same_time = any(incoming[order].at_ms is not None and at in dated for order, at in fresh)
        long = any(incoming[order].length >= TELLING_LENGTH for order, _ in fresh)
        # Where the window has a place, what lies beyond it is new unless it is unmistakable.
        if same_time or long or len(fresh) >= (TELLING_RUN if offset is not None else 2):
            found.update(fresh)
    return offset


def _offset(pairs: set[tuple[int, int]], erased: set[int], span: tuple[int, int], length: int) -> int | None:
    """Return where the window lies that contradicts nothing and agrees with most, the latest of equals."""
    low, high = span
    agreeing = Counter(position - order for order, position in pairs)
    for offset, count in sorted(agreeing.items(), key=lambda item: (-item[1], -item[0])):
        first, last = max(low, offset), min(high, offset + length - 1)
        gaps = sum(first <= position <= last for position in erased)
        leads_up = offset < low and last < high
        if count + gaps == last - first + 1 and (not leads_up or count >= 2):
            return offset
    return None


def _runs(pairs: set[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return the maximal runs of pairs that follow on each other, longest first."""
    runs = []
    for pair in sorted(pairs):
        if (pair[0] - 1, pair[1] - 1) in pairs:
            continue
        run = [pair]
        while (following := (run[-1][0] + 1, run[-1][1] + 1)) in pairs:
            run.append(following)
        runs.append(run)
    return sorted(runs, key=lambda run: (-len(run), run[0]))


def _same_time(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other
