"""Measure the scheduled work as tenants grow: what one brief does, and how many of the next catch-ups do the rest.

    python -m benchmarks.scheduled [--tenants 100 1000 10000]

The Worker on the host, with every binding. Each tenant has a memory that was not compared yet, mutations without a seal, and
no backup of the day. Printed are the calls of D1 of the brief and of the largest catch-up (an invocation has 1,000), for how
many tenants the brief had done each step, and after how many catch-ups, one every five minutes, all had it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import time
from collections.abc import Mapping, Sequence

from tests.shell.worker import Worker, serving

BRIEF, CATCH_UP = "0 4 * * *", "*/5 * * * *"
FIVE_MINUTES_MS = 5 * 60_000
STEP = 500
MOST = 288
"""Catch-ups of one day."""
_LEFT: Mapping[str, str] = {
    "compared": "SELECT COUNT(DISTINCT tenant_id) AS n FROM memory_likeness WHERE key IS NULL",
    "sealed": "SELECT COUNT(*) AS n FROM tenants t WHERE t.tenant_id <> 'default'"
    " AND t.tenant_id IN (SELECT tenant_id FROM mutation_log)"
    " AND t.tenant_id NOT IN (SELECT tenant_id FROM world_history WHERE kind = 'mutations_sealed')",
    "backed up": "SELECT COUNT(*) AS n FROM tenants t WHERE t.tenant_id <> 'default' AND t.tenant_id NOT IN"
    " (SELECT tenant_id FROM backup_jobs WHERE kind = 'backup' AND state = 'completed')",
}
"""Which tenants a step was not done for."""
_COLUMNS = "SELECT name FROM pragma_table_info('memory_records')"


async def fill(worker: Worker, tenants: int) -> None:
    """Make tenants with one memory each: the first through the API, the others as copies of its row."""
    await worker.tenant("tenant-00000")
    stored = {"content": "Prefers tea in the morning.", "agent_type": "sdr"}
    answer = await worker.request("POST", "/admin/tenants/tenant-00000/memories", stored)
    assert answer.status == 201, answer.body
    columns = [row["name"] for row in await worker.rows(_COLUMNS) if row["name"] != "number"]
    changed = {
        "id": "substr(kept.id, 1, 20) || printf('%06d', one.value)",
        "tenant_id": "printf('tenant-%05d', one.value)",
    }
    chosen = ", ".join(changed.get(name, f"kept.{name}") for name in columns)
    copied = f"INSERT INTO memory_records ({', '.join(columns)}) SELECT {chosen} FROM memory_records kept, json_each(?) one WHERE kept.tenant_id = 'tenant-00000'"  # noqa: E501, S608
    made = "INSERT INTO tenants (tenant_id, created_at_ms) SELECT printf('tenant-%05d', value), ? FROM json_each(?)"
    for first in range(1, tenants, STEP):
        numbers = json.dumps(list(range(first, min(first + STEP, tenants))))
        await worker.rows(made, worker.clock(), numbers)
        await worker.rows(copied, numbers)


async def left(worker: Worker) -> dict[str, int]:
    """Return for how many tenants each step is not done."""
    return {name: int((await worker.rows(sql))[0]["n"]) for name, sql in _LEFT.items()}


async def invoked(worker: Worker, cron: str) -> int:
    """Let a schedule fire; return its calls of D1."""
    calls = worker.db.trips = 0
    await worker.cron(cron)
    await worker.settled()
    return worker.db.trips - calls


async def measure(tenants: int) -> None:
    """Print a row."""
    async with serving(BACKUPS_DAILY="true") as worker:
        await fill(worker, tenants)
        worker.clock.advance(24 * 3_600_000)
        started = time.process_time()
        calls = await invoked(worker, BRIEF)
        cpu_s = time.process_time() - started
        after = await left(worker)
        done = ", ".join(f"{name} {tenants - count:,}" for name, count in after.items())
        ended: dict[str, int] = {name: 0 for name, count in after.items() if count == 0}
        most = 0
        for number in range(1, MOST + 1):
            if len(ended) == len(_LEFT):
                break
            worker.clock.advance(FIVE_MINUTES_MS)
            most = max(most, await invoked(worker, CATCH_UP))
            for name, count in (await left(worker)).items():
                if count == 0:
                    ended.setdefault(name, number)
        rest = ", ".join(f"{name} {ended.get(name, 'never')}" for name in _LEFT)
        print(f"| {tenants:,} | {calls} | {cpu_s:.1f} | {done} | {most} | {rest} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tenants", type=int, nargs="+", default=[100, 1_000, 10_000])
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    columns: Sequence[str] = (
        "tenants",
        "calls of the brief",
        "CPU s, host",
        "done by the brief",
        "most calls of a catch-up",
        "all done after so many catch-ups",
    )
    print(f"| {' | '.join(columns)} |\n|{'---:|' * len(columns)}")
    for count in options.tenants:
        asyncio.run(measure(count))


if __name__ == "__main__":
    main()
