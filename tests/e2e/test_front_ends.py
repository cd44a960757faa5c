"""Front ends on real workerd: OpenAI's official client, synchronous, asynchronous and streaming, and AG-UI's in Node."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from tests.agents.front_ends.ag_ui_stream import check_order, parsed, text_of
from tests.e2e.waiting import eventually
from tools.local_server import LocalServer
from tools.paths import NODE_BIN

pytestmark = pytest.mark.workerd
PROGRAM = Path(__file__).with_name("ag_ui_client.mjs")
HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]


@dataclass
class Application:
    """An application of a tenant, with its key."""

    api: httpx.Client
    url: str
    tenant: str
    key: str

    def token(self, user: str) -> str:
        """Return a token of a user."""
        sent = {"authorization": f"Bearer {self.key}"}
        made = self.api.post(f"/v1/tenants/{self.tenant}/tokens", json={"user": user}, headers=sent)
        return str(made.json()["token"])


@pytest.fixture
def application(api: httpx.Client, server: LocalServer, tenant: Callable[[], str]) -> Application:
    """An application of a new tenant."""
    tenant_id = tenant()
    made = api.post(f"/admin/tenants/{tenant_id}/keys", json={"name": "shop", "scopes": ["runs"]}).json()
    return Application(api, server.base_url, tenant_id, made["key"])


@pytest.fixture
def client(application: Application) -> Iterator[OpenAI]:
    """The official client, as its documentation makes it."""
    with OpenAI(base_url=f"{application.url}/v1", api_key=application.key) as made:
        yield made


def retain(answer: BaseModel) -> Any:
    """Return the run that an answer is of."""
    return (answer.model_extra or {})["retain"]


def has_messages(application: Application, count: int) -> None:
    """Return when the conversation of the instance has so many messages in D1."""
    path = f"/v1/agents/{application.tenant}/sdr/instances/desk/messages"
    eventually(
        lambda: application.api.get(path),
        lambda answer: answer.status_code == 200 and len(answer.json()["messages"]) == count,
    )


def test_the_official_client_lists_agents_and_talks_to_one(application: Application, client: OpenAI) -> None:
    assert {"sdr", "clerk", "support"} <= {model.id for model in client.models.list()}
    assert client.models.retrieve("support").object == "model"
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Contact c-100 prefers email"},
    ]
    raw = client.chat.completions.with_raw_response.create(model="sdr", user="ann", messages=messages, temperature=0)
    assert raw.headers["x-retain-ignored"] == "temperature, system"
    first = raw.parse()
    assert first.choices[0].message.content == "Noted the preference of c-100."
    assert first.usage is not None
    assert first.usage.total_tokens > 0
    messages += [
        {"role": "assistant", "content": first.choices[0].message.content},
        {"role": "user", "content": "How do I reach contact c-100?"},
    ]
    second = client.chat.completions.create(model="sdr", user="ann", messages=messages)
    assert second.choices[0].message.content == "Contact c-100 prefers email."
    assert retain(first)["instance_id"] != retain(second)["instance_id"]
    assert retain(second)["memory"]["messages_used"] == 2

    named = {"instance_id": "desk"}
    for count in (0, 2):
        third = client.chat.completions.create(model="sdr", user="ann", messages=messages, metadata=named)
        assert (retain(third)["instance_id"], retain(third)["memory"]["messages_used"]) == ("desk", count)
        has_messages(application, count + 2)


async def test_the_official_client_streams(application: Application, client: OpenAI) -> None:
    wanted: Any = {"model": "sdr", "messages": HELLO, "stream": True, "stream_options": {"include_usage": True}}
    chunks = list(client.chat.completions.create(**wanted))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert text
    assert chunks[-1].usage is not None
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "stop"
    with client.chat.completions.stream(model="sdr", messages=HELLO) as events:
        assert events.get_final_completion().choices[0].message.content == text
    async with AsyncOpenAI(base_url=f"{application.url}/v1", api_key=application.token("ann")) as by_user:
        assert (await by_user.chat.completions.create(model="sdr", messages=HELLO)).choices[0].message.content == text
        stream = await by_user.chat.completions.create(model="sdr", messages=HELLO, stream=True)
        parts = [choice.delta.content or "" async for chunk in stream for choice in chunk.choices]
        assert "".join(parts) == text


def test_the_official_client_reads_each_refusal_as_its_own_error(application: Application, client: OpenAI) -> None:
    create = client.chat.completions.create
    with pytest.raises(openai.NotFoundError) as unknown:
        create(model="gpt-4o", messages=HELLO)
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as several:
        create(model="sdr", messages=HELLO, n=2)
    assert (several.value.code, several.value.param) == ("unsupported_parameter", "n")
    with pytest.raises(openai.BadRequestError) as image:
        create(
            model="sdr",
            messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example"}}]}],
        )
    assert image.value.code == "unsupported_content"
    with pytest.raises(openai.PermissionDeniedError) as other:
        create(model="sdr", messages=HELLO, extra_headers={"openai-organization": "somebody-else"})
    assert other.value.code == "role_required"
    with pytest.raises(openai.AuthenticationError) as refused:
        client.with_options(api_key=application.key[:-3] + "AAA").models.list()
    assert refused.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4o")


def test_a_run_that_waits_for_a_person_is_a_message_and_its_answer_is_in_the_conversation(
    application: Application, client: OpenAI
) -> None:
    named = {"instance_id": "desk"}
    asked = client.chat.completions.create(
        model="clerk", messages=[{"role": "user", "content": "refund AB-1"}], metadata=named
    )
    assert "approves the call of issue_refund (call 1.0)" in (asked.choices[0].message.content or "")
    run = retain(asked)
    assert run["waiting_for"]["tool"] == "issue_refund"
    place = f"/v1/agents/{application.tenant}/clerk/instances/desk/runs/{run['run_id']}"
    sent = {"authorization": f"Bearer {application.key}"}
    answer = {"call": run["waiting_for"]["call"], "decision": "approve"}
    assert application.api.post(f"{place}/resume", json=answer, headers=sent).status_code in (200, 202)
    ended = eventually(
        lambda: application.api.get(place, headers=sent).json(), lambda shown: shown["status"] == "completed"
    )
    assert ended["output"] == "It was refunded."


def test_a_page_streams_from_both_front_ends(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    origin = f"https://{tenant_id}.example"
    body = {"name": "shop", "scopes": ["runs"], "origins": [origin]}
    key = api.post(f"/admin/tenants/{tenant_id}/keys", json=body).json()["key"]
    page = {"origin": origin, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
    chat = "/v1/chat/completions"
    wanted = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-os,openai-organization",
    }
    asked = eventually(
        lambda: api.request("OPTIONS", chat, headers={**page, **wanted}), lambda answer: answer.status_code == 204
    )
    assert set(wanted["access-control-request-headers"].split(",")) <= set(
        asked.headers["access-control-allow-headers"].split(", ")
    )
    sent = {**page, "authorization": f"Bearer {key}"}
    for path, content, end in (
        (chat, {"model": "sdr", "messages": HELLO, "stream": True}, "data: [DONE]"),
        (
            f"/v1/agents/{tenant_id}/sdr/ag-ui",
            {"threadId": "desk", "runId": "r1", "messages": [{"id": "1", **HELLO[0]}]},
            "RUN_FINISHED",
        ),
    ):
        with api.stream("POST", path, json=content, headers=sent) as stream:
            assert stream.headers["access-control-allow-origin"] == origin
            assert end in stream.read().decode()
    other = api.post(chat, json={}, headers={**sent, "origin": "https://other.example"})
    assert (other.status_code, other.json()["error"]["code"]) == (403, "origin_not_allowed")


def test_a_client_of_ag_ui_reads_runs_answers_a_question_and_keeps_its_thread(application: Application) -> None:
    """The protocol's own HttpAgent, which verifies the order of the events and throws at an unknown one."""
    agents = f"{application.url}/v1/agents/{application.tenant}"
    done = subprocess.run(
        [NODE_BIN / "node", PROGRAM],
        env={**os.environ, "RETAIN_AGENTS": agents, "RETAIN_KEY": application.key},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert seen["noted"] == "Noted the preference of c-100."
    assert seen["reached"] == "Contact c-100 prefers email."
    assert seen["interrupt"]["reason"] == "tool_call"
    assert seen["refunded"] == "It was refunded."
    assert seen["tools"] == ["issue_refund"]
    assert seen["failed"]


def test_whoever_reconnects_to_ag_ui_reads_exactly_the_rest(application: Application) -> None:
    sent = {"authorization": f"Bearer {application.key}"}
    body = {"threadId": "desk", "runId": "r1", "messages": [{"id": "1", "role": "user", "content": "refund AB-1"}]}

    def read(**more: str) -> list[tuple[int | None, dict[str, Any]]]:
        path = f"/v1/agents/{application.tenant}/clerk/ag-ui"
        with application.api.stream("POST", path, json=body, headers={**sent, **more}) as stream:
            assert stream.status_code == 200
            return parsed(stream.read().decode())

    whole = read()
    check_order(event for _, event in whole)
    place, last = next((place, one) for place, (one, _) in enumerate(whole) if one)
    assert read(**{"last-event-id": str(last)}) == whole[place + 1 :]
    assert whole[-1][1]["outcome"]["type"] == "interrupt"
    assert text_of(event for _, event in whole) == []
