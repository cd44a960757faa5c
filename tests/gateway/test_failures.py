from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from retain.errors import (
    InvalidInput,
    LimitExceeded,
    MethodNotAllowed,
    Misconfigured,
    NoSuchTool,
    NotFound,
    RetainError,
    Unauthenticated,
    Unavailable,
    UpstreamFailed,
)
from retain.gateway.credentials import credential_name
from retain.gateway.keys import stored_name
from retain.gateway.tool_config import tool_name_in_kv
from retain.http import Request, problem
from tests.gateway.setting import PARAMETERS, SECRET, TENANT, TOOL, Setting, request


@dataclass(frozen=True)
class Failure:
    """A request that must fail: how to prepare and make it, and what it must raise."""

    make: Callable[[Setting], Awaitable[Request]]
    kind: type[RetainError]
    code: str
    status: int
    allow_loopback: bool = True
    credentials_key: str = ""


async def _good(setting: Setting, **changes: Any) -> Request:
    await setting.add_tool(changes.pop("path", "/echo"), **changes)
    return request(await setting.add_key())


async def _with(setting: Setting, **parts: Any) -> Request:
    await setting.add_tool()
    return request(await setting.add_key(), **parts)


async def _with_text_in_kv(setting: Setting, key: str, text: str) -> Request:
    await setting.add_tool()
    api_key = await setting.add_key()
    await setting.kv.put(key or stored_name(api_key), text)
    return request(api_key)


async def _expired(setting: Setting) -> Request:
    await setting.add_tool()
    api_key = await setting.add_key(lifetime_ms=1000)
    setting.clock.advance(1000)
    return request(api_key)


async def _without_credential(setting: Setting) -> Request:
    made = await _good(setting)
    await setting.kv.delete(credential_name(TENANT, TOOL))
    return made


async def _keyless(setting: Setting, headers: dict[str, str]) -> Request:
    await setting.add_tool()
    return request(None, headers=headers)


_TOOL_KEY, _CREDENTIAL_KEY = tool_name_in_kv(TENANT, TOOL), credential_name(TENANT, TOOL)


async def _as_async(made: Request) -> Request:
    return made


async def _long_query(setting: Setting) -> Request:
    await setting.add_tool(method="GET", parameters={"type": "object"})
    return request(await setting.add_key(), {"text": "x" * 20_000})


async def _nowhere(setting: Setting) -> Request:
    made = await _good(setting)
    text = await setting.kv.get(_TOOL_KEY)
    assert text is not None
    await setting.kv.put(_TOOL_KEY, text.replace(setting.server.host, "127.0.0.1:1"))
    return made


FAILURES = {
    "another path": Failure(
        lambda s: _as_async(Request("POST", "/api/v1/other", {}, {}, "", "", "")), NotFound, "no_such_route", 404
    ),
    "another method": Failure(lambda s: _with(s, method="GET"), MethodNotAllowed, "method_not_allowed", 405),
    "no tool name": Failure(lambda s: _with(s, tool=""), InvalidInput, "invalid_tool_name", 400),
    "a tool name that names another tenant": Failure(
        lambda s: _with(s, tool="globex:create_order"), InvalidInput, "invalid_tool_name", 400
    ),
    "an encoded tool name": Failure(lambda s: _with(s, tool="create%5Forder"), InvalidInput, "invalid_tool_name", 400),
    "a longer path": Failure(lambda s: _with(s, tool="create_order/x"), InvalidInput, "invalid_tool_name", 400),
    "no api key": Failure(lambda s: _keyless(s, {}), Unauthenticated, "missing_api_key", 401),
    "another scheme": Failure(
        lambda s: _keyless(s, {"authorization": "Basic YTpi"}), Unauthenticated, "missing_api_key", 401
    ),
    "an empty bearer": Failure(
        lambda s: _keyless(s, {"authorization": "Bearer "}), Unauthenticated, "missing_api_key", 401
    ),
    "an unknown key": Failure(
        lambda s: _keyless(s, {"x-api-key": "retain_acme_" + "A" * 43}), Unauthenticated, "invalid_api_key", 401
    ),
    "a text that is no key": Failure(
        lambda s: _keyless(s, {"x-api-key": "sk_live_1"}), Unauthenticated, "invalid_api_key", 401
    ),
    "a key that is not ascii": Failure(
        lambda s: _keyless(s, {"x-api-key": "retain_acme_\u00e9\ud800"}), Unauthenticated, "invalid_api_key", 401
    ),
    "an expired key": Failure(_expired, Unauthenticated, "invalid_api_key", 401),
    "a key's record that is not json": Failure(
        lambda s: _with_text_in_kv(s, "", "{"), Misconfigured, "invalid_key_record", 500
    ),
    "a key's record of no tenant": Failure(
        lambda s: _with_text_in_kv(s, "", '{"tenant_id": "*", "key_id": "k", "scopes": ["*"], "created_at_ms": 1}'),
        Misconfigured,
        "invalid_key_record",
        500,
    ),
    "a key's record whose scopes are a text": Failure(
        lambda s: _with_text_in_kv(s, "", '{"tenant_id": "acme", "key_id": "k", "scopes": "*", "created_at_ms": 1}'),
        Misconfigured,
        "invalid_key_record",
        500,
    ),
    "an unknown tool": Failure(lambda s: _with(s, tool="never_was"), NoSuchTool, "no_such_tool", 404),
    "a body that is not json": Failure(lambda s: _with(s, body="{"), InvalidInput, "malformed_json", 400),
    "a body nested too deeply": Failure(
        lambda s: _with(s, body='{"a":' + "[" * 100_000), InvalidInput, "malformed_json", 400
    ),
    "a body that is a list": Failure(lambda s: _with(s, arguments=[1]), InvalidInput, "invalid_arguments", 400),
    "a missing argument": Failure(lambda s: _with(s, arguments={}), InvalidInput, "invalid_arguments", 400),
    "an argument of the wrong type": Failure(
        lambda s: _with(s, arguments={"order_id": 1}), InvalidInput, "invalid_arguments", 400
    ),
    "an argument the schema does not know": Failure(
        lambda s: _with(s, arguments={"order_id": "A", "tenant": "x"}), InvalidInput, "invalid_arguments", 400
    ),
    "an idempotency key with a line break": Failure(
        lambda s: _with(s, headers={"idempotency-key": "a\nb"}), InvalidInput, "invalid_idempotency_key", 400
    ),
    "an idempotency key that is too long": Failure(
        lambda s: _with(s, headers={"idempotency-key": "a" * 256}), InvalidInput, "invalid_idempotency_key", 400
    ),
    "arguments that make the url too long": Failure(_long_query, LimitExceeded, "url_too_long", 413),
    "a tool without its credential": Failure(_without_credential, Misconfigured, "credential_missing", 500),
    "a credential that is not json": Failure(
        lambda s: _with_text_in_kv(s, _CREDENTIAL_KEY, "x"), Misconfigured, "credential_unreadable", 500
    ),
    "a credential sealed with another key": Failure(
        _good, Misconfigured, "credential_unreadable", 500, credentials_key="A" * 43 + "="
    ),
    "a deployment with a broken key": Failure(
        _good, Misconfigured, "invalid_credentials_key", 500, credentials_key="AAAA"
    ),
    "a configuration that is not json": Failure(
        lambda s: _with_text_in_kv(s, _TOOL_KEY, "x"), Misconfigured, "invalid_tool_configuration", 500
    ),
    "a configuration that is not whole": Failure(
        lambda s: _with_text_in_kv(s, _TOOL_KEY, '{"version": 1}'), Misconfigured, "invalid_tool_configuration", 500
    ),
    "an upstream on this machine, in production": Failure(
        _good, Misconfigured, "invalid_tool_configuration", 500, allow_loopback=False
    ),
    "an upstream that redirects": Failure(
        lambda s: _good(s, path="/redirect"), UpstreamFailed, "upstream_redirected", 502
    ),
    "an upstream that answers too much": Failure(
        lambda s: _good(s, path="/large/2000", max_response_bytes=1999), UpstreamFailed, "response_too_large", 502
    ),
    "an upstream that is silent": Failure(
        lambda s: _good(s, path="/silent", timeout_ms=50), Unavailable, "upstream_timeout", 503
    ),
    "an upstream that is not there": Failure(_nowhere, Unavailable, "upstream_unreachable", 503),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_each_failure_has_its_own_code_and_status(setting: Setting, failure: Failure) -> None:
    made = await failure.make(setting)
    gateway = setting.gateway(allow_loopback=failure.allow_loopback, credentials_key=failure.credentials_key)
    with pytest.raises(failure.kind) as refused:
        await gateway.handle(made)
    assert type(refused.value) is failure.kind
    assert refused.value.code == failure.code
    answer = problem(refused.value, "request-1")
    assert answer.status == failure.status
    assert json.loads(answer.body)["code"] == failure.code


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_no_failure_shows_a_secret(setting: Setting, failure: Failure, caplog: pytest.LogCaptureFixture) -> None:
    made = await failure.make(setting)
    gateway = setting.gateway(allow_loopback=failure.allow_loopback, credentials_key=failure.credentials_key)
    with pytest.raises(failure.kind) as refused:
        await gateway.handle(made)
    shown = str(problem(refused.value, "request-1").body) + caplog.text + repr(refused.value)
    presented = made.headers.get("authorization", "").removeprefix("Bearer ") or made.headers.get("x-api-key", "")
    for secret in (SECRET, setting.credentials_key, failure.credentials_key, presented):
        assert not secret or secret not in shown


async def test_an_invalid_argument_is_named_by_its_path_and_its_value_is_not_shown(setting: Setting) -> None:
    nested = {"type": "object", "properties": {"items": {"type": "array", "items": PARAMETERS}}}
    await setting.add_tool(parameters=nested)
    arguments = {"items": [{"order_id": "A"}, {"order_id": "B", "quantity": "my-password"}]}
    with pytest.raises(InvalidInput) as refused:
        await setting.gateway().handle(request(await setting.add_key(), arguments))
    assert refused.value.details["path"] == "/items/1/quantity"
    assert "my-password" not in str(problem(refused.value, "r").body)


async def test_a_client_that_quotes_the_url_in_its_error_does_not_leak_the_credential(setting: Setting) -> None:
    await setting.add_tool(auth={"kind": "query", "name": "token"})

    async def failing(method: str, url: str, **options: object) -> Any:
        raise Unavailable(f"could not reach {url}", code="upstream_unreachable")

    with pytest.raises(Unavailable) as refused:
        await setting.gateway(fetch=failing).handle(request(await setting.add_key()))
    assert SECRET not in str(problem(refused.value, "r").body)
    assert refused.value.code == "upstream_unreachable"
    assert refused.value.__cause__ is None
