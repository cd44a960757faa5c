"""The proxy over HTTP: `POST /api/v1/tools/{tool_name}`, and the same tools over MCP."""

from __future__ import annotations

from retain.errors import Forbidden, InvalidInput, MethodNotAllowed, NotFound
from retain.gateway.keys import Grant, authenticate, presented_key
from retain.gateway.proxy import ToolProxy
from retain.gateway.settings import GatewaySettings
from retain.http import Request, Response
from retain.identifiers import check_tool_name
from retain.ports import Clock, Crypto, Fetch, Kv

PREFIX = "/api/v1/tools/"
"""Every path of the gateway's REST side starts with this."""
MCP_PATH = "/mcp"


class Gateway:
    """Answers tool calls. Built as `ToolProxy` is, from the same few things, and once an isolate.

    tools: the proxy itself, for callers that have authenticated in another way.
    """

    def __init__(self, kv: Kv, fetch: Fetch, crypto: Crypto, clock: Clock, settings: GatewaySettings) -> None:
        self._kv = kv
        self._clock = clock
        self.tools = ToolProxy(kv, fetch, crypto, clock, settings)

    async def handle(self, request: Request) -> Response:
        """Answer one request. At most three KV reads: the API key, then the tool and its credential at the same time.

        Raises: what `ToolProxy.call` raises; Unauthenticated (code `missing_api_key`, `invalid_api_key`); Forbidden
            (code `tool_not_allowed`); NotFound (code `no_such_route`); MethodNotAllowed; InvalidInput (code
            `malformed_json`).
        """
        if request.path == MCP_PATH:
            return await self._mcp(request)
        if not request.path.startswith(PREFIX):
            raise NotFound("there is no such route", code="no_such_route")
        if request.method != "POST":
            raise MethodNotAllowed("the route exists, the method does not", allowed=["POST"])
        tool_name = check_tool_name(request.path[len(PREFIX) :])
        started_ms = self._clock()
        grant = await self._granted(request)
        key_ms = self._clock() - started_ms
        if not grant.allows(tool_name):
            raise Forbidden("the API key does not allow this tool", code="tool_not_allowed", tool=tool_name)
        answer = await self.tools.call(
            grant.tenant_id,
            tool_name,
            _arguments(request),
            idempotency_key=request.headers.get("idempotency-key"),
        )
        kv_ms = key_ms + answer.kv_ms
        overhead_ms = max(0, self._clock() - started_ms - kv_ms - answer.upstream_ms)
        timing = f"kv;dur={kv_ms}, upstream;dur={answer.upstream_ms}, overhead;dur={overhead_ms}"
        return Response(answer.status, answer.body, {**answer.headers, "server-timing": timing})

    async def _mcp(self, request: Request) -> Response:
        """Answer one message of the Model Context Protocol. A call costs as many KV reads as over REST."""
        from retain.gateway.mcp import INSTRUCTIONS, NAME, GrantedTools
        from retain.mcp.server import answer, check_transport

        check_transport(request)
        grant = await self._granted(request)
        tools = GrantedTools(self._kv, self.tools, grant, request.headers.get("idempotency-key"))
        return await answer(request, tools, NAME, INSTRUCTIONS)

    async def _granted(self, request: Request) -> Grant:
        return await authenticate(self._kv, presented_key(request.headers), self._clock())


def _arguments(request: Request) -> dict[str, object]:
    if not request.body:
        return {}
    arguments = request.json()
    if not isinstance(arguments, dict):
        raise InvalidInput("the body must be a JSON object: the tool's arguments", code="invalid_arguments", path="")
    return arguments
