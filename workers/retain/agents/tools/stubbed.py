"""Stubbed tools: what an agent gets in place of function tools and the gateway's where nothing outside may be reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from retain.agents.tools.built_in import Tool
from retain.agents.tools.proxied import ProxiedTool
from retain.json_text import JsonObject
from retain.models.chat import ToolSpec


class Stubs(Protocol):
    """The planned tools of one tenant whose agents reach nothing outside."""

    def spec(self, name: str) -> ToolSpec:
        """Return what the model reads of a gateway tool; of one without a stub, its name alone."""
        ...

    def answer(self, name: str, arguments: JsonObject) -> tuple[int, bytes]:
        """Return the planned answer to a call, as an upstream gives it: status and body.

        Raises: NotFound, which the model reads, when none is planned for the call.
        """
        ...


def stubbed_tools(stubs: Stubs, names: Sequence[str], declared: Mapping[str, ToolSpec]) -> list[Tool]:
    """Return a tool for each gateway tool and for each function, whose declaration the model reads as it is.

    A tool without a stub is among them: each call of it is an error that the model reads.
    """
    specs = {name: stubs.spec(name) for name in names} | dict(declared)
    return [_stubbed(spec, stubs) for spec in specs.values()]


def _stubbed(spec: ToolSpec, stubs: Stubs) -> Tool:
    async def upstream(arguments: JsonObject, idempotency_key: str) -> tuple[int, bytes]:  # noqa: ARG001
        return stubs.answer(spec.name, arguments)

    return ProxiedTool(spec, True, upstream)
