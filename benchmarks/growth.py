"""Measure how the cost of a run grows: with episodes, with other instances, with tenants, and with its own steps.

    python -m benchmarks.growth [--most 100000]

On a D1 whose trips and rows are counted, as D1 bills them; the object is on the host's SQLite. Each figure is of one run,
in the middle of five: trips, rows read and written in D1, statements in the object, and the processor's time of this
process, which has no database in it but the object's. Rows and trips do not depend on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.costs.database import Cost, CountedSql, counted_database
from benchmarks.costs.memories import START_MS, FewVectors
from retain.models.chat import ChatReply, ChatRequest, OnText, ToolCall, Usage
from retain.ports import Sql, VectorIndex
from tests.support.instances import Deployment, catalogue

STEP = 5_000
RUNS = 5
CALLS = 25
"""Calls of tools in one answer of the model: `max_turns` is at most 50, so 1,000 calls are 40 answers."""
_CLERK = {
    "type": "clerk",
    "description": "Clerk.",
    "instructions": "Help.",
    "model": {"script": "clerk"},
    "working_memory": True,
    "memory_config": {"episodes": 10, "episodes_from": "agent"},
    "limits": {"max_turns": 50, "context_tokens": 1_000_000},
}
_SCRIPT = {"name": "clerk", "rules": [{"rule": "anything is done", "when": {}, "reply": {"text": "Done."}}]}
EPISODE = "INSERT INTO memory_episodes SELECT one.value ->> 0, 'acme', 'clerk', 'main', one.value ->> 0, 1, 'asked: hello', one.value ->> 1, NULL FROM json_each(?) one"  # noqa: E501
CONVERSATION = "INSERT INTO conversations (tenant_id, agent_type, instance_id, created_at_ms, last_run_at_ms, last_run_id, status, runs) SELECT 'acme', 'clerk', one.value ->> 0, one.value ->> 1, one.value ->> 1, one.value ->> 0, 'completed', 1 FROM json_each(?) one"  # noqa: E501
RUN = "INSERT INTO agent_runs (run_id, tenant_id, agent_type, instance_id, status, texts, input, model, created_at_ms, completed_at_ms) SELECT one.value ->> 0, 'acme', 'clerk', one.value ->> 0, 'completed', 'kept', '{}', 'm', one.value ->> 1, one.value ->> 1 FROM json_each(?) one"  # noqa: E501
TENANT = "INSERT INTO tenants (tenant_id, created_at_ms) SELECT one.value ->> 0, one.value ->> 1 FROM json_each(?) one"


class CallingChat:
    """Implements `ChatModel`: calls a tool this many times, several at once, then answers."""

    name = "calling"

    def __init__(self, steps: int) -> None:
        self._left = steps

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:  # noqa: ARG002
        """Answer. See the class."""
        count = min(self._left, CALLS)
        self._left -= count
        made = tuple(ToolCall(f"call_{number}", "get_working_memory", {"key": "k"}) for number in range(count))
        return ChatReply("" if made else "Done.", made, Usage(3, 2))


class _CountedDeployment(Deployment):
    """A deployment on the counted database. steps: how many tools a run calls."""

    def __init__(self, sql: CountedSql) -> None:
        self.steps = 0
        super().__init__(catalogue(_CLERK, scripts=[_SCRIPT]), chat=lambda _: CallingChat(self.steps))
        self._counted = sql, FewVectors([])

    async def warm(self, instance: str) -> None:
        """Run once, and wait until the run is written: the next run would be counted with it."""
        await self.run("clerk", "hello", instance=instance)
        await self.background.settled()

    def shared(self) -> tuple[Sql, VectorIndex]:
        """Return the counted database, and an index of nothing."""
        return self._counted


@dataclass(frozen=True, slots=True)
class Grown:
    """What one run costs."""

    cost: Cost
    statements: int
    cpu_ms: float

    def __str__(self) -> str:
        cost = self.cost
        return f"{cost.trips} | {cost.read:,} | {cost.written:,} | {self.statements:,} | {self.cpu_ms:.1f}"


async def grown(sql: CountedSql, deployment: Deployment, instances: Sequence[str]) -> Grown:
    """Run once in each instance; return the run in the middle, by its time."""
    runs = []
    for instance in instances:
        sql.cost = Cost()
        del deployment.faults.trace[:]
        started = time.process_time()
        answer = await deployment.run("clerk", "hello", instance=instance)
        await deployment.background.settled()
        spent_ms = (time.process_time() - started) * 1000
        assert answer["status"] == "completed", answer
        statements = sum(point == "local.run" for _, point in deployment.faults.trace)
        runs.append(Grown(sql.cost, statements, spent_ms))
    sql.cost = Cost()  # what comes next is not the last run's
    middle = statistics.median_low([run.cpu_ms for run in runs])
    return next(run for run in runs if run.cpu_ms == middle)


async def fill(sql: CountedSql, statements: Sequence[str], first: int, last: int) -> None:
    """Write rows with these numbers."""
    for start in range(first, last, STEP):
        numbers = range(start, min(start + STEP, last))
        rows = json.dumps([[f"row-{number:07}", START_MS + number] for number in numbers])
        await sql.batch([(statement, (rows,)) for statement in statements])


@asynccontextmanager
async def deployed() -> AsyncIterator[tuple[CountedSql, _CountedDeployment]]:
    """Yield a new database, and a deployment on it."""
    with (
        TemporaryDirectory(prefix="retain-growth-") as folder,
        counted_database(Path(folder)) as sql,
        closing(_CountedDeployment(sql)) as deployment,
    ):
        deployment.clock.set(START_MS + 1_000_000_000)
        yield sql, deployment


async def by_size(statements: Sequence[str], sizes: Sequence[int]) -> AsyncIterator[tuple[int, Grown]]:
    """Yield what a run costs at each size, the smallest first. statements: what makes the rows."""
    async with deployed() as (sql, deployment):
        filled = 0
        for size in sizes:
            await fill(sql, statements, filled, size)
            filled = size
            await deployment.warm(f"warm-{size}")
            yield size, await grown(sql, deployment, [f"new-{size}-{number}" for number in range(RUNS)])


async def by_rows(name: str, statements: Sequence[str], sizes: Sequence[int]) -> None:
    """Print a row for each size. statements: what makes the rows."""
    async for size, found in by_size(statements, sizes):
        print(f"| {size:,} {name} | {found} |", flush=True)


async def by_steps(sizes: Sequence[int]) -> None:
    """Print a row for each number of steps."""
    for size in sizes:
        async with deployed() as (sql, deployment):
            await deployment.warm("warm")
            deployment.steps = size
            found = await grown(sql, deployment, [f"long-{number}" for number in range(3)])
            print(f"| {size:,} calls of tools | {found} |", flush=True)


async def measure(most: int) -> None:
    """Print the table."""
    print(
        "| | trips | rows read | rows written | statements in the object | CPU ms, host |\n|---|---:|---:|---:|---:|---:|"
    )
    sizes = [size for size in (1_000, 10_000, 100_000) if size <= most]
    await by_rows("episodes of the agent", [EPISODE], [size - 100 for size in sizes])
    await by_rows("other instances, each with a run", [CONVERSATION, RUN], [1, 100, *sizes[:2]])
    await by_rows("other tenants", [TENANT], [1, 100, *sizes[:2]])
    await by_steps([10, 100, 1_000])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--most", type=int, default=100_000, help="most episodes")
    asyncio.run(measure(parser.parse_args().most))


if __name__ == "__main__":
    main()
