"""Count what each operation costs: `python -m benchmarks.costs [--records 1000 10000 50000] [--statements NAME]`.

Trips are calls of D1, a batch being one. Rows are those that D1 bills as read and written, counted by workerd's own SQLite
(`database.py`). Neither depends on the machine. The time is that of a call on this machine, through HTTP to workerd, and
only a hint. Prints a table in Markdown for each size.
"""

from __future__ import annotations

import argparse
import asyncio
import time

from benchmarks.costs.operations import operations


async def measure(count: int, shown: str | None) -> None:
    """Print the table for this many memories, or the statements of the operations whose names contain `shown`."""
    print(f"\n{count:,} memories in one scope\n\n| operation | trips | rows read | rows written | ms |")
    print("|---|---:|---:|---:|---:|")
    async with operations(count) as known:
        for name, operation in known.all().items():
            started = time.perf_counter()
            cost = await known.cost(operation)
            spent = (time.perf_counter() - started) * 1000
            print(f"| {name} | {cost.trips} | {cost.read:,} | {cost.written:,} | {spent:.0f} |", flush=True)
            if shown is not None and shown in name:
                for read, sql in sorted(cost.statements, reverse=True):
                    print(f"    {read:>9,}  {sql[:160]}")


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description="Count what operations cost.")
    parser.add_argument("--records", type=int, nargs="+", default=[1000, 10_000, 50_000])
    parser.add_argument("--statements", help="show the statements of the operations whose names contain this")
    options = parser.parse_args()
    for count in options.records:
        asyncio.run(measure(count, options.statements))


if __name__ == "__main__":
    main()
