"""Function tools as a user writes them, for tests."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from retain.agents.tools.functions import ToolContext, tool
from retain.errors import NotFound
from retain.errors.codes import ForeignCode
from retain.memory.facts import Fact, learn, recall
from retain.memory.records.record import RecordSource

sent: list[tuple[str, str]] = []
"""What `send_letter` sent: text and idempotency key."""


@dataclass
class Quote:
    """An answer that is not a text."""

    order: str
    price: float
    on: date


@tool(idempotent=True)
async def quote(
    order: str, speed: Literal["slow", "fast"] = "slow", weight_kg: Annotated[float, Field(gt=0)] = 1.0
) -> Quote:
    """Say what shipping costs.

    Prices are per kilogram.

    order: the order's number,
        as AB-1003.
    speed: how fast.
    """
    return Quote(order, weight_kg * (9 if speed == "fast" else 4), date(2026, 3, 1))


@tool(idempotent=True)
def read_mail() -> dict[str, str]:
    """Read the newest mail."""
    return {"body": "Please call me back.\nZelda Quux\nH\u00f4tel Zo\u00eb"}


@tool
def send_letter(text: str, *, context: ToolContext) -> str:
    """Send a letter.

    text: what it says.
    """
    sent.append((text, context.idempotency_key))
    return f"sent for {context.tenant_id}/{context.agent_type}/{context.instance_id}"


@tool
def who_and_when(context: ToolContext) -> dict[str, object]:
    """Say for whom and when."""
    user = None if context.user is None else context.user.to_json()
    return {
        "user": user,
        "metadata": dict(context.metadata),
        "conversation": context.conversation,
        "date": context.date.isoformat(),
    }


@tool(requires_approval=True)
def burn_files(folder: str) -> str:
    """Burn the files of a folder."""
    sent.append((folder, "burnt"))
    return "burnt"


@tool(idempotent=True)
async def note_fact(fact: str, context: ToolContext) -> list[str]:
    """Remember a fact and return what is known like it."""
    source = RecordSource("agent", run_id=context.run_id, step=context.turn)
    await learn(context.memory, Fact(fact, "is_noted_by", context.agent_type), source)
    await context.working.set("last", fact)
    return [record.content for record in await recall(context.memory, fact)]


ENDINGS: dict[str, type[BaseException]] = {
    "interrupts": KeyboardInterrupt,
    "is cancelled": asyncio.CancelledError,
    "closes its caller": GeneratorExit,
    "recurses": RecursionError,
    "has no memory": MemoryError,
}


@tool
async def raises(what: str) -> str:
    """Raise something that ends more than a call."""
    await asyncio.sleep(0)
    raise ENDINGS[what]


class EndOfTimeError(BaseException):
    """An error that no `except Exception` catches."""


@tool
def fails(
    how: Literal["known", "unknown", "unprintable", "exits", "ends everything", "not a number", "half a letter", "nan"],
) -> object:
    """Fail."""
    if how == "exits":
        sys.exit(3)
    if how == "ends everything":
        raise EndOfTimeError
    if how == "not a number":
        return {"x": [1.0, float("nan")]}
    if how == "half a letter":
        return "x \ud83d"
    if how == "nan":
        return {"x": "NaN, Infinity"}
    if how == "known":
        raise NotFound("there is no such order", code=ForeignCode("no_such_order"))
    if how == "unknown":
        raise ZeroDivisionError("secret")
    return object()


def undeclared(text: str) -> str:
    """Is an ordinary function."""
    return text
