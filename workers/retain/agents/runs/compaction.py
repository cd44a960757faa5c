"""Compaction: what the model still reads of a long run when not all of it fits.

Pure, and repeated from the whole log for each model call: a summary is never summarised, and there is never more than one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from retain.agents.calls.tokens import Estimate
from retain.agents.runs.context import fenced
from retain.agents.runs.run_state import RunState
from retain.models.chat import ChatMessage

SECTION = "earlier_turns"
_LINE = 200
"""Longest line of the summary, in characters."""
_WORD = re.compile(r"[^\s,;:\"'(){}\[\]<>|]+")
_MAX_TERM = 128
"""Longest identifier that counts as a reference, in characters."""


class NoRoom(Exception):
    """The messages that must stay do not fit."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One turn as messages: the model's answer, and the results of its calls so far."""

    turn: int
    answer: ChatMessage
    results: tuple[ChatMessage, ...]


@dataclass(frozen=True, slots=True)
class Compacted:
    """What the model reads. cut: the turns of which it reads a summary and only those results that later turns refer to.

    messages_cut: how many messages of the head are left out.
    """

    messages: tuple[ChatMessage, ...]
    cut: tuple[int, ...] = ()
    messages_cut: int = 0


def history(state: RunState) -> tuple[Transcript, ...]:
    """Return a run's turns as messages."""
    turns: list[Transcript] = []
    for number, turn in enumerate(state.turns, start=1):
        answer = ChatMessage("assistant", turn.answer.content, turn.answer.calls)
        results = tuple(
            ChatMessage("tool", result.content, tool_call_id=call.id, failed=result.failed)
            for call, result in zip(turn.answer.calls, turn.results, strict=False)
        )
        turns.append(Transcript(number, answer, results))
    return tuple(turns)


def compacted(head: Sequence[ChatMessage], turns: Sequence[Transcript], room: int, estimate: Estimate) -> Compacted:
    """Return the messages that fit into `room` tokens: all, or head, summary, results still referred to, and tail.

    The head's first and last message (instructions and input) and the last turn always stay. As few of the oldest turns as
    possible are cut; if it does not fit without all of them, the oldest of the head's other messages (the conversation,
    then memory) are left out.
    A call of a cut turn stays with its result when a later turn that the model reads names something from the result: an
    address, or an identifier that is not in the head; with it the turn's first call, if that has what the model thought,
    without which its server would refuse the turn. Each other call becomes one line of the summary.
    Raises: NoRoom when that does not fit either.
    """
    whole = (*head, *(message for turn in turns for message in (turn.answer, *turn.results)))
    if estimate.messages(whole) <= room:
        return Compacted(whole)
    known = _terms(message.content for message in head)
    used = [_terms([_answer_text(turn.answer)]) - known for turn in turns]
    found = [{result.tool_call_id: _terms([result.content]) for result in turn.results} for turn in turns]
    for number in range(1, len(turns)):
        made = _cut(head, turns, number, used, found)
        if estimate.messages(made.messages) <= room:
            return made
    for left_out in range(1, len(head) - 1):
        shorter = (head[0], *head[1 + left_out :])
        for number in range(max(1, len(turns)) if shorter[1].role != "assistant" else 0):
            made = _cut(shorter, turns, number, used, found)
            if estimate.messages(made.messages) <= room:
                return replace(made, messages_cut=left_out)
    raise NoRoom


def _cut(
    head: Sequence[ChatMessage],
    turns: Sequence[Transcript],
    number: int,
    used: Sequence[Set[str]],
    found: Sequence[Mapping[str | None, Set[str]]],
) -> Compacted:
    """Return the messages with the first `number` turns cut. used, found: the terms in each turn's answer and results."""
    tail = [message for turn in turns[number:] for message in (turn.answer, *turn.results)]
    referred = set().union(*used[number:])
    kept: list[ChatMessage] = []
    lines: list[str] = []
    for index in reversed(range(number)):
        turn = turns[index]
        stays = {call_id for call_id, terms in found[index].items() if terms & referred}
        stays |= {call.id for call in turn.answer.tool_calls[:1] if stays and call.reasoning}
        calls = tuple(call for call in turn.answer.tool_calls if call.id in stays)
        if calls:
            kept[:0] = [
                ChatMessage("assistant", "", calls),
                *(result for result in turn.results if result.tool_call_id in stays),
            ]
            referred |= used[index]
        lines[:0] = _lines(turn, stays)
    summary = [ChatMessage("user", fenced(SECTION, lines))] if lines else []
    return Compacted((*head, *summary, *kept, *tail), tuple(turn.turn for turn in turns[:number]))


def _answer_text(answer: ChatMessage) -> str:
    calls = [json.dumps(dict(call.arguments), ensure_ascii=False) for call in answer.tool_calls]
    return "\n".join([answer.content, *calls])


def _terms(texts: Iterable[str]) -> set[str]:
    """Return the terms in the texts that name something: e-mail addresses, and identifiers with a digit in them."""
    words = {word.strip(".!?") for text in texts for word in _WORD.findall(text)}
    return {
        word.lower()
        for word in words
        if 3 <= len(word) <= _MAX_TERM and ("@" in word or any(letter.isdigit() for letter in word))
    }


def _lines(turn: Transcript, stays: set[str | None]) -> list[str]:
    """Return a cut turn's lines of the summary: its text, and each call that does not stay."""
    lines = [f"turn {turn.turn}: {_short(turn.answer.content)}"] if turn.answer.content.strip() else []
    by_call = {result.tool_call_id: result.content for result in turn.results}
    for call in turn.answer.tool_calls:
        if call.id not in stays:
            arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
            result = by_call.get(call.id, "")
            lines.append(f"turn {turn.turn}: {_short(f'{call.name}({arguments}) -> {result}')}")
    return lines


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE else line[:_LINE] + "…"
