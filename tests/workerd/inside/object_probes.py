"""Probes that run in a Durable Object. The table `note` is the object's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.workerd.inside.platform import bindings
from tests.workerd.inside.probes import write_later

Probe = Callable[[Any, Any, dict[str, Any]], Awaitable[Any]]
_TABLE = "CREATE TABLE IF NOT EXISTS note (text TEXT)"


def note_alarm(storage: Any, alarm_info: Any) -> None:
    """Note in the object that its alarm fired; fail at first if it was asked to. Raises: RuntimeError."""
    sql = bindings.DurableSql(storage)
    sql.run(_TABLE)
    if sql.run("SELECT 1 FROM note WHERE text = 'fail at first'").rows:
        if alarm_info.retryCount == 0:
            raise RuntimeError("as it was asked to")
        sql.run("INSERT INTO note VALUES (?)", f"repeated {alarm_info.retryCount}")
        return
    sql.run("INSERT INTO note VALUES ('alarm')")


async def _notes(ctx: Any, _env: Any, _asked: dict[str, Any]) -> Any:
    sql = bindings.DurableSql(ctx.storage)
    sql.run(_TABLE)
    return [row["text"] for row in sql.run("SELECT text FROM note ORDER BY rowid").rows]


async def _background(_ctx: Any, env: Any, asked: dict[str, Any]) -> Any:
    bindings.in_background(write_later(env, asked["marker"]))
    return {}


async def _interrupted(ctx: Any, _env: Any, asked: dict[str, Any]) -> Any:
    """Write, await, write twice, and end as `asked["end"]` says."""
    sql = bindings.DurableSql(ctx.storage)
    sql.run(_TABLE)
    sql.run("INSERT INTO note VALUES ('before the await')")
    await ctx.storage.sync()
    sql.run("INSERT INTO note VALUES ('after it')")
    if asked["end"] == "abort":
        ctx.abort("planned")
    if asked["end"] == "raise":
        raise ValueError("planned")
    sql.run("INSERT INTO note VALUES ('last')")
    return {}


async def _alarm(ctx: Any, _env: Any, asked: dict[str, Any]) -> Any:
    """Set the alarm to each of the times in turn; return what it says before and after each."""
    alarm = bindings.DurableAlarm(ctx.storage)
    seen = [await alarm.get()]
    for at_ms in asked["times_ms"]:
        await alarm.set(at_ms)
        seen.append(await alarm.get())
    return seen


async def _alarm_soon(ctx: Any, _env: Any, asked: dict[str, Any]) -> Any:
    if asked.get("fails"):
        sql = bindings.DurableSql(ctx.storage)
        sql.run(_TABLE)
        sql.run("INSERT INTO note VALUES ('fail at first')")
    await bindings.DurableAlarm(ctx.storage).set(bindings.now_ms())
    await asyncio.sleep(0)
    return {}


PROBES: dict[str, Probe] = {
    "notes": _notes,
    "background": _background,
    "interrupted": _interrupted,
    "alarm": _alarm,
    "alarm_soon": _alarm_soon,
}
