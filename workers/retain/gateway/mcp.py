"""The gateway's tools over the Model Context Protocol: `POST /mcp`, from KV and the upstreams alone."""

from __future__ import annotations

import asyncio
import logging

from retain.errors import InvalidInput, Misconfigured, NoSuchTool, NotFound
from retain.gateway.keys import ANY_TOOL, Grant
from retain.gateway.proxy import ToolProxy
from retain.gateway.tool_config import tool_name_in_kv
from retain.identifiers import check_tool_name
from retain.json_text import JsonObject
from retain.mcp.tools import McpAnswer, McpTool, McpToolPage
from retain.ports import Kv

NAME = "retain-gateway"
INSTRUCTIONS = "Tools of one tenant. Each call goes to the tool's own server with the tenant's credential."
PAGE = 50
"""Tools per page: each costs one read of KV."""

_log = logging.getLogger(__name__)


class GrantedTools:
    """The tools that an API key allows. A call reads KV twice, as over REST; a page reads each of its tools.

    idempotency_key: the request's, sent to the upstream.
    """

    def __init__(self, kv: Kv, proxy: ToolProxy, grant: Grant, idempotency_key: str | None) -> None:
        self._kv = kv
        self._proxy = proxy
        self._grant = grant
        self._idempotency_key = idempotency_key

    async def page(self, cursor: str | None) -> McpToolPage:
        """Return tools in order of name. One with an unusable configuration is left out; calling it says why."""
        names, following = await self._names(cursor)
        found = await asyncio.gather(*(self._described(name) for name in names))
        return McpToolPage([tool for tool in found if tool is not None], following)

    async def call(self, name: str, arguments: JsonObject) -> McpAnswer:
        """Call the tool's upstream. An answer that is not a success is a failed call, with the upstream's own words."""
        try:
            check_tool_name(name)
        except InvalidInput as error:
            raise NoSuchTool("the tenant has no such tool") from error
        if not self._grant.allows(name):
            raise NoSuchTool("the API key does not allow this tool", tool=name)
        given = await self._proxy.call(self._grant.tenant_id, name, arguments, idempotency_key=self._idempotency_key)
        try:
            text = given.body.decode()
        except UnicodeDecodeError:
            return McpAnswer(f"the tool answered {len(given.body)} bytes that are not text", failed=True)
        return McpAnswer(text, failed=not 200 <= given.status < 300)

    async def _names(self, cursor: str | None) -> tuple[list[str], str | None]:
        if ANY_TOOL not in self._grant.scopes:
            names = sorted(set(self._grant.scopes))
            if cursor is not None:
                names = [name for name in names if name > check_tool_name(cursor)]
            return names[:PAGE], names[PAGE - 1] if len(names) > PAGE else None
        prefix = tool_name_in_kv(self._grant.tenant_id, "")
        listed = await self._kv.list(prefix, cursor=cursor, limit=PAGE)
        return [key.removeprefix(prefix) for key in listed.keys], listed.cursor

    async def _described(self, name: str) -> McpTool | None:
        try:
            described = await self._proxy.describe(self._grant.tenant_id, name)
        except (NotFound, Misconfigured) as error:
            _log.warning("tool not listed", extra={"tool": name, "code": error.code})
            return None
        hints = {"idempotentHint": described.idempotent}
        return McpTool(name, described.description, described.parameters, hints)
