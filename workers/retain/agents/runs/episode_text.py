"""What is remembered of a run's turn: the text of its episode."""

from __future__ import annotations

import json

from retain.agents.calls.run_request import input_text
from retain.agents.runs.open_run import OpenRun

MAX_EPISODE_BYTES = 16 * 1024
CUT = " […]"
"""What a text that was cut ends with."""


def episode_text(run: OpenRun, number: int, agent_type: str) -> str:
    """Return what is remembered of the run's turn `number`, from 1, `MAX_EPISODE_BYTES` at most plus a mark of a cut.

    An answer that holds recalled text is remembered by its summary.
    """
    turn = run.state.turns[number - 1]
    lines: list[str] = []
    if number == 1:
        lines.append(f"input: {input_text(run.request.input)}")
    if turn.answer.content:
        lines.append(f"{agent_type}: {turn.answer.content}")
    for call, result in zip(turn.answer.calls, turn.results, strict=False):
        answer = result.summary if result.summary is not None else result.content
        lines.append(f"{call.name}({json.dumps(dict(call.arguments), ensure_ascii=False)}) -> {answer}")
    text = valid_unicode("\n".join(lines))
    encoded = text.encode()
    return text if len(encoded) <= MAX_EPISODE_BYTES else encoded[:MAX_EPISODE_BYTES].decode("utf-8", "ignore") + CUT


def beyond(content: str, asked: str, answered: str | None, agent_type: str) -> str:
    """Return an episode's text without the run's question and its final answer; "" when nothing else is in it."""
    text = content.removeprefix(f"input: {asked}").removeprefix("\n")
    if answered is None:
        return text
    final = f"{agent_type}: {answered}"
    cut = answered.endswith(CUT) and text.startswith(final.removesuffix(CUT))
    return "" if cut or text == final else text


def valid_unicode(text: str) -> str:
    """Return the text with "?" for lone surrogates, which JSON can contain and a database refuses."""
    return text.encode("utf-8", "replace").decode()
