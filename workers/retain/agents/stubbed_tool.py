"""Stubbed tools: what an agent gets for the gateway's tools in an evaluation. They reach nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retain.agents.proxied_tool import ProxiedTool
from retain.agents.tools import Tool
from retain.evaluation.dataset import Stub
from retain.evaluation.scratch import stubbed_answer
from retain.models.chat import ToolSpec


def stubbed_tools(stubs: Mapping[str, Stub], names: tuple[str, ...]) -> list[Tool]:
    """Return a tool for each name. One without a stub is there as well: each call of it is an error the model reads."""
    return [_stubbed(name, stubs.get(name)) for name in names]


def _stubbed(name: str, stub: Stub | None) -> Tool:
    async def upstream(arguments: Mapping[str, Any], idempotency_key: str) -> tuple[int, bytes]:  # noqa: ARG001
        return stubbed_answer(stub, arguments)

    if stub is None:
        return ProxiedTool(ToolSpec(name, "", {"type": "object"}), True, upstream)
    return ProxiedTool(ToolSpec(name, stub.description, stub.parameters), True, upstream)
