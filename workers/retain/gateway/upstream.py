"""The request that a tool call sends to its upstream: a pure function of configuration, arguments and credential."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from retain.errors import InvalidInput
from retain.gateway.target import as_text, check_length, invalid_argument
from retain.gateway.tool_config import METHODS_WITH_BODY, ToolConfig

MAX_IDEMPOTENCY_KEY_CHARACTERS = 255
# ASCII only, so that no client has to guess an encoding; NaN and infinities are not JSON.
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One request to an upstream. url and headers hold the credential, and are not shown."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: str | None = field(repr=False)


def build_request(
    config: ToolConfig,
    arguments: Mapping[str, object],
    credential: str | None,
    *,
    idempotency_key: str | None = None,
) -> UpstreamRequest:
    """Return the request for a call.

    Arguments named in the url's path go there; the others become the JSON body of POST, PUT and PATCH, and the query
    of GET and DELETE, where a list repeats its name and null is left out. `arguments` have been checked against the
    tool's schema.

    Raises: InvalidInput (code `invalid_arguments`, `invalid_idempotency_key`); LimitExceeded (code `url_too_long`).
    """
    headers = {"accept": "application/json", "user-agent": "retain", **config.headers}
    url = config.url.expand(arguments)
    query = [config.url.query] if config.url.query else []
    places = config.url.places
    rest = {name: value for name, value in arguments.items() if name not in places} if places else arguments
    body = None
    if config.method in METHODS_WITH_BODY:
        body = _json(rest)
        headers["content-type"] = "application/json"
    else:
        query.extend(_query(config, rest))
    if credential is not None:
        auth = config.auth
        if auth.kind == "bearer":
            headers["authorization"] = f"Bearer {credential}"
        elif auth.kind == "header":
            headers[auth.name] = credential
        elif auth.kind == "query":
            query.append(f"{auth.name}={as_text(auth.name, credential)}")
    if idempotency_key is not None:
        headers["idempotency-key"] = check_idempotency_key(idempotency_key)
    if query:
        url = f"{url}?{'&'.join(query)}"
    return UpstreamRequest(config.method, check_length(url), headers, body)


def check_idempotency_key(value: str) -> str:
    """Return the key. Raises: InvalidInput (code `invalid_idempotency_key`)."""
    if not 0 < len(value) <= MAX_IDEMPOTENCY_KEY_CHARACTERS or not (value.isascii() and value.isprintable()):
        raise InvalidInput(
            f"an idempotency key is 1 to {MAX_IDEMPOTENCY_KEY_CHARACTERS} printable ASCII characters",
            code="invalid_idempotency_key",
        )
    return value


def _json(arguments: Mapping[str, object]) -> str:
    try:
        return _ENCODE(arguments)
    except (ValueError, TypeError, RecursionError) as error:
        raise invalid_argument("", "they are not JSON") from error


def _query(config: ToolConfig, arguments: Mapping[str, object]) -> Iterator[str]:
    for name, value in arguments.items():
        # A schema may allow names it does not declare: they must not override what the configuration sets.
        if name in config.url.query_names or (config.auth.kind == "query" and name == config.auth.name):
            raise invalid_argument(f"/{name}", "its name is taken by the tool's configuration")
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield f"{as_text('', name)}={as_text(name, item)}"
