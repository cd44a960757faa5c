"""The gateway's tools over the Model Context Protocol: `POST /mcp`, from KV and the upstreams alone."""

from __future__ import annotations

import logging
from hashlib import sha256

from retain.errors import InvalidInput, NoSuchTool, RetainError, Unavailable, UpstreamFailed
from retain.gateway.keys import ANY_TOOL, Grant
from retain.gateway.proxy import ToolDescription, ToolProxy
from retain.gateway.tool_config import tool_name_in_kv
from retain.identifiers import check_tool_name
from retain.json_text import JsonObject
from retain.mcp.tools import McpAnswer, McpTool, McpToolPage
from retain.ports import Kv

NAME = "retain-gateway"
INSTRUCTIONS = "Tools of one tenant. Each call goes to the tool's own server with the tenant's credential."
PAGE = 50
"""Tools per page: each costs one read of KV, all in one call."""
MAX_ANSWER_BYTES = 1_048_576
"""Most bytes of a tool's answer, and of an MCP server's to an agent.

It becomes text in JSON, which may take twelve times as much of the isolate's memory.
"""

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
        """Return tools in order of name. One with an unusable configuration is left out; calling it says why.

        So does calling one whose schema cannot be compiled, which is listed.
        """
        names, following = await self._names(cursor)
        found = await self._proxy.describe_each(self._grant.tenant_id, names)
        tools = [_listed(name, described) for name, described in zip(names, found, strict=True)]
        return McpToolPage([tool for tool in tools if tool is not None], following)

    async def call(self, name: str, arguments: JsonObject) -> McpAnswer:
        """Call the tool's upstream.

        An answer that is not a success is a failed call (code `upstream_status`), with the upstream's own words. Raises:
        UpstreamFailed (code `invalid_result`) for an answer that is not text.
        """
        try:
            check_tool_name(name)
        except InvalidInput as error:
            raise NoSuchTool("the tenant has no such tool") from error
        if not self._grant.allows(name):
            raise NoSuchTool("the API key does not allow this tool", tool=name)
        given = await self._proxy.call(
            self._grant.tenant_id,
            name,
            arguments,
            idempotency_key=self._idempotency_key,
            most_bytes=MAX_ANSWER_BYTES,
        )
        refusal = None if 200 <= given.status < 300 else _of_status(given.status)
        try:
            return McpAnswer(given.body.decode(), refusal)
        except UnicodeDecodeError as error:
            if refusal is not None:
                raise refusal from error
            size = len(given.body)
            raise UpstreamFailed(f"the tool answered {size} bytes that are not text", code="invalid_result") from error

    async def _names(self, cursor: str | None) -> tuple[list[str], str | None]:
        if ANY_TOOL not in self._grant.scopes:
            names = sorted(set(self._grant.scopes))
            if cursor is not None and cursor not in names:
                raise InvalidInput("the cursor is not valid", code="invalid_cursor")
            if cursor is not None:
                names = names[names.index(cursor) + 1 :]
            return names[:PAGE], names[PAGE - 1] if len(names) > PAGE else None
        prefix = tool_name_in_kv(self._grant.tenant_id, "")
        listed = await self._kv.list(prefix, cursor=None if cursor is None else _kv_cursor(cursor), limit=PAGE)
        names = [key.removeprefix(prefix) for key in listed.keys]
        return names, None if listed.cursor is None else _signed(listed.cursor)


def _listed(name: str, described: ToolDescription | RetainError) -> McpTool | None:
    """Return the tool as it is listed, None for one that cannot be used or is for agents alone."""
    if isinstance(described, RetainError):
        _log.warning("tool not listed", extra={"tool": name, "code": described.code})
        return None
    if described.agents_only:
        return None
    hints = {"idempotentHint": described.idempotent}
    return McpTool(name, described.description, described.parameters, hints)


def _of_status(status: int) -> RetainError:
    """Return what a status other than success means for the caller. It may pass if it is 429 or 5xx."""
    message = f"the tool's upstream answered {status}"
    if status == 429 or status >= 500:
        return Unavailable(message, code="upstream_status", upstream_status=status)
    return UpstreamFailed(message, code="upstream_status", upstream_status=status)


def _signed(cursor: str) -> str:
    """Return KV's cursor with a checksum: KV answers a cursor that it never gave with an empty page."""
    return f"{sha256(cursor.encode()).hexdigest()[:8]}.{cursor}"


def _kv_cursor(signed: str) -> str:
    cursor = signed.partition(".")[2]
    if _signed(cursor) != signed:
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    return cursor
