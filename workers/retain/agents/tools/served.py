"""Tools of MCP servers: those that a definition names, as their server lists them, or stubs of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from retain.agents.definitions import McpServerConfig, served_name
from retain.agents.tools.built_in import CallContext, Tool, ToolResult
from retain.agents.tools.kept_lists import KeptLists
from retain.errors import NotFound, RetainError
from retain.json_text import JsonObject
from retain.mcp.client import McpClient
from retain.mcp.tools import McpTool
from retain.models.chat import ToolSpec
from retain.ports import Clock

LISTED_MS = 60_000
"""For how long a server's list counts as current."""
_REMEMBERED = 256

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServedTool:
    """A tool of an MCP server. name: the server's own for it."""

    spec: ToolSpec
    idempotent: bool
    name: str
    client: McpClient

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Return what the server answers. Raises: as `McpClient.call`."""
        return ToolResult(await self.client.call(self.name, arguments, context.key, self.spec.parameters))


@dataclass
class _Known:
    client: McpClient
    names: frozenset[str] = frozenset()
    tools: list[McpTool] = field(default_factory=list)
    until_ms: int = 0


class ServedTools:
    """The servers of every tenant in this isolate, with what each last listed. Bounded: the oldest is forgotten."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[tuple[str, str], _Known] = {}

    async def tools(
        self, tenant_id: str, server: str, config: McpServerConfig, client: McpClient, kept: KeptLists
    ) -> list[Tool]:
        """Return the tools that the definition names and the server has.

        A server that does not answer leaves what it last listed in this isolate or for this instance, or nothing; the log
        says so. client: used where this isolate knows none for the server. kept: the instance's.
        """
        known = self._known.get((tenant_id, server))
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.pop(next(iter(self._known)))
            known = self._known[tenant_id, server] = _Known(client)
        wanted = frozenset(config.tools) | known.names
        earlier: list[McpTool] = []
        if known.until_ms <= self._clock() or not frozenset(config.tools) <= known.names:
            try:
                known.tools = await known.client.tools(wanted)
            except NotFound:  # the tenant's gateway has no such server any more
                known.names, known.tools = frozenset(), []
            except RetainError as error:
                listed = {tool.name for tool in known.tools}
                earlier = [tool for tool in kept.tools(server) if tool.name not in listed]
                place = {"tenant_id": tenant_id, "server": server}
                why = {"code": error.code, "upstream_status": error.details.get("upstream_status")}
                number = len(known.tools) + len(earlier)
                _log.warning("an MCP server did not list its tools", extra={**place, **why, "known": number})
            else:
                known.names, known.until_ms = wanted, self._clock() + LISTED_MS
        tools = [tool for tool in (*known.tools, *earlier) if tool.name in config.tools]
        kept.keep(server, tools)
        return [_served(server, config, tool, known.client) for tool in tools]


def _served(server: str, config: McpServerConfig, tool: McpTool, client: McpClient) -> ServedTool:
    hinted = tool.hints.get("readOnlyHint", False) or tool.hints.get("idempotentHint", False)
    spec = ToolSpec(served_name(server, tool.name), tool.description, tool.input_schema)
    return ServedTool(
        spec, tool.name in config.idempotent if config.idempotent is not None else hinted, tool.name, client
    )


def names_of(servers: Mapping[str, McpServerConfig]) -> tuple[str, ...]:
    """Return the names by which the model calls the tools of these servers."""
    return tuple(served_name(server, tool) for server, config in servers.items() for tool in config.tools)
