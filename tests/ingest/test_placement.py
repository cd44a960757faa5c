"""The positions of messages: repeated requests, overlapping windows, gaps, and messages that only look alike."""

from __future__ import annotations

import asyncio
from contextlib import closing

from hypothesis import given, settings
from hypothesis import strategies as st

from retain.ingest.messages import IncomingMessage
from retain.ingest.placement import MessagePlacement, PlacedMessage, place
from tests.ingest.substrate import IngestSubstrate, turns
from tests.memory.semantic.substrate import AGENT


def message(text: str, message_id: str | None = None, at_ms: int | None = None) -> IncomingMessage:
    return IncomingMessage(0, message_id, "Bea", text, at_ms)


class Conversation:
    """A conversation as the inbox has it: position to message."""

    def __init__(self) -> None:
        self.held: dict[int, IncomingMessage | None] = {}

    def send(self, messages: list[IncomingMessage]) -> MessagePlacement:
        """Place messages, and store the new ones."""
        known = [
            PlacedMessage(position, None, "", None)
            if one is None
            else PlacedMessage(position, one.id, one.key, one.at_ms)
            for position, one in self.held.items()
        ]
        span = (min(self.held), max(self.held)) if self.held else None
        placement = place(messages, known, span)
        for order, position in placement.new.items():
            assert position not in self.held
            self.held[position] = messages[order]
        assert placement.known.keys() | placement.new.keys() | placement.changed == set(range(len(messages)))
        return placement

    def texts(self) -> list[str]:
        """Return the texts in the conversation's order."""
        return [one.content if (one := self.held[position]) else "(erased)" for position in sorted(self.held)]


TALK = [message(text) for text in "hi hello how-are-you ok and-you ok good so-long ok bye".split()]


def test_the_same_messages_again_are_known() -> None:
    conversation = Conversation()
    conversation.send(TALK)
    assert not conversation.send(TALK).new
    assert conversation.texts() == [one.content for one in TALK]


def test_an_overlapping_window_adds_what_is_new_even_if_words_recur() -> None:
    conversation = Conversation()
    for start, end in ((0, 6), (3, 9), (4, 10), (0, 10)):
        conversation.send(TALK[start:end])
    assert conversation.texts() == [one.content for one in TALK]


def test_an_earlier_window_is_placed_before_the_conversation() -> None:
    conversation = Conversation()
    conversation.send(TALK[4:])
    conversation.send(TALK[:7])
    assert conversation.texts() == [one.content for one in TALK]


def test_a_window_over_a_gap_fills_it_at_the_end_and_duplicates_nothing() -> None:
    talk = [message(f"the message of number {number}") for number in range(15)]
    conversation = Conversation()
    for window in (talk[:5], talk[10:], talk[3:12], talk):
        conversation.send(window)
    assert sorted(conversation.texts()) == sorted(one.content for one in talk)


def test_new_messages_with_earlier_words_are_new() -> None:
    conversation = Conversation()
    conversation.send([message("hi"), message("ok"), message("fine")])
    assert len(conversation.send([message("shall I?"), message("ok"), message("thanks")]).new) == 3


def test_one_equal_word_at_the_beginning_is_not_an_overlap() -> None:
    conversation = Conversation()
    conversation.send([message("ok"), message("bye")])
    conversation.send([message("shall I?"), message("ok")])
    assert conversation.texts() == ["ok", "bye", "shall I?", "ok"]


def test_the_last_words_repeated_are_the_same_message() -> None:
    conversation = Conversation()
    conversation.send([message("hi"), message("ok")])
    assert not conversation.send([message("ok")]).new
    assert len(conversation.send([message("ok"), message("bye")]).new) == 1


def test_the_same_words_at_another_time_are_another_message() -> None:
    conversation = Conversation()
    conversation.send([message("ok", at_ms=1)])
    assert len(conversation.send([message("ok", at_ms=2)]).new) == 1
    assert not conversation.send([message("ok", at_ms=1), message("ok", at_ms=2)]).new


def test_an_id_overrides_words_and_order() -> None:
    conversation = Conversation()
    conversation.send([message("ok", "a"), message("ok", "b")])
    placement = conversation.send([message("ok", "b"), message("ok", "c"), message("ok", "a")])
    assert (placement.known, placement.new) == ({0: 1, 2: 0}, {1: 2})


def test_an_id_with_other_words_is_changed_and_a_repeated_one_is_known() -> None:
    conversation = Conversation()
    conversation.send([message("ok", "a")])
    placement = conversation.send([message("no", "a"), message("new", "b"), message("new", "b"), message("odd", "b")])
    assert placement == MessagePlacement({2: 1}, {1: 1}, frozenset({0, 3}))


def test_messages_stored_without_ids_are_recognised_when_sent_with_ids() -> None:
    conversation = Conversation()
    conversation.send([message("hi"), message("hello"), message("bye")])
    assert not conversation.send([message("hi", "a"), message("hello", "b"), message("bye", "c")]).new


def test_an_erased_message_is_not_learned_again_when_its_neighbours_show_its_position() -> None:
    conversation = Conversation()
    conversation.send(TALK)
    conversation.held[4] = None
    assert not conversation.send(TALK).new
    assert not conversation.send(TALK[2:8]).new


numbers = st.integers(0, 12)
windows = st.lists(st.tuples(numbers, numbers).map(sorted), min_size=1, max_size=6)


@given(windows=windows, with_ids=st.booleans())
def test_windows_in_any_order_store_every_message_once(windows: list[list[int]], *, with_ids: bool) -> None:
    talk = [message(f"this is what was said as number {n}", f"m{n}" if with_ids else None) for n in range(13)]
    conversation = Conversation()
    for start, end in windows:
        conversation.send(talk[start : end + 1])
    expected = {talk[n].content for start, end in windows for n in range(start, end + 1)}
    assert sorted(conversation.texts()) == sorted(expected)


@given(words=st.lists(st.sampled_from(["ok", "yes", "no"]), min_size=1, max_size=20), data=st.data())
def test_a_growing_window_of_recurring_words_duplicates_nothing_and_loses_nothing(
    words: list[str], data: st.DataObject
) -> None:
    """Each request repeats the whole conversation so far: positions are certain, however similar the words are."""
    talk = [message(word) for word in words]
    conversation = Conversation()
    end = 0
    while end < len(talk):
        end = data.draw(st.integers(end + 1, len(talk)))
        conversation.send(talk[:end])
        conversation.send(talk[:end])
        assert conversation.texts() == words[:end]


DAY, HOUR = 86_400_000, 3_600_000
TALK_OF_DAYS = [
    {
        "speaker": "Bea",
        "content": f"word{number} of day {number // 10}",
        "at_ms": 10**12 + number // 10 * DAY + number * 60_000,
    }
    for number in range(40)
]


def part(number: int) -> list[dict[str, object]]:
    return list(TALK_OF_DAYS[number * 10 : number * 10 + 10])


@settings(max_examples=40, deadline=None)
@given(order=st.permutations(range(4)), sizes=st.sampled_from([1, 3, 10]), with_ids=st.booleans())
def test_parts_that_arrive_in_any_order_are_placed_by_their_times(
    order: list[int], sizes: int, *, with_ids: bool
) -> None:
    """Also in smaller pieces than parts, and when they are sent again."""
    messages = [{**one, "id": f"m{number}"} if with_ids else one for number, one in enumerate(TALK_OF_DAYS)]

    async def ingested() -> list[str]:
        with closing(IngestSubstrate()) as substrate:
            for _ in range(2):
                for number in order:
                    own = messages[number * 10 : number * 10 + 10]
                    for start in range(0, 10, sizes):
                        job = await substrate.ingest("chat", own[start : start + sizes])
                        assert job.state == "completed"
            return await substrate.texts("chat")

    assert asyncio.run(ingested()) == [f"Bea: {one['content']}" for one in TALK_OF_DAYS]


async def test_neighbours_are_neighbours_whatever_the_order_of_arrival(substrate: IngestSubstrate) -> None:
    start = 10**12
    parts = {
        1: turns("Bea: Did you bring the umbrella?", at_ms=start),
        2: turns("Tom: Marmalade.", at_ms=start + HOUR),
        3: turns("Tom: It was in the attic.", at_ms=start + 2 * HOUR),
    }
    for number in (3, 1):
        await substrate.ingest("chat", parts[number])
    apart = {hit.record.content: hit.components["words"] for hit in await substrate.hits("umbrella", AGENT, top_k=10)}
    assert apart["It was in the attic."] > 0, "the next message, as far as known"
    await substrate.ingest("chat", parts[2])
    hits = {hit.record.content: hit.components["words"] for hit in await substrate.hits("umbrella", AGENT, top_k=10)}
    assert hits["Marmalade."] > hits["It was in the attic."] > 0
    assert await substrate.texts("chat") == [
        "Bea: Did you bring the umbrella?",
        "Tom: Marmalade.",
        "Tom: It was in the attic.",
    ]


async def test_undated_messages_stay_with_the_dated_one_before_them(substrate: IngestSubstrate) -> None:
    start = 10**12
    await substrate.ingest("chat", [*turns("Bea: Late.", at_ms=start + DAY), *turns("Tom: Undated, after late.")])
    await substrate.ingest("chat", [*turns("Bea: Early.", at_ms=start), *turns("Tom: Undated, after early.")])
    await substrate.ingest("chat", turns("Tom: No time at all."))
    assert [text.partition(": ")[2] for text in await substrate.texts("chat")] == [
        "Early.",
        "Undated, after early.",
        "Late.",
        "Undated, after late.",
        "No time at all.",
    ]
