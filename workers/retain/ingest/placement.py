"""Find the positions of incoming messages in a conversation that may have some of them already.

A message with an id is the one with that id. Without ids, a request is treated as a window on the conversation: the
offset is sought at which it does not contradict the known messages (a repeated request, an overlapping window, a longer
one, an earlier one). If there is no such offset, runs of messages that cannot be equal by chance are matched. What is
left is new. When in doubt a message counts as known: then its words are remembered already.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from retain.memory.recall.evidence import SEAM

TELLING_RUN = 3
"""This many equal messages in a row are not a coincidence …"""
TELLING_LENGTH = 24
"""… nor is one of this many characters."""


class Placeable(Protocol):
    """What an incoming message's position depends on."""

    @property
    def id(self) -> str | None:
        """The sender's id for it."""
        ...

    @property
    def key(self) -> str:
        """Equal for messages that are equal apart from ids and times."""
        ...

    @property
    def at_ms(self) -> int | None:
        """When it was uttered."""
        ...

    @property
    def length(self) -> int:
        """Characters of its content."""
        ...


@dataclass(frozen=True, slots=True)
class PlacedMessage:
    """A message that has a position. key: "" for an erased one, which may have been any message."""

    position: int
    id: str | None
    key: str
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Where a time lies in a conversation: between two messages of it, by the times of its messages.

    floor: the last position before the time; None if there is none. ceiling: the first one after it; None if there is none.
    near: the position and time of the nearest dated message, by which room for others is left.
    """

    floor: int | None
    ceiling: int | None
    near: tuple[int, int]


@dataclass(frozen=True, slots=True)
class MessagePlacement:
    """Which incoming messages are known, new or changed, by their order in the request.

    known: order to the position of the known message. new: order to the position that it gets. changed: orders of
    messages whose ids are known with other words.
    """

    known: Mapping[int, int]
    new: Mapping[int, int]
    changed: frozenset[int]


class Pair(NamedTuple):
    """An incoming message and a known one that may be the same message.

    order: of the incoming one in its request. position: of the known one in the conversation.
    """

    order: int
    position: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """How a request aligns with its conversation, apart from ids.

    offset: the position of order 0 if the request is one window on the conversation, None if it is not.
    found: order to position of the messages that are known by alignment.
    """

    offset: int | None
    found: Mapping[int, int]


@dataclass(slots=True)
class _ById:
    """What ids decide about incoming messages, by their order.

    found: the position of each known one. changed: the position of each one whose id is known with other words, None when
    its id came earlier in the same request. repeated: for repetitions within the request, the order of the first.
    """

    found: dict[int, int] = field(default_factory=dict)
    changed: dict[int, int | None] = field(default_factory=dict)
    repeated: dict[int, int] = field(default_factory=dict)

    @property
    def certain(self) -> set[Pair]:
        """The pairs with equal ids, whether their words are equal or not."""
        return {
            Pair(order, position)
            for order, position in (*self.found.items(), *self.changed.items())
            if position is not None
        }


def place(
    incoming: Sequence[Placeable],
    known: Iterable[PlacedMessage],
    span: tuple[int, int] | None,
    gaps: Mapping[int, Gap] | None = None,
) -> MessagePlacement:
    """Return the position of each incoming message.

    known: at least every message of the conversation that could be one of the incoming ones. span: the first and last
    position of the conversation, None when it is empty. gaps: where the times of the incoming messages lie in it.
    New messages precede the first one if the request overlaps the conversation's beginning. Other new messages are placed by
    their times, with room for those in between that may arrive later; without times they follow the last one.
    """
    rows = list(known)
    by_id = _by_id(incoming, rows)
    low, high = span if span is not None else (0, -1)
    alignment = _align(incoming, rows, span, by_id) if span is not None else Alignment(None, {})
    found = {**by_id.found, **alignment.found}
    settled = found.keys() | by_id.changed.keys() | by_id.repeated.keys()
    new: dict[int, int] = {}
    for order in reversed(range(0 if alignment.offset is None else low - alignment.offset)):
        if order not in settled:
            low -= 1
            new[order] = low
    positions = _Positions(high, gaps or {}, dense=alignment.offset is not None)
    for run in _consecutive(
        incoming, [order for order in range(len(incoming)) if order not in settled | new.keys()], gaps or {}
    ):
        start = positions.take(
            next((incoming[order].at_ms for order in run if incoming[order].at_ms is not None), None), len(run)
        )
        new |= {order: start + number for number, order in enumerate(run)}
    for order, first in by_id.repeated.items():
        found[order] = new[first] if first in new else found[first]
    return MessagePlacement(found, new, frozenset(by_id.changed))


class _Positions:
    """The free positions of a conversation. dense: messages that follow the last one leave no room."""

    def __init__(self, high: int, gaps: Mapping[int, Gap], *, dense: bool) -> None:
        self._high = high
        self._gaps = gaps
        self._dense = dense
        self._floors: dict[int, int] = {}

    def take(self, at_ms: int | None, count: int) -> int:
        """Return the first of so many consecutive positions for messages of a time; they are taken then."""
        gap = None if at_ms is None else self._gaps.get(at_ms)
        if gap is None or at_ms is None:
            return self._appended(self._high + 1, count)
        wanted = gap.near[0] + at_ms - gap.near[1]
        if gap.ceiling is None:
            return self._appended(self._high + 1 if self._dense else _after(self._high, wanted), count)
        floor = self._floors.get(gap.ceiling, gap.floor)
        last = gap.ceiling - count
        if floor is not None and last <= floor:  # no room: it follows the last one
            return self._appended(self._high + 1, count)
        start = min(wanted, last) if floor is None else min(_after(floor, wanted), last)
        start = last if last - start < SEAM else start
        self._floors[gap.ceiling] = start + count - 1
        return start

    def _appended(self, start: int, count: int) -> int:
        self._high = start + count - 1
        return start


def _after(floor: int, wanted: int) -> int:
    """Return the wanted position, or the one right after the floor if there would be less than a seam between them."""
    return wanted if wanted - floor >= SEAM else floor + 1


def _consecutive(incoming: Sequence[Placeable], orders: Sequence[int], gaps: Mapping[int, Gap]) -> list[list[int]]:
    """Split the orders into runs that stay together: consecutive ones, of which the dated ones lie in the same gap."""
    runs: list[list[int]] = []
    gap: Gap | None = None
    for order in orders:
        at_ms = incoming[order].at_ms
        own = None if at_ms is None else gaps.get(at_ms)
        joins = bool(runs) and runs[-1][-1] == order - 1 and (own is None or gap is None or _edges(own) == _edges(gap))
        if joins:
            runs[-1].append(order)
            gap = gap or own
        else:
            runs.append([order])
            gap = own
    return runs


def _edges(gap: Gap) -> tuple[int | None, int | None]:
    return gap.floor, gap.ceiling


def _by_id(incoming: Sequence[Placeable], rows: Sequence[PlacedMessage]) -> _ById:
    ids = {row.id: row for row in rows if row.id is not None}
    result = _ById()
    seen: dict[str, int] = {}
    for order, message in enumerate(incoming):
        if message.id is None:
            continue
        row = ids.get(message.id)
        if row is not None and row.key == message.key:
            result.found[order] = row.position
        elif row is not None:
            result.changed[order] = row.position
        elif message.id not in seen:
            seen[message.id] = order
        elif incoming[seen[message.id]].key == message.key:
            result.repeated[order] = seen[message.id]
        else:
            result.changed[order] = None
    return result


def _align(
    incoming: Sequence[Placeable], rows: Sequence[PlacedMessage], span: tuple[int, int], by_id: _ById
) -> Alignment:
    """Return what is known by alignment: all of the window that overlaps, then runs that cannot be equal by chance."""
    possible = _possible(incoming, rows, by_id)
    erased = {row.position for row in rows if row.key == ""}
    offset = _offset(possible | by_id.certain, erased, span, len(incoming))
    found = dict(by_id.found)
    if offset is not None:
        low, high = span
        for order in range(max(0, low - offset), min(len(incoming), high - offset + 1)):
            if order not in by_id.changed:
                found.setdefault(order, order + offset)
    dated = {row.position for row in rows if row.at_ms is not None}
    # With a window, the messages outside it are probably new.
    telling_run = TELLING_RUN if offset is not None else 2
    for run in _runs(possible):
        taken = set(found.values())
        fresh = [pair for pair in run if pair.order not in found and pair.position not in taken]
        if len(fresh) >= telling_run or any(
            _is_telling(incoming[pair.order], pair.position in dated) for pair in fresh
        ):
            found.update(fresh)
    return Alignment(offset, found)


def _possible(incoming: Sequence[Placeable], rows: Sequence[PlacedMessage], by_id: _ById) -> set[Pair]:
    """Return the pairs with equal words and compatible ids and times, of messages that ids do not decide."""
    by_key: dict[str, list[PlacedMessage]] = defaultdict(list)
    for row in rows:
        if row.key != "":
            by_key[row.key].append(row)
    return {
        Pair(order, row.position)
        for order, message in enumerate(incoming)
        if order not in by_id.found and order not in by_id.changed
        for row in by_key.get(message.key, [])
        if (message.id is None or row.id is None) and _same_time(message.at_ms, row.at_ms)
    }


def _is_telling(message: Placeable, known_is_dated: bool) -> bool:
    """Return whether a message cannot equal a known one by coincidence: it has the same time, or many characters."""
    return (message.at_ms is not None and known_is_dated) or message.length >= TELLING_LENGTH


def _offset(pairs: set[Pair], erased: set[int], span: tuple[int, int], length: int) -> int | None:
    """Return the offset at which no message contradicts the window and most agree, the latest of equals, or None."""
    low, high = span
    agreeing = Counter(position - order for order, position in pairs)
    for offset, count in sorted(agreeing.items(), key=lambda item: (-item[1], -item[0])):
        first, last = max(low, offset), min(high, offset + length - 1)
        gaps = sum(first <= position <= last for position in erased)
        leads_up = offset < low and last < high
        if count + gaps == last - first + 1 and (not leads_up or count >= 2):
            return offset
    return None


def _runs(pairs: set[Pair]) -> list[list[Pair]]:
    """Return the maximal runs of consecutive pairs, longest first."""
    runs = []
    for pair in sorted(pairs):
        if Pair(pair.order - 1, pair.position - 1) in pairs:
            continue
        run = [pair]
        while (following := Pair(run[-1].order + 1, run[-1].position + 1)) in pairs:
            run.append(following)
        runs.append(run)
    return sorted(runs, key=lambda run: (-len(run), run[0]))


def _same_time(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other
