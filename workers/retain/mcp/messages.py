"""JSON-RPC messages of the protocol: reading them from a request, and writing answers.

Two eras of the protocol are supported. Until 2025-11-25 a client begins with `initialize`; since 2026-07-28 each
request carries its version and capabilities in `_meta`, with headers that repeat what intermediaries route by. No state
is kept between requests in either.
Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports and
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.errors import InvalidInput
from retain.errors.codes import Code, ForeignCode
from retain.http import Request, Response
from retain.json_text import JsonObject

HANDSHAKE_VERSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
ENVELOPE_VERSIONS = ("2026-07-28",)
_OLDEST = HANDSHAKE_VERSIONS[0]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
_STATUS = {METHOD_NOT_FOUND: 404}
_REASONS: Mapping[int, Code] = {
    PARSE_ERROR: "malformed_json",
    INVALID_REQUEST: "invalid_request",
    METHOD_NOT_FOUND: "no_such_method",
    INVALID_PARAMS: "invalid_params",
    HEADER_MISMATCH: "header_mismatch",
    MISSING_CAPABILITY: "missing_capability",
    UNSUPPORTED_VERSION: "unsupported_version",
}

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_NAMED_BY = {"tools/call": "name", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
"""The member of a method's parameters that the header mcp-name repeats."""
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")


class McpError(Exception):
    """A request that violates the protocol. code: the JSON-RPC error code. reason: Retain's, by default that of `code`."""

    def __init__(
        self, code: int, message: str, data: JsonObject | None = None, *, reason: Code | ForeignCode | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data: JsonObject = {**(data or {}), "code": reason or _REASONS[code]}


@dataclass(frozen=True, slots=True)
class RpcMessage:
    """One message of a client. id: None for a notification. enveloped: whether it is of the era without a handshake.

    extensions: the protocol's extensions that the client has. reads_data: whether it knows structured content, which is as
    old as the header with its version.
    """

    id: str | int | None
    method: str
    params: JsonObject
    enveloped: bool
    extensions: frozenset[str] = frozenset()
    reads_data: bool = True


def envelope_of(version: str, client: JsonObject) -> JsonObject:
    """Return what a request of a client carries in `_meta`, since 2026-07-28. It offers the server nothing."""
    return {_VERSION_KEY: version, "io.modelcontextprotocol/clientInfo": client, _CAPABILITIES_KEY: {}}


def read_message(request: Request) -> RpcMessage | None:
    """Return the message, or None for one that needs no answer because it is itself an answer.

    Raises: McpError.
    """
    try:
        body = request.json()
    except InvalidInput as error:
        raise McpError(PARSE_ERROR, error.message) from error
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise McpError(INVALID_REQUEST, "the body must be one JSON-RPC 2.0 message; batches are not supported")
    if "method" not in body and ("result" in body or "error" in body):
        return None
    method, params, number = body.get("method"), body.get("params", {}), body.get("id")
    if not isinstance(method, str) or not isinstance(params, dict):
        raise McpError(INVALID_REQUEST, "method must be a text and params an object")
    if isinstance(number, bool) or not isinstance(number, str | int | None) or ("id" in body and number is None):
        raise McpError(INVALID_REQUEST, "id must be a text or a whole number")
    meta = params.get("_meta")
    envelope = meta if isinstance(meta, dict) and _VERSION_KEY in meta else None
    if envelope is None:
        _check_handshake_version(request, method)
    elif number is not None:
        _check_envelope(request, method, params, envelope)
    reads_data = envelope is not None or request.headers.get("mcp-protocol-version", _OLDEST) != _OLDEST
    return RpcMessage(number, method, params, envelope is not None, _extensions(envelope or {}), reads_data)


def id_of(request: Request) -> str | int | None:
    """Return the id that a refusal answers, or None when the body has no readable id."""
    try:
        body = request.json()
    except InvalidInput:
        return None
    number = body.get("id") if isinstance(body, dict) else None
    return number if isinstance(number, str | int) and not isinstance(number, bool) else None


def result(message: RpcMessage, value: Mapping[str, object]) -> Response:
    """Return the answer to a request."""
    content = {"resultType": "complete", **value} if message.enveloped else dict(value)
    return _json({"jsonrpc": "2.0", "id": message.id, "result": content}, 200)


def accepted() -> Response:
    """Return the response to a message that needs no answer."""
    return Response(202, "")


def refusal(error: McpError, number: str | int | None, *, enveloped: bool) -> Response:
    """Return a refusal. In the era with a handshake, errors of a method have status 200."""
    content = {"code": error.code, "message": error.message, "data": error.data}
    transport = error.code in (PARSE_ERROR, INVALID_REQUEST, HEADER_MISMATCH, UNSUPPORTED_VERSION)
    status = _STATUS.get(error.code, 400) if enveloped or transport else 200
    return _json({"jsonrpc": "2.0", "id": number, "error": content}, status)


def _check_handshake_version(request: Request, method: str) -> None:
    named = request.headers.get("mcp-protocol-version")
    if named is not None and method != "initialize" and named not in HANDSHAKE_VERSIONS:
        raise _unsupported(named, [*HANDSHAKE_VERSIONS, *ENVELOPE_VERSIONS])


def _check_envelope(request: Request, method: str, params: JsonObject, meta: JsonObject) -> None:
    """Refuse a request whose headers contradict its body: intermediaries route it by the headers."""
    if _CAPABILITIES_KEY not in meta:
        raise McpError(INVALID_PARAMS, f"params._meta lacks '{_CAPABILITIES_KEY}'")
    headers = request.headers
    version = meta[_VERSION_KEY]
    if headers.get("mcp-protocol-version") != version:
        raise McpError(HEADER_MISMATCH, "the header mcp-protocol-version is not the version in params._meta")
    if headers.get("mcp-method") != method:
        raise McpError(HEADER_MISMATCH, "the header mcp-method is not the message's method")
    name = params.get(_NAMED_BY.get(method, ""))
    if name is not None and _decoded(headers.get("mcp-name")) != name:
        raise McpError(HEADER_MISMATCH, f"the header mcp-name is not the message's {_NAMED_BY[method]}")
    if version not in ENVELOPE_VERSIONS:
        raise _unsupported(str(version), ENVELOPE_VERSIONS)


def _extensions(meta: JsonObject) -> frozenset[str]:
    capabilities = meta.get(_CAPABILITIES_KEY)
    named = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return frozenset(named) if isinstance(named, dict) else frozenset()


def _unsupported(requested: str, supported: Sequence[str]) -> McpError:
    data = {"supported": list(supported), "requested": requested}
    return McpError(UNSUPPORTED_VERSION, "this version of the protocol is not supported", data)


def _decoded(value: str | None) -> str | None:
    encoded = _ENCODED.fullmatch(value or "")
    if encoded is None:
        return value
    try:
        return base64.b64decode(encoded[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _json(content: Mapping[str, object], status: int) -> Response:
    return Response(status, json.dumps(content, separators=(",", ":")), {"content-type": "application/json"})
