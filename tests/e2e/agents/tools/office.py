"""Function tools for the tests of runs."""

from __future__ import annotations

import asyncio
import sys

from retain.agents.tools.functions import ToolContext, tool


@tool(idempotent=True)
async def take_time(seconds: float) -> str:
    """Take some time."""
    await asyncio.sleep(seconds)
    return f"took {seconds} s"


@tool(idempotent=True)
def quit_process() -> str:
    """Quit."""
    sys.exit(3)


_ENDINGS: dict[str, type[BaseException]] = {
    "interrupt": KeyboardInterrupt,
    "cancellation": asyncio.CancelledError,
    "closing": GeneratorExit,
    "out of memory": MemoryError,
}


@tool(idempotent=True)
async def end_badly(how: str) -> str:
    """End in a way that ends more than a call."""
    await asyncio.sleep(0.01)
    if how == "recursion":
        return await end_badly(how)
    raise _ENDINGS[how]


@tool(requires_approval=True)
async def issue_refund(order: str, context: ToolContext) -> dict[str, str]:
    """Pay the price of an order back.

    order: its number.
    """
    await context.working.set("refunded", order)
    return {"refunded": order, "key": context.idempotency_key}
