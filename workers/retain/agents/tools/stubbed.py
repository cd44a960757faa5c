"""Stubbed tools: they replace function tools and the gateway's where an agent must reach nothing outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from retain.agents.tools.built_in import Tool
from retain.agents.tools.proxied import ProxiedTool
from retain.json_text import JsonObject
from retain.models.chat import ToolSpec


class Stubs(Protocol):
    """The stubs of one tenant whose agents reach nothing outside."""

    def spec(self, name: str) -> ToolSpec:
        """Return what the model reads of a gateway tool; only its name if it has no stub."""
        ...

    def answer(self, name: str, arguments: JsonObject) -> tuple[int, bytes]:
        """Return the planned answer to a call, as an upstream's status and body.

        Raises: NotFound, which the model reads, when no answer is planned for the call.
        """
        ...


def stubbed_tools(stubs: Stubs, names: Sequence[str], declared: Mapping[str, ToolSpec]) -> list[Tool]:
    """Return a tool for each gateway tool, and for each function with its declaration unchanged.

    A tool without a stub is included: the model reads an error for each call of it.
    """
    specs = {name: stubs.spec(name) for name in names} | dict(declared)
    return [_stubbed(spec, stubs) for spec in specs.values()]


def _stubbed(spec: ToolSpec, stubs: Stubs) -> Tool:
    async def upstream(arguments: JsonObject, idempotency_key: str) -> tuple[int, bytes]:  # noqa: ARG001
        return stubs.answer(spec.name, arguments)

    return ProxiedTool(spec, True, upstream)
