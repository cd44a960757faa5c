# mypy: ignore-errors
"""The agent of the benchmark on pydantic-ai, durable by DBOS on SQLite. `own_process` runs it.

Reads a line of JSON for each block, {"connections", "calls"}, and answers one with the milliseconds of each run. Each run
is a workflow of its own, reads the last ten episodes, makes three tool steps, and stores an episode: DBOS writes what each
step gave before the next one begins.
"""

import asyncio
import json
import re
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import aiosqlite
from dbos import DBOS
from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.models.function import AgentInfo, FunctionModel

EPISODES = 10
ASKED = "Where is A-17?"
TABLE = "CREATE TABLE episodes (id INTEGER PRIMARY KEY, thread TEXT NOT NULL, text TEXT NOT NULL)"
INDEX = "CREATE INDEX episodes_of_thread ON episodes (thread, id)"
LAST = "SELECT text FROM episodes WHERE thread = ? ORDER BY id DESC LIMIT ?"
STORE = "INSERT INTO episodes (thread, text) VALUES (?, ?)"


@dataclass
class Working:
    """What a run keeps for itself."""

    values: dict[str, str] = field(default_factory=dict)


async def _scripted(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    results = sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
    order = re.search(r"A-\d+", ASKED)[0]
    text = f"Order {order} is on its way."
    steps = [
        ("set", {"key": "order", "value": order}),
        ("get", {"key": "order"}),
        ("set", {"key": "draft", "value": text}),
    ]
    if results == len(steps):
        return ModelResponse(parts=[TextPart(text)])
    return ModelResponse(parts=[ToolCallPart(*steps[results])])


agent = Agent(FunctionModel(_scripted), deps_type=Working, name="clerk", capabilities=[DBOSDurability()])


@agent.tool(name="set")
@DBOS.step(name="set")
async def _set(context: RunContext[Working], key: str, value: str) -> str:
    context.deps.values[key] = value
    return "stored"


@agent.tool(name="get")
@DBOS.step(name="get")
async def _get(context: RunContext[Working], key: str) -> str:
    return context.deps.values.get(key, "")


async def _served(folder: str) -> None:
    async with aiosqlite.connect(f"{folder}/episodes.sqlite") as database:
        await database.execute("PRAGMA journal_mode = WAL")
        await database.execute(TABLE)
        await database.execute(INDEX)

        @DBOS.step(name="last episodes")
        async def last(thread: str) -> list[str]:
            return [text for (text,) in await database.execute_fetchall(LAST, (thread, EPISODES))]

        @DBOS.step(name="store episode")
        async def store(thread: str, text: str) -> None:
            await database.execute(STORE, (thread, text))
            await database.commit()

        @DBOS.workflow(name="run")
        async def whole(thread: str) -> str:
            await last(thread)
            done = await agent.run(ASKED, deps=Working())
            await store(thread, f"input: {ASKED}\noutput: {done.output}")
            return done.output

        DBOS.launch()

        async def run() -> float:
            started_ns = time.perf_counter_ns()
            await whole(uuid.uuid4().hex)
            return (time.perf_counter_ns() - started_ns) / 1e6

        async def some(left: Iterator[int]) -> list[float]:
            return [await run() for _ in left]

        print(json.dumps("ready"), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            wanted = json.loads(line)  # noqa: TID251 -- the interpreter that runs this has nothing of Retain
            left = iter(range(wanted["calls"]))
            several = await asyncio.gather(*(some(left) for _ in range(wanted["connections"])))
            print(json.dumps([time_ms for times_ms in several for time_ms in times_ms]), flush=True)
        DBOS.destroy()


CONFIG = {"name": "clerk", "system_database_url": f"sqlite:///{sys.argv[1]}/dbos.sqlite", "log_level": "ERROR"}
DBOS(config={**CONFIG, "run_admin_server": False})
asyncio.run(_served(sys.argv[1]))
