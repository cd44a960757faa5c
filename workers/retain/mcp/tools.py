"""What an MCP server serves: tools that describe themselves and answer calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from retain.errors import RetainError
from retain.json_text import JsonObject


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as clients see it.

    input_schema: JSON Schema of type object. hints: the protocol's annotations, such as `idempotentHint`.
    output_schema: JSON Schema of the structured content of each answer that reports success; None if they have none.
    """

    name: str
    description: str
    input_schema: Mapping[str, object]
    hints: Mapping[str, bool] = field(default_factory=dict)
    output_schema: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class McpToolPage:
    """Some of the tools, and the cursor of the next page (None at the end)."""

    tools: Sequence[McpTool]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class McpAnswer:
    """The result of a call. refusal: what went wrong, if it did; the text is then what the tool itself answered.

    structured: the same as data, which fits the tool's output schema.
    """

    text: str
    refusal: RetainError | None = None
    structured: Mapping[str, object] | None = None


class McpTools(Protocol):
    """The tools that one caller may use. Created once the caller is authenticated."""

    async def page(self, cursor: str | None) -> McpToolPage:
        """Return tools in a fixed order. Raises: InvalidInput (code `invalid_cursor`)."""
        ...

    async def call(self, name: str, arguments: JsonObject) -> McpAnswer:
        """Call a tool once.

        Raises: NotFound (code `no_such_tool`) for a tool that the caller does not have. Any other RetainError is
            reported to the model as a failed call.
        """
        ...
