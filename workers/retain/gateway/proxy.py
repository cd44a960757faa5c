"""The tool proxy: one call of one tool of one tenant, from KV and the upstream alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from retain.errors import InvalidInput, Misconfigured, NoSuchTool, RetainError, Unavailable, UpstreamFailed
from retain.gateway.arguments import Check, compile_check
from retain.gateway.credentials import OpenedCredentials, credential_name
from retain.gateway.entries import Entries, Read, ReadTexts, ToolEntries
from retain.gateway.settings import GatewaySettings
from retain.gateway.target import check_target, is_loopback
from retain.gateway.tool_config import MAX_RESPONSE_BYTES, ToolConfig, parse_tool_config, tool_name_in_kv
from retain.gateway.upstream import UpstreamRequest, build_request
from retain.identifiers import check_tenant, check_tool_name
from retain.ports import KV_KEYS, Clock, Crypto, Fetch, HeldBody, HttpResponse, Kv, Until

if TYPE_CHECKING:
    from retain.gateway.resolver import Resolver

PASSED_HEADERS = ("content-type", "cache-control", "retry-after")
"""Headers of the upstream that reach the caller."""
_READ_CHARACTERS = 2 * 1_048_576
"""Most characters of the configurations that an isolate keeps as they were read: of a thousand, or 32 of the largest …"""
_PREPARED_CHARACTERS = 1_048_576
"""… and of those that it keeps with their schemas compiled, which takes fifteen times as much memory as the text."""
Audience = Literal["keys", "agents", "agents alone"]
"""Who calls a tool: the holder of an API key, an agent, or the client of an MCP server, which no key may reach."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What the upstream answered, whatever its status.

    headers: those that reach the caller, if it sent them. content: the body, or what holds it. kv_ms, upstream_ms: time
    spent waiting for each. The platform's clock advances only while waiting, so computation does not show in them.
    Source: https://developers.cloudflare.com/workers/runtime-apis/performance/
    """

    status: int
    headers: Mapping[str, str]
    content: bytes | HeldBody
    kv_ms: int
    upstream_ms: int

    @property
    def body(self) -> bytes:
        """The bytes of the body."""
        return self.content if isinstance(self.content, bytes) else self.content.read()


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """A tool as its callers see it. parameters: JSON Schema of the arguments."""

    name: str
    version: int
    description: str
    parameters: Mapping[str, object]
    idempotent: bool
    agents_only: bool = False


@dataclass(frozen=True, slots=True)
class PreparedTool:
    """A valid configuration, and its compiled schema."""

    config: ToolConfig
    check_arguments: Check


class ToolProxy:
    """Calls the tools that a tenant has in KV.

    It holds a KV handle, an HTTP client, cryptography and a clock: nothing through which it could reach a database, an
    index, an object store or a Durable Object. Make one per isolate: it keeps opened credentials for up to a minute, and
    what KV answered for some seconds. entries: what is kept of KV.
    """

    def __init__(self, kv: Kv, fetch: Fetch, crypto: Crypto, clock: Clock, settings: GatewaySettings) -> None:
        self._kv = kv
        self.entries = Entries(kv, clock, settings.kept_ms)
        self._fetch = fetch
        self._clock = clock
        self._credentials = OpenedCredentials(crypto, clock, settings)
        self._allow_loopback = settings.allow_loopback
        self._resolver_url = settings.resolver_url
        self._resolver: Resolver | None = None

    async def call(
        self,
        tenant_id: str,
        tool_name: str,
        arguments: Mapping[str, object],
        *,
        idempotency_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        passed: Collection[str] = PASSED_HEADERS,
        audience: Audience = "keys",
        read: ToolEntries | None = None,
        until: Until | None = None,
        most_bytes: int = MAX_RESPONSE_BYTES,
    ) -> ToolAnswer:
        """Call the tool once and return its upstream's answer, even if that is an error.

        Reads two keys of KV in one call, or none (`Entries`). Nothing is retried here: whether a second call is safe is
        for the caller to decide, by the tool's `idempotent`. idempotency_key: sent to the upstream, which may ignore it.
        headers: of a protocol, which replace the configuration's. passed: headers of the upstream that the answer keeps.
        audience: who calls. read: what this request has read of a tool before. until: as of `Fetch`.
        most_bytes: of the answer, where the configuration allows more.

        Raises: NotFound (code `no_such_tool`); InvalidInput (code `invalid_tenant`, `invalid_tool_name`,
            `invalid_arguments`, `invalid_idempotency_key`); LimitExceeded (code `url_too_long`); Unavailable (codes of
            the ports); UpstreamFailed (code `upstream_redirected`, `response_too_large`); Misconfigured (code
            `invalid_tool_configuration`, `credential_missing`, `credential_unreadable`, `credentials_key_missing`,
            `invalid_credentials_key`, `private_upstream`).
        """
        place = credential_name(check_tenant(tenant_id), check_tool_name(tool_name))
        started_ms = self._clock()
        entries = await self.entries.tool(tenant_id, tool_name, read)
        read_ms = self._clock()
        tool = self._usable(tool_name, entries.config, prepare_tool)
        _check_audience(tool_name, tool.config, audience)
        tool.check_arguments(arguments)
        credential = None
        if tool.config.auth.kind != "none":
            if entries.sealed is None:
                raise Misconfigured("the tool has no upstream credential", code="credential_missing", tool=tool_name)
            credential = await self._credentials.open(place, entries.sealed)
        self.entries.keep_tool(entries)
        request = build_request(tool.config, arguments, credential, idempotency_key=idempotency_key)
        if headers:
            request = replace(request, headers={**request.headers, **headers})
        if self._resolver_url:
            await self._check_addresses(tool.config.url.authority, tool_name)
        sent_ms = self._clock()
        response = await self._send(tool_name, tool.config, request, until, most_bytes)
        received = response.headers
        kept = {name: value for name in passed if (value := received.get(name)) is not None}
        return ToolAnswer(
            response.status, kept, response.content, read_ms - started_ms, max(0, self._clock() - sent_ms)
        )

    async def describe(self, tenant_id: str, tool_name: str) -> ToolDescription:
        """Return what a caller needs to know about the tool. Costs one KV read.

        Its schema is compiled by a call: that takes a hundred times as long as reading the rest.

        Raises: NotFound (code `no_such_tool`); InvalidInput; Unavailable; Misconfigured (code
            `invalid_tool_configuration`).
        """
        text = await self._kv.get(tool_name_in_kv(check_tenant(tenant_id), check_tool_name(tool_name)))
        return self._described(tool_name, text)

    async def describe_each(self, tenant_id: str, tool_names: Sequence[str]) -> list[ToolDescription | RetainError]:
        """Return what a caller needs to know about each tool, or why it cannot be used, in their order.

        One call of KV for every hundred tools. Raises: InvalidInput; Unavailable.
        """
        names = [tool_name_in_kv(check_tenant(tenant_id), check_tool_name(name)) for name in tool_names]
        texts: list[str | None] = []
        for start in range(0, len(names), KV_KEYS):
            texts += await self._kv.get_many(names[start : start + KV_KEYS])
        return [self._found(name, text) for name, text in zip(tool_names, texts, strict=True)]

    def _found(self, tool_name: str, text: str | None) -> ToolDescription | RetainError:
        try:
            return self._described(tool_name, text)
        except (NoSuchTool, Misconfigured) as error:
            return error

    def _described(self, tool_name: str, text: str | None) -> ToolDescription:
        config = self._usable(tool_name, text, read_tool)
        about = (config.version, config.description, config.parameters, config.idempotent, config.agents_only)
        return ToolDescription(tool_name, *about)

    async def _check_addresses(self, authority: str, tool_name: str) -> None:
        """Refuse an upstream of which an address is private. Raises: as `Resolver.check`."""
        from retain.gateway.resolver import Resolver  # only for deployments that have one

        if is_loopback(authority):
            return
        if self._resolver is None:
            self._resolver = Resolver(self._resolver_url, self._fetch, self._clock)
        await self._resolver.check(authority, tool_name)

    def _usable(self, tool_name: str, text: str | None, read: Callable[..., Read]) -> Read:
        if text is None:
            raise NoSuchTool("the tenant has no such tool", tool=tool_name)
        try:
            return read(text, allow_loopback=self._allow_loopback)
        except InvalidInput as error:  # not the caller's to fix
            raise Misconfigured(
                f"the tool's configuration is not usable: {error.message}",
                code="invalid_tool_configuration",
                tool=tool_name,
            ) from error

    async def _send(
        self, tool_name: str, config: ToolConfig, request: UpstreamRequest, until: Until | None, most_bytes: int
    ) -> HttpResponse:
        limit_bytes = min(config.max_response_bytes, most_bytes)
        try:
            response = await self._fetch(
                request.method,
                request.url,
                headers=request.headers,
                body=request.body,
                timeout_ms=config.timeout_ms,
                limit_bytes=limit_bytes,
                until=until,
            )
        except UpstreamFailed:
            raise UpstreamFailed(
                "the tool's upstream answered more than is allowed",
                code="response_too_large",
                tool=tool_name,
                limit_bytes=limit_bytes,
            ) from None
        except Unavailable as error:
            # A new message and no cause: the client's own text may quote the URL, which may contain the credential.
            raise Unavailable("the tool's upstream did not answer", code=error.code, tool=tool_name) from None
        if 300 <= response.status < 400:
            raise UpstreamFailed(
                "the tool's upstream redirects, which is not followed",
                code="upstream_redirected",
                tool=tool_name,
                upstream_status=response.status,
            )
        return response


def _check_audience(tool_name: str, config: ToolConfig, audience: Audience) -> None:
    """Refuse a tool that is for agents to a key, and as an MCP server one that is for keys as well."""
    if audience == "keys" and config.agents_only:
        raise NoSuchTool("the tenant has no such tool", tool=tool_name)
    if audience == "agents alone" and not config.agents_only:
        raise Misconfigured(
            "an MCP server's configuration must say agents_only: true, or holders of API keys could send it any message",
            code="invalid_tool_configuration",
            tool=tool_name,
        )


def _checked(text: str, allow_loopback: bool) -> ToolConfig:
    config = parse_tool_config(text)
    check_target(config.url.scheme, config.url.authority, allow_loopback=allow_loopback)
    return config


_read_tools = ReadTexts(_checked, _READ_CHARACTERS)


def read_tool(text: str, *, allow_loopback: bool) -> ToolConfig:
    """Return the configuration parsed and checked, except that its schema may not be one that can be compiled.

    Raises: InvalidInput (code `invalid_tool_configuration`, `forbidden_upstream`).
    """
    return _read_tools.of(text, allow_loopback=allow_loopback)


def _compiled(text: str, allow_loopback: bool) -> PreparedTool:
    config = read_tool(text, allow_loopback=allow_loopback)
    return PreparedTool(config, compile_check(config.parameters))


_prepared_tools = ReadTexts(_compiled, _PREPARED_CHARACTERS)


def prepare_tool(text: str, *, allow_loopback: bool) -> PreparedTool:
    """Return the configuration parsed, checked and compiled. Raises: as `read_tool`."""
    return _prepared_tools.of(text, allow_loopback=allow_loopback)
