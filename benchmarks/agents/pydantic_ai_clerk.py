# mypy: ignore-errors
"""The agent of the benchmark on pydantic-ai, durable by DBOS on SQLite. `own_process` runs it.

Each run is a workflow of its own, reads the last ten episodes, makes three tool steps, and stores an episode: DBOS writes
what each step gave before the next one begins.
"""

import asyncio
import sys
import uuid
from dataclasses import dataclass, field

import aiosqlite
from clerk_process import ASKED, EPISODES, answered, serve
from dbos import DBOS
from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.models.function import AgentInfo, FunctionModel

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
    answer = answered(ASKED, results)
    return ModelResponse(parts=[TextPart(answer) if isinstance(answer, str) else ToolCallPart(*answer)])


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
        await serve(lambda: whole(uuid.uuid4().hex))
        DBOS.destroy()


CONFIG = {"name": "clerk", "system_database_url": f"sqlite:///{sys.argv[1]}/dbos.sqlite", "log_level": "ERROR"}
DBOS(config={**CONFIG, "run_admin_server": False})
asyncio.run(_served(sys.argv[1]))
