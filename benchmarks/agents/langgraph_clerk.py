# mypy: ignore-errors
"""The agent of the benchmark on LangGraph with its SQLite checkpointer and store. `own_process` runs it.

Each run has a thread of its own, reads the last ten episodes, makes three tool steps, and stores an episode. Checkpoints are
written before the next step begins (`durability="sync"`).
"""

import asyncio
import operator
import sys
import uuid
from typing import Annotated, Any, TypedDict

from clerk_process import ASKED, EPISODES, answered, serve
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.sqlite.aio import AsyncSqliteStore


class State(TypedDict):
    """What a run holds; a checkpoint has all of it."""

    input: str
    episodes: list[str]
    messages: Annotated[list[dict[str, Any]], operator.add]
    working: dict[str, str]
    output: str


def _scripted(state: State) -> dict[str, Any]:
    results = sum(message["role"] == "tool" for message in state["messages"])
    answer = answered(state["input"], results)
    if isinstance(answer, str):
        return {"messages": [{"role": "assistant", "content": answer}], "output": answer}
    tool, arguments = answer
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

        async def run() -> None:
            thread = uuid.uuid4().hex
            namespace = ("episodes", thread)
            past = [item.value["text"] for item in await store.asearch(namespace, limit=EPISODES)]
            begun = {"input": ASKED, "episodes": past, "messages": [{"role": "user", "content": ASKED}], "working": {}}
            done = await agent.ainvoke(begun, {"configurable": {"thread_id": thread}}, durability="sync")
            await store.aput(namespace, uuid.uuid4().hex, {"text": f"input: {ASKED}\noutput: {done['output']}"})

        await serve(run)


asyncio.run(_served(sys.argv[1]))
