"""The proxy over HTTP: `POST /api/v1/tools/{tool_name}`, and the same tools over MCP."""

from __future__ import annotations

from dataclasses import dataclass

from retain.errors import Forbidden, InvalidInput
from retain.gateway.entries import ToolEntries
from retain.gateway.keys import Grant, authenticate, presented_key
from retain.gateway.proxy import ToolProxy
from retain.gateway.settings import GatewaySettings
from retain.http import Request, Response
from retain.identifiers import is_tool_name
from retain.limits.rates import Rates
from retain.ports import Clock, Crypto, Fetch, Kv
from retain.routing.requests import TextBody, TypedRequest
from retain.routing.route import JSON_RPC, Answer, ErrorGroup, Resource, Route
from retain.routing.router import Match, Router

PREFIX = "/api/v1/tools/"
"""Every tool's path starts with this."""
MCP_PATH = "/mcp"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls the gateway, and what answers them.

    grant: what the API key allows. started_ms: when the request arrived. key_ms: how long reading the key took. read: the
    entries of the tool that is called, if they were read with the key.
    """

    kv: Kv
    tools: ToolProxy
    clock: Clock
    grant: Grant
    started_ms: int
    key_ms: int
    read: ToolEntries | None = None


@dataclass(frozen=True, slots=True)
class ArgumentsBody:
    """Reads a tool's arguments: a JSON object, or nothing. Does not use pydantic, which the proxy's path does not load."""

    model: type | None = None
    required: bool = False
    media_type: str = "application/json"
    streamed: bool = False

    def read(self, request: Request) -> dict[str, object]:
        """Return the arguments. Raises: InvalidInput (code `malformed_json`, `invalid_arguments`)."""
        if not request.body:
            return {}
        arguments = request.json()
        if not isinstance(arguments, dict):
            message = "the body must be a JSON object: the tool's arguments"
            raise InvalidInput(message, code="invalid_arguments", path="")
        return arguments


async def call_tool(caller: Caller, request: TypedRequest[dict[str, object], None]) -> Response:
    """Call a tool's upstream with the tenant's credential."""
    tool_name = request.path["tool_name"]
    if not caller.grant.allows(tool_name):
        raise Forbidden("the API key does not allow this tool", code="tool_not_allowed", tool=tool_name)
    key = request.http.headers.get("idempotency-key")
    answer = await caller.tools.call(
        caller.grant.tenant_id, tool_name, request.body, idempotency_key=key, read=caller.read
    )
    kv_ms = caller.key_ms + answer.kv_ms
    overhead_ms = max(0, caller.clock() - caller.started_ms - kv_ms - answer.upstream_ms)
    timing = f"kv;dur={kv_ms}, upstream;dur={answer.upstream_ms}, overhead;dur={overhead_ms}"
    headers = {**answer.headers, "server-timing": timing}
    if isinstance(answer.content, bytes):
        return Response(answer.status, answer.content, headers)
    return Response(answer.status, "", headers, held=answer.content)


async def serve_mcp(caller: Caller, request: TypedRequest[str, None]) -> Response:
    """Answer one message of the Model Context Protocol. A call costs as many KV reads as over REST."""
    from retain.gateway.mcp import INSTRUCTIONS, NAME, GrantedTools
    from retain.mcp.server import answer

    tools = GrantedTools(caller.kv, caller.tools, caller.grant, request.http.headers.get("idempotency-key"))
    return await answer(request.http, tools, NAME, INSTRUCTIONS)


OF_A_CALL = ErrorGroup(
    "those of [a tool call](gateway.md#call-it)",
    (
        "invalid_tool_name",
        "invalid_arguments",
        "invalid_idempotency_key",
        "missing_api_key",
        "invalid_api_key",
        "rate_limited",
        "tool_not_allowed",
        "no_such_tool",
        "url_too_long",
        "credential_missing",
        "credential_unreadable",
        "credentials_key_missing",
        "invalid_credentials_key",
        "invalid_tool_configuration",
        "private_upstream",
        "resolver_unavailable",
        "invalid_key_record",
        "upstream_redirected",
        "response_too_large",
        "upstream_timeout",
        "upstream_unreachable",
    ),
)
_HEADERS = {"idempotency-key": "1 to 255 printable ASCII characters, sent to the upstream"}
RESOURCE: Resource[Caller] = Resource(
    "Tools",
    (
        Route(
            "POST",
            f"{PREFIX}{{+tool_name}}",
            call_tool,
            guard="API key",
            body=ArgumentsBody(),
            takes="the tool's arguments, an object",
            headers=_HEADERS,
            answers=(Answer(200, "the upstream's status and body, whatever they are; header `server-timing`"),),
            errors=(OF_A_CALL,),
        ),
        Route(
            "POST",
            MCP_PATH,
            serve_mcp,
            name="send_gateway_message",
            guard="API key",
            body=TextBody("application/json"),
            takes="a message of the [Model Context Protocol](mcp.md#the-gateways-tools-post-mcp)",
            headers=_HEADERS,
            answers=JSON_RPC,
            errors=("cross_origin", OF_A_CALL),
            same_origin=True,
        ),
    ),
)
ROUTER: Router[Caller] = Router((RESOURCE,), guard="anyone")


class Gateway:
    """Answers tool calls. Built once per isolate, from the same arguments as `ToolProxy`, and the rates of callers.

    tools: the proxy itself, for callers that are authenticated in another way.
    """

    def __init__(
        self,
        kv: Kv,
        fetch: Fetch,
        crypto: Crypto,
        clock: Clock,
        settings: GatewaySettings,
        rates: Rates | None = None,
    ) -> None:
        self._kv = kv
        self._clock = clock
        self._rates = rates or Rates()
        self.tools = ToolProxy(kv, fetch, crypto, clock, settings)

    def match(self, method: str, path: str) -> Match:
        """Return the match of a method and a path; its answer authenticates the caller."""
        return ROUTER.match(method, path, self._admit)

    async def handle(self, request: Request) -> Response:
        """Answer one request. At most three KV reads: the API key, then the tool and its credential at once.

        All three are one call for a key that was valid before, and none while the isolate keeps them.

        Raises: what `ToolProxy.call` raises; Unauthenticated (code `missing_api_key`, `invalid_api_key`); Forbidden
            (code `tool_not_allowed`); RateLimited; NotFound (code `no_such_route`); MethodNotAllowed; InvalidInput (code
            `malformed_json`).
        """
        return await self.match(request.method, request.path).answer(request)

    async def _admit(self, request: Request) -> Caller:
        started_ms = self._clock()
        entries, key = self.tools.entries, presented_key(request.headers)
        grant, read = await authenticate(entries, key, started_ms, _tool_called(request.path))
        read_ms = self._clock()
        await self._rates.check_caller(f"key:{grant.key_id}")
        await self._rates.check_tenant(grant.tenant_id)
        return Caller(self._kv, self.tools, self._clock, grant, started_ms, read_ms - started_ms, read)


def _tool_called(path: str) -> str | None:
    """Return the name of the tool that a path calls, None for one that calls none."""
    name = path.removeprefix(PREFIX)
    return name if name != path and is_tool_name(name) else None
