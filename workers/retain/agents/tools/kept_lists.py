"""What MCP servers listed last, in the instance's SQLite.

A run keeps its tools when its isolate has ended and a server is away.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from retain.json_text import read_own_json
from retain.mcp.tools import McpTool
from retain.ports import ObjectSql


class KeptLists:
    """The last list of each server, of the tools that the instance's agent has. Nothing here reaches D1."""

    def __init__(self, local: ObjectSql) -> None:
        self._local = local

    def keep(self, server: str, tools: Sequence[McpTool]) -> None:
        """Keep a server's list, unless it is the one that is kept."""
        text = json.dumps([[tool.name, tool.description, dict(tool.input_schema), dict(tool.hints)] for tool in tools])
        if text != self._text(server):
            self._local.run("INSERT OR REPLACE INTO served_lists (server, tools) VALUES (?, ?)", server, text)

    def tools(self, server: str) -> list[McpTool]:
        """Return a server's list, without any that is kept an empty one."""
        return [McpTool(*entry) for entry in read_own_json(self._text(server) or "[]")]

    def forget(self) -> None:
        """Forget every list. The next run asks the servers again."""
        self._local.run("DELETE FROM served_lists")

    def _text(self, server: str) -> str | None:
        rows = self._local.run("SELECT tools FROM served_lists WHERE server = ?", server).rows
        return str(rows[0]["tools"]) if rows else None
