"""Stubbed tools: what an agent gets for function tools and the gateway's in an evaluation. They reach nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retain.agents.tools.built_in import Tool
from retain.agents.tools.proxied import ProxiedTool
from retain.evaluation.dataset import Stub
from retain.evaluation.scratch import stubbed_answer
from retain.models.chat import ToolSpec


def stubbed_tools(stubs: Mapping[str, Stub], names: Sequence[str], declared: Mapping[str, ToolSpec]) -> list[Tool]:
    """Return a tool for each name and for each function, whose declaration the model reads as it is.

    One without a stub is there as well: each call of it is an error that the model reads.
    """
    specs = {name: _spec(name, stubs.get(name)) for name in names} | dict(declared)
    return [_stubbed(spec, stubs.get(name)) for name, spec in specs.items()]


def _spec(name: str, stub: Stub | None) -> ToolSpec:
    if stub is None:
        return ToolSpec(name, "", {"type": "object"})
    return ToolSpec(name, stub.description, stub.parameters)


def _stubbed(spec: ToolSpec, stub: Stub | None) -> Tool:
    async def upstream(arguments: Mapping[str, Any], idempotency_key: str) -> tuple[int, bytes]:  # noqa: ARG001
        return stubbed_answer(stub, arguments)

    return ProxiedTool(spec, True, upstream)
