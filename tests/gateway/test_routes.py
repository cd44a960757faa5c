from __future__ import annotations

import json
import re

import pytest

from retain.errors import Forbidden, Misconfigured, NotFound, Unauthenticated
from retain.gateway.credentials import credential_name
from retain.gateway.keys import stored_name
from tests.gateway.setting import SECRET, TENANT, TOOL, Setting, echoed, request


async def test_a_call_reaches_the_upstream_with_the_credential_and_returns_its_answer(setting: Setting) -> None:
    await setting.add_tool()
    answer = await setting.gateway().handle(request(await setting.add_key(), {"order_id": "A-1", "quantity": 2}))
    seen = echoed(answer)
    assert answer.status == 200
    assert (seen["method"], seen["target"]) == ("POST", "/echo")
    assert json.loads(seen["body"]) == {"order_id": "A-1", "quantity": 2}
    assert seen["headers"]["authorization"] == f"Bearer {SECRET}"
    assert seen["headers"]["content-type"] == "application/json"


async def test_the_api_key_never_reaches_the_upstream(setting: Setting) -> None:
    await setting.add_tool()
    await setting.add_tool("/echo", name="open_tool", auth={"kind": "none"})
    api_key = await setting.add_key()
    for tool in (TOOL, "open_tool"):
        await setting.gateway().handle(request(api_key, tool=tool, headers={"x-api-key": api_key, "cookie": "c=1"}))
    assert len(setting.server.received) == 2
    assert api_key not in json.dumps(setting.server.received)
    assert all("cookie" not in str(seen["headers"]) for seen in setting.server.received)


async def test_only_the_allowed_headers_are_returned(setting: Setting) -> None:
    await setting.add_tool()
    answer = await setting.gateway().handle(request(await setting.add_key()))
    assert set(answer.headers) == {"content-type", "cache-control", "server-timing"}
    assert answer.headers["content-type"] == "application/json"


async def test_the_answer_says_how_long_kv_and_upstream_took(setting: Setting) -> None:
    await setting.add_tool()
    answer = await setting.gateway().handle(request(await setting.add_key()))
    assert re.fullmatch(r"kv;dur=\d+, upstream;dur=\d+, overhead;dur=\d+", answer.headers["server-timing"])


@pytest.mark.parametrize("status", [201, 204, 400, 401, 404, 429, 500, 503])
async def test_the_upstreams_own_status_and_body_are_passed_on(setting: Setting, status: int) -> None:
    await setting.add_tool(f"/status/{status}")
    answer = await setting.gateway().handle(request(await setting.add_key()))
    assert answer.status == status
    assert answer.headers["retry-after"] == "7"
    assert answer.body == (b"" if status == 204 else b"as you wish")


async def test_a_binary_answer_is_passed_on_byte_for_byte(setting: Setting) -> None:
    await setting.add_tool("/bytes")
    answer = await setting.gateway().handle(request(await setting.add_key()))
    assert answer.body == bytes(range(256))
    assert answer.headers["content-type"] == "application/octet-stream"


async def test_an_answer_of_exactly_the_allowed_size_is_passed_on(setting: Setting) -> None:
    await setting.add_tool("/large/2000", max_response_bytes=2000)
    answer = await setting.gateway().handle(request(await setting.add_key()))
    assert len(answer.body) == 2000


async def test_the_key_is_also_taken_from_x_api_key(setting: Setting) -> None:
    await setting.add_tool()
    answer = await setting.gateway().handle(request(None, headers={"x-api-key": await setting.add_key()}))
    assert answer.status == 200


async def test_an_empty_body_means_no_arguments(setting: Setting) -> None:
    await setting.add_tool("/echo", method="GET", parameters={"type": "object"})
    answer = await setting.gateway().handle(request(await setting.add_key(), body=""))
    assert echoed(answer)["target"] == "/echo"


async def test_an_idempotency_key_is_passed_to_the_upstream(setting: Setting) -> None:
    await setting.add_tool()
    answer = await setting.gateway().handle(request(await setting.add_key(), headers={"idempotency-key": "order-1"}))
    assert echoed(answer)["headers"]["idempotency-key"] == "order-1"


async def test_a_key_with_a_scope_calls_that_tool_alone(setting: Setting) -> None:
    await setting.add_tool()
    await setting.add_tool(name="delete_order")
    api_key = await setting.add_key(TOOL)
    assert (await setting.gateway().handle(request(api_key))).status == 200
    with pytest.raises(Forbidden) as refused:
        await setting.gateway().handle(request(api_key, tool="delete_order"))
    assert refused.value.code == "tool_not_allowed"


async def test_a_revoked_key_stops_working_at_once_in_a_warm_isolate(setting: Setting) -> None:
    await setting.add_tool()
    api_key = await setting.add_key()
    gateway = setting.gateway()
    assert (await gateway.handle(request(api_key))).status == 200
    await setting.kv.delete(stored_name(api_key))
    with pytest.raises(Unauthenticated):
        await gateway.handle(request(api_key))


async def test_a_changed_tool_and_a_changed_credential_are_used_at_once_in_a_warm_isolate(setting: Setting) -> None:
    await setting.add_tool()
    api_key = await setting.add_key()
    gateway = setting.gateway()
    await gateway.handle(request(api_key))
    await setting.add_tool("/echo/second", version=2)
    await setting.add_credential("another-secret")
    seen = echoed(await gateway.handle(request(api_key)))
    assert (seen["target"], seen["headers"]["authorization"]) == ("/echo/second", "Bearer another-secret")


async def test_a_tool_of_another_tenant_answers_as_one_that_does_not_exist(setting: Setting) -> None:
    await setting.add_tool(tenant="globex")
    api_key = await setting.add_key()
    answers = []
    for tool in (TOOL, "never_was"):
        with pytest.raises(NotFound) as refused:
            await setting.gateway().handle(request(api_key, tool=tool))
        answers.append((refused.value.code, refused.value.message))
    assert answers[0] == answers[1]
    assert not setting.server.received


async def test_a_credential_copied_to_another_tenant_does_not_open(setting: Setting) -> None:
    await setting.add_tool()
    await setting.add_tool(tenant="globex")
    stolen = await setting.kv.get(credential_name(TENANT, TOOL))
    assert stolen is not None
    await setting.kv.put(credential_name("globex", TOOL), stolen)
    with pytest.raises(Misconfigured) as refused:
        await setting.gateway().handle(request(await setting.add_key(tenant="globex")))
    assert refused.value.code == "credential_unreadable"
