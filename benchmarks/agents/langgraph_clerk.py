# mypy: ignore-errors
"""The agent of the benchmark on LangGraph with its SQLite checkpointer and store. `own_process` runs it.

Reads a line of JSON for each block, {"connections", "calls"}, and answers one with the milliseconds of each run. Each run
has a thread of its own, reads the last ten episodes, makes three tool steps, and stores an episode. Checkpoints are written
before the next step begins (`durability="sync"`).
"""

import asyncio
import json
import operator
import re
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.sqlite.aio import AsyncSqliteStore

EPISODES = 10
ASKED = "Where is A-17?"


class State(TypedDict):
    """What a run holds; a checkpoint has all of it."""

    input: str
    episodes: list[str]
    messages: Annotated[list[dict[str, Any]], operator.add]
    working: dict[str, str]
    output: str


def _scripted(state: State) -> dict[str, Any]:
    results = sum(message["role"] == "tool" for message in state["messages"])
    order = re.search(r"A-\d+", state["input"])[0]
    text = f"Order {order} is on its way."
    steps = [
        ("set", {"key": "order", "value": order}),
        ("get", {"key": "order"}),
        ("set", {"key": "draft", "value": text}),
    ]
    if results == len(steps):
        return {"messages": [{"role": "assistant", "content": text}], "output": text}
    tool, arguments = steps[results]
    return {"messages": [{"role": "assistant", "call": {"tool": tool, "arguments": arguments}}]}


def _called(state: State) -> dict[str, Any]:
    call = state["messages"][-1]["call"]
    key = call["arguments"]["key"]
    if call["tool"] == "get":
        return {"messages": [{"role": "tool", "content": state["working"].get(key, "")}]}
    working = {**state["working"], key: call["arguments"]["value"]}
    return {"messages": [{"role": "tool", "content": "stored"}], "working": working}


async def _served(folder: str) -> None:
    async with (
        AsyncSqliteSaver.from_conn_string(f"{folder}/checkpoints.sqlite") as saver,
        AsyncSqliteStore.from_conn_string(f"{folder}/store.sqlite") as store,
    ):
        await saver.setup()
        await store.setup()
        graph = StateGraph(State)
        graph.add_node("model", _scripted)
        graph.add_node("tool", _called)
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", lambda state: END if state.get("output") else "tool")
        graph.add_edge("tool", "model")
        agent = graph.compile(checkpointer=saver, store=store)

        async def run() -> float:
            started_ns, thread = time.perf_counter_ns(), uuid.uuid4().hex
            namespace = ("episodes", thread)
            past = [item.value["text"] for item in await store.asearch(namespace, limit=EPISODES)]
            begun = {"input": ASKED, "episodes": past, "messages": [{"role": "user", "content": ASKED}], "working": {}}
            done = await agent.ainvoke(begun, {"configurable": {"thread_id": thread}}, durability="sync")
            await store.aput(namespace, uuid.uuid4().hex, {"text": f"input: {ASKED}\noutput: {done['output']}"})
            return (time.perf_counter_ns() - started_ns) / 1e6

        async def some(left: Iterator[int]) -> list[float]:
            return [await run() for _ in left]

        print(json.dumps("ready"), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            wanted = json.loads(line)  # noqa: TID251 -- the interpreter that runs this has nothing of Retain
            left = iter(range(wanted["calls"]))
            several = await asyncio.gather(*(some(left) for _ in range(wanted["connections"])))
            print(json.dumps([time_ms for times_ms in several for time_ms in times_ms]), flush=True)


asyncio.run(_served(sys.argv[1]))
