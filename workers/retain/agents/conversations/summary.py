"""The summary of a conversation: what is kept of the messages that no longer come into the prompt.

By rules, so that the same messages give the same summary: what a person states plainly of themselves is kept longest,
then what names something (an order, an address, a date), then what it was about. It grows message by message and is never
made again from itself. Nothing of an answer is kept whose run had remembered text in its context: the answer may repeat it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from retain.ingest.speech.sentences import statements
from retain.memory.conversations.thread import PastMessage, SummaryLine, Thread, ThreadQuery, ThreadSummary
from retain.memory.recall.wording import normalised
from retain.memory.recalled import without_recalled
from retain.models.attached import with_lines
from retain.ports import Sql

LINE = 200
"""Longest line, in characters."""
LINES_PER_MESSAGE = 3
STATED, NAMING, TOPIC = 3, 2, 1
"""Weights: a plain statement of the person, a sentence that names something, the first sentence of anything else."""

_SENTENCE = re.compile(r"(?<=[.!?…])\s+(?=\S)|\n+")
_NAMES = re.compile(r"\S@\S|\d")


@dataclass(frozen=True, slots=True)
class ThreadBound:
    """How much of a conversation comes into the prompt.

    messages, tokens: of the newest messages; summary_tokens: of the summary. measure: how many tokens a text has.
    """

    messages: int
    tokens: int
    summary_tokens: int
    measure: Callable[[str], int]

    @property
    def characters(self) -> int:
        """How much of a message is read: more than `shortened` keeps of it."""
        return 4 * (self.tokens // 4) + 1

    def shortened(self, message: PastMessage) -> PastMessage:
        """Return the message with its text shortened."""
        return replace(message, content=self.shortened_text(message.content))

    def shortened_text(self, text: str) -> str:
        """Return a message's text, cut to a quarter of the bound, so that a question and its answer fill at most half."""
        tokens, most = self.measure(text), self.tokens // 4
        if tokens <= most:
            return text
        encoded = text.encode("utf-8", "replace")
        kept = encoded[: len(encoded) * max(most - 2, 0) // tokens].decode("utf-8", "ignore")
        return f"{kept} […]"

    def holds(self, messages: Sequence[PastMessage]) -> bool:
        """Return whether all of the messages may come into the prompt."""
        return len(messages) <= self.messages and sum(self.measure(one.content) for one in messages) <= self.tokens


async def within(bound: ThreadBound, thread: Thread, query: ThreadQuery, sql: Sql) -> Thread:
    """Return the conversation with its oldest messages in the summary, if there are too many; else the same.

    At least half of the bound is then free, so that the messages in the prompt begin with the same one for many runs.
    Raises: Unavailable.
    """
    if not thread.messages:
        return thread
    messages = tuple(map(bound.shortened, thread.messages))
    if thread.whole and bound.holds(messages):
        return replace(thread, messages=messages)
    kept = _newest_half(bound, messages)
    older = messages[: len(messages) - len(kept)]
    if not thread.whole:
        before = kept[0].message_id if kept else f"{messages[-1].message_id}~"
        older = tuple(map(bound.shortened, await query.older(sql, thread.summary.through, before)))
    return Thread(extended(thread.summary, older, bound), kept)


def _newest_half(bound: ThreadBound, messages: Sequence[PastMessage]) -> tuple[PastMessage, ...]:
    """Return the newest messages that fill at most half of the bound, beginning with the first one of a run."""
    taken, tokens = 0, 0
    for number, message in enumerate(reversed(messages), start=1):
        tokens += bound.measure(message.content)
        if number > bound.messages // 2 or tokens > bound.tokens // 2:
            break
        if number == len(messages) or messages[-number - 1].run_id != message.run_id:
            taken = number
    return tuple(messages[len(messages) - taken :])


def extended(summary: ThreadSummary, messages: Sequence[PastMessage], bound: ThreadBound) -> ThreadSummary:
    """Return the summary with what is kept of further messages, within its bound."""
    if not messages:
        return summary
    found = {
        normalised(line.text): line for line in (*summary.lines, *(line for one in messages for line in lines_of(one)))
    }
    lines = sorted(found.values(), key=lambda line: (line.at_ms, line.run_id, line.role == "assistant"))
    costs = {id(line): bound.measure(line.text) + _LABEL_TOKENS for line in lines}
    total = sum(costs.values())
    for line in sorted(
        lines, key=lambda line: line.weight
    ):  # of equal weight the oldest goes first: the sort is stable
        if total <= bound.summary_tokens:
            break
        total -= costs.pop(id(line))
    return ThreadSummary(tuple(line for line in lines if id(line) in costs), messages[-1].message_id)


_LABEL_TOKENS = 8
"""What a line's date and speaker take."""


def lines_of(message: PastMessage) -> Iterator[SummaryLine]:
    """Yield what is kept of one message, `LINES_PER_MESSAGE` lines at most."""
    if message.role == "assistant" and message.recalled:
        return
    text = with_lines(without_recalled(message.content), message.attachments)
    sentences = [sentence for part in _SENTENCE.split(text) if (sentence := " ".join(part.split()))]
    stated = [one.whole.text for one in statements(text) if one.whole.text] if message.role == "user" else []
    weighed = [(STATED, sentence) for sentence in stated]
    weighed += [
        (NAMING, sentence) for sentence in sentences if _NAMES.search(sentence) and not _within(sentence, stated)
    ]
    if not weighed and sentences:
        weighed = [(TOPIC, sentences[0])]
    for weight, sentence in weighed[:LINES_PER_MESSAGE]:
        short = sentence if len(sentence) <= LINE else sentence[:LINE] + "…"
        yield SummaryLine(message.run_id, message.role, short, message.at_ms, weight)


def _within(sentence: str, stated: Sequence[str]) -> bool:
    return any(one in sentence for one in stated)
