"""An erasure by mention where much is kept: a slice reads a bounded part of it, and nothing is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retain.lifecycle.erasure.eraser import Erasure
from retain.ports import Sql, SqlResult, SqlValue, Statement
from tests.lifecycle.world import World, living

NAME = "Zelda Quux"
EVENT_BYTES = 200_000
EVENTS = 8
RUNS = 30
MESSAGE_BYTES = 100_000


class Weighed:
    """`Sql` that notes the bytes of text in the largest answer. Implements `Sql`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self.most = 0

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """Run one statement. See the port."""
        return (await self.batch([(sql, values)]))[0]

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """Run the statements as one transaction. See the port."""
        results = await self._sql.batch(statements)
        texts = [cell for result in results for row in result.rows for cell in row.values() if isinstance(cell, str)]
        self.most = max(self.most, sum(len(text) for text in texts))
        return results


async def _erased(world: World) -> Weighed:
    weighed = Weighed(world.sql)
    stores = replace(world.stores(), sql=weighed)
    while (await Erasure(stores).erase_subject("acme", NAME, match="mention")).retry_after_ms is not None:
        await world.rest()
    return weighed


async def test_a_mention_is_erased_from_runs_that_are_too_large_to_be_read_together() -> None:
    runs = [f"{number:026}" for number in range(RUNS)]
    naming = {0, 9, RUNS - 1}
    with living() as world:
        for number, run_id in enumerate(runs):
            place = {"tenant_id": "acme", "run_id": run_id}
            world.plant("agent_runs", **place, agent_type="sdr", instance_id="a", status="completed", input="{}")
            for seq in range(EVENTS):
                text = f'"{"x" * EVENT_BYTES} {NAME if number in naming and seq == EVENTS - 1 else ""}"'
                world.plant("run_events", **place, seq=seq, data=text)
        weighed = await _erased(world)
        assert world.mentions(NAME) == []
        kept = {row["run_id"] for row in world.sql_now("SELECT DISTINCT run_id FROM run_events")}
        assert kept == set(runs) - {runs[number] for number in naming}
        assert weighed.most < 4_000_000 + EVENTS * EVENT_BYTES + 100_000


async def test_a_mention_is_erased_from_messages_that_are_too_large_to_be_read_together() -> None:
    with living() as world:
        for number in range(120):
            text = "x" * MESSAGE_BYTES + (f" {NAME}" if number % 40 == 39 else "")
            world.plant("memory_episodes", episode_id=f"{number:03}", tenant_id="acme", instance_id="a", content=text)
        weighed = await _erased(world)
        assert world.mentions(NAME) == []
        assert len(world.sql_now("SELECT 1 FROM memory_episodes")) == 117
        assert weighed.most < 1_000_000
