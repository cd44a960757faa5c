# mypy: ignore-errors
"""What the agents of other frameworks share: what is asked, what the model says, and the blocks of runs.

A clerk is a script of its own, in the interpreter that has its framework, and imports this one from its own folder.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

ASKED = "Where is A-17?"
EPISODES = 10
"""Of the past, how many a run reads."""


def answered(asked: str, results: int) -> tuple[str, dict[str, str]] | str:
    """Return what the model says after so many results of tools: a call, by tool and arguments, or at last the answer."""
    order = re.search(r"A-\d+", asked)[0]
    text = f"Order {order} is on its way."
    calls = [
        ("set", {"key": "order", "value": order}),
        ("get", {"key": "order"}),
        ("set", {"key": "draft", "value": text}),
    ]
    return text if results == len(calls) else calls[results]


async def serve(run: Callable[[], Awaitable[object]]) -> None:
    """Say "ready"; then answer each line of JSON, {"connections", "calls"}, with the milliseconds of as many runs."""

    async def timed() -> float:
        started_ns = time.perf_counter_ns()
        await run()
        return (time.perf_counter_ns() - started_ns) / 1e6

    async def some(left: Iterator[int]) -> list[float]:
        return [await timed() for _ in left]

    print(json.dumps("ready"), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        wanted = json.loads(line)  # noqa: TID251 -- the interpreter that runs this has nothing of Retain
        left = iter(range(wanted["calls"]))
        several = await asyncio.gather(*(some(left) for _ in range(wanted["connections"])))
        print(json.dumps([time_ms for times_ms in several for time_ms in times_ms]), flush=True)
