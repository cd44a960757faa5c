"""A tool's configuration, as KV holds it. Validated by hand: this path must not import a validation library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from retain.errors import InvalidInput
from retain.gateway.target import UrlTemplate, parse_url_template
from retain.json_text import read_json

AuthKind = Literal["none", "bearer", "header", "query"]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

METHODS_WITH_BODY = ("POST", "PUT", "PATCH")
MAX_TIMEOUT_MS = 60_000
MAX_RESPONSE_BYTES = 10 * 1_048_576
MAX_DESCRIPTION_CHARACTERS = 4096
_DEFAULT_TIMEOUT_MS = 10_000
_DEFAULT_RESPONSE_BYTES = 1_048_576

_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,64}")
_OWN_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that the proxy or the connection sets."""
_SECRET_HEADERS = frozenset(("authorization", "x-api-key"))
_REQUIRED = frozenset(("version", "description", "url", "method", "host", "auth", "parameters", "idempotent"))
_OPTIONAL = frozenset(("headers", "timeout_ms", "max_response_bytes", "agents_only"))


def tool_name_in_kv(tenant_id: str, tool_name: str) -> str:
    """Return the KV key of a tool's configuration."""
    return f"gateway_tool:{tenant_id}:{tool_name}"


@dataclass(frozen=True, slots=True)
class ToolAuth:
    """How the credential is sent to the upstream. name: of the header or query parameter, "" for the other kinds."""

    kind: AuthKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class ToolConfig:
    """One tool of a tenant.

    version: raised by its owner with each change. host: must equal the authority of the url; stated separately so that
    changing one without the other is noticed. headers: sent with each call, never secrets. parameters: JSON
    Schema of the arguments. idempotent: calling it twice does no more than calling it once.
    agents_only: the tenant's agents may call it, and holders of API keys may not, whatever their scopes.
    """

    version: int
    description: str
    url: UrlTemplate
    method: Method
    host: str
    headers: Mapping[str, str]
    auth: ToolAuth
    parameters: Mapping[str, Any]
    idempotent: bool
    timeout_ms: int
    max_response_bytes: int
    agents_only: bool = False


def parse_tool_config(text: str) -> ToolConfig:
    """Return the configuration that the JSON text holds.

    Its target is checked by `retain.gateway.target.check_target`, its schema by `retain.gateway.arguments`.

    Raises: InvalidInput (code `invalid_tool_configuration`), saying which field is wrong.
    """
    try:
        value = read_json(text)
    except ValueError as error:
        raise _wrong("the configuration is not JSON") from error
    if not isinstance(value, dict):
        raise _wrong("the configuration is not an object")
    missing, unknown = _REQUIRED - value.keys(), value.keys() - _REQUIRED - _OPTIONAL
    if missing or unknown:
        raise _wrong(f"missing fields: {sorted(missing)}, unknown fields: {sorted(unknown)}")
    auth = _auth(value["auth"])
    config = ToolConfig(
        version=_integer(value, "version", 1, 2**31),
        description=_text(value, "description", MAX_DESCRIPTION_CHARACTERS),
        url=parse_url_template(_text(value, "url", 2048)),
        method=_method(value["method"]),
        host=_text(value, "host", 256),
        headers=_headers(value.get("headers", {}), auth),
        auth=auth,
        parameters=_parameters(value["parameters"]),
        idempotent=_boolean(value, "idempotent"),
        timeout_ms=_integer({"timeout_ms": _DEFAULT_TIMEOUT_MS, **value}, "timeout_ms", 1, MAX_TIMEOUT_MS),
        max_response_bytes=_integer(
            {"max_response_bytes": _DEFAULT_RESPONSE_BYTES, **value}, "max_response_bytes", 1, MAX_RESPONSE_BYTES
        ),
        agents_only=_boolean({"agents_only": False, **value}, "agents_only"),
    )
    _check_together(config)
    return config


def _check_together(config: ToolConfig) -> None:
    if config.host != config.url.authority:
        raise _wrong("host is not the url's host (with its port, where the url has one)")
    declared = config.parameters.get("properties", {})
    required = config.parameters.get("required", [])
    for name in config.url.places:
        if name not in declared or name not in required:
            raise _wrong(f"the url's placeholder '{name}' must be a declared and required parameter")
    taken = config.url.query_names & declared.keys() if config.method not in METHODS_WITH_BODY else frozenset()
    if taken:
        raise _wrong(f"the url's query already sets {sorted(taken)}")
    if config.auth.kind == "query" and (config.auth.name in config.url.query_names or config.auth.name in declared):
        raise _wrong("the credential's query parameter is also set by the url or an argument")


def _auth(value: object) -> ToolAuth:
    if not isinstance(value, dict) or value.get("kind") not in ("none", "bearer", "header", "query"):
        raise _wrong("auth must be an object of kind none, bearer, header or query")
    kind = cast("AuthKind", value["kind"])
    named = kind in ("header", "query")
    if value.keys() != ({"kind", "name"} if named else {"kind"}):
        raise _wrong("auth has a name only for the kinds header and query")
    name = value["name"] if named else ""
    if kind == "header":
        _header_name(name)
    elif kind == "query" and not (isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name)):
        raise _wrong("auth.name is not the name of a query parameter")
    return ToolAuth(kind, name)


def _headers(value: object, auth: ToolAuth) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > 32:
        raise _wrong("headers must be an object of at most 32 texts")
    for name, text in value.items():
        if _header_name(name) in _SECRET_HEADERS or name == auth.name:
            raise _wrong(f"header '{name}' carries a secret: store it as the tool's credential")
        if not (isinstance(text, str) and text.isascii() and text.isprintable() and len(text) <= 1024):
            raise _wrong(f"header '{name}' is not printable ASCII")
    return value


def _header_name(name: object) -> str:
    if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
        raise _wrong("a header's name must be a token in lower case")
    if name in _OWN_HEADERS:
        raise _wrong(f"header '{name}' must not be set by the configuration")
    return name


def _parameters(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict) or value.get("type") != "object":
        raise _wrong("parameters must be a JSON Schema whose type is object")
    if not isinstance(value.get("properties", {}), dict) or not isinstance(value.get("required", []), list):
        raise _wrong("parameters.properties must be an object, parameters.required a list")
    return value


def _method(value: object) -> Method:
    if value not in ("GET", "DELETE", *METHODS_WITH_BODY):
        raise _wrong("method must be GET, POST, PUT, PATCH or DELETE")
    return cast("Method", value)


def _text(value: Mapping[str, object], name: str, longest: int) -> str:
    text = value[name]
    if not isinstance(text, str) or not 0 < len(text) <= longest:
        raise _wrong(f"{name} must be a text of 1 to {longest} characters")
    return text


def _integer(value: Mapping[str, object], name: str, least: int, most: int) -> int:
    number = value[name]
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        raise _wrong(f"{name} must be a whole number from {least} to {most}")
    return number


def _boolean(value: Mapping[str, object], name: str) -> bool:
    flag = value[name]
    if not isinstance(flag, bool):
        raise _wrong(f"{name} must be true or false")
    return flag


def _wrong(problem: str) -> InvalidInput:
    return InvalidInput(problem, code="invalid_tool_configuration")
