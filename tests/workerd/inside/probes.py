"""Probes that run in the Worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from retain import errors
from tests.workerd.inside.platform import bindings

Probe = Callable[[Any, dict[str, Any]], Awaitable[Any]]


async def write_later(env: Any, marker: str) -> None:
    """Write the marker into D1 after several turns of the event loop, long after the answer left."""
    sql = bindings.D1(env.DB)
    await sql.run("CREATE TABLE IF NOT EXISTS background_marker (marker TEXT PRIMARY KEY)")
    await asyncio.sleep(0.05)
    await sql.run("INSERT INTO background_marker VALUES (?)", marker)


async def _background(env: Any, asked: dict[str, Any]) -> Any:
    bindings.in_background(write_later(env, asked["marker"]))
    return {}


async def _failing_background(_env: Any, asked: dict[str, Any]) -> Any:
    async def fail() -> None:
        raise {"retain": errors.Unavailable("planned"), "other": ValueError("planned")}[asked["kind"]]

    bindings.in_background(fail())
    return {}


async def _marked(env: Any, asked: dict[str, Any]) -> Any:
    sql = bindings.D1(env.DB)
    await sql.run("CREATE TABLE IF NOT EXISTS background_marker (marker TEXT PRIMARY KEY)")
    return len((await sql.run("SELECT 1 FROM background_marker WHERE marker = ?", asked["marker"])).rows) == 1


async def _refused(env: Any, asked: dict[str, Any]) -> Any:
    """Call an instance that refuses; return the error as it arrives."""
    instances = bindings.DurableInstances(getattr(env, asked["binding"]))
    try:
        answer = await instances.call(asked["name"], asked["method"], asked["request"])
    except errors.RetainError as error:
        return shown_error(error)
    return {"answer": answer}


def shown_error(error: errors.RetainError) -> dict[str, Any]:
    """Return everything that a caller can see of the error."""
    return {
        "class": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "details": dict(error.details),
    }


def described_error(shown: Mapping[str, Any]) -> Exception:
    """Return the error that `shown_error` describes, or a ValueError for a class that is none of Retain's."""
    if shown["class"] == "ValueError":
        return ValueError(shown["message"])
    kind: type[errors.RetainError] = getattr(errors, shown["class"])
    return kind(shown["message"], code=shown["code"], **shown["details"])


PROBES: dict[str, Probe] = {
    "background": _background,
    "failing_background": _failing_background,
    "marked": _marked,
    "refused": _refused,
}
