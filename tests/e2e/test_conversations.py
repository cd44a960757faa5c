"""Conversations on the real Worker: two customers of one agent, what their models read, and the routes of conversations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.e2e.calls import recorded_run, run
from tests.e2e.conftest import Steered
from tests.e2e.puppet import Puppet, order
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd

SECRET = "my card ends in 4242"


def prompt_of_the_last_request(puppet: Puppet) -> str:
    return "\n".join(message.content for message in puppet.requests[-1].messages)


def ask(steered: Steered, tenant_id: str, instance: str, text: str, **more: object) -> int:
    """Return how many messages of the conversation the run read. Its own are in D1 before the next run starts."""
    result = run(steered.api, tenant_id, "concierge", order(say=text), instance_id=instance, **more)
    recorded_run(steered.api, tenant_id, result["run_id"])
    assert result["memory"]["episodes_used"] == 0
    used: int = result["memory"]["messages_used"]
    return used


def test_a_customer_s_turns_are_in_the_prompts_of_their_own_instance_alone(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    assert ask(steered, tenant_id, "ann", f"I am Ann and {SECRET}") == 0
    for number in range(11):
        assert ask(steered, tenant_id, "bob", f"Bob says {number}") == 2 * number
        assert SECRET not in prompt_of_the_last_request(puppet)
    assert ask(steered, tenant_id, "ann", "What is my name?") == 2
    assert [(message.role, message.content) for message in puppet.requests[-1].messages[1:]] == [
        ("user", order(say=f"I am Ann and {SECRET}")),
        ("assistant", f"I am Ann and {SECRET}"),
        ("user", order(say="What is my name?")),
    ]
    assert "Bob says" not in prompt_of_the_last_request(puppet)


def test_the_early_fact_of_a_conversation_of_thirty_turns_survives_in_its_summary(
    steered: Steered, puppet: Puppet
) -> None:
    tenant_id = steered.tenant()
    ask(steered, tenant_id, "ann", f"I am Ann and {SECRET}.")
    for number in range(29):
        assert ask(steered, tenant_id, "ann", f"And the weather, please {'x' * number}") <= 40
    messages = puppet.requests[-1].messages
    assert not [message for message in messages if message.content == order(say=f"I am Ann and {SECRET}.")]
    assert messages[1].content.startswith('<memory section="conversation"')
    assert SECRET in messages[1].content
    assert [message.role for message in messages[2:4]] == ["user", "assistant"]


def test_conversations_are_listed_read_renamed_and_deleted(steered: Steered, puppet: Puppet) -> None:
    api, tenant_id = steered.api, steered.tenant()
    base = f"/v1/agents/{tenant_id}/concierge/instances"
    ask(steered, tenant_id, "ann", f"I am Ann and {SECRET}", user={"id": "ann"})
    ask(steered, tenant_id, "bob", "Hello")
    listed = api.get(f"/v1/agents/{tenant_id}/instances", params={"agent_type": "concierge"}).json()["instances"]
    assert [(one["instance_id"], one["user_id"], one["status"]) for one in listed] == [
        ("bob", None, "completed"),
        ("ann", "ann", "completed"),
    ]
    assert api.patch(f"{base}/ann", json={"title": "Ann's card"}).json()["title"] == "Ann's card"
    mine = api.get(f"/v1/agents/{tenant_id}/instances", params={"user": "ann"}).json()["instances"]
    assert [(one["instance_id"], one["title"], one["runs"]) for one in mine] == [("ann", "Ann's card", 1)]
    read = api.get(f"{base}/ann/messages").json()["messages"]
    assert [message["role"] for message in read] == ["user", "assistant"]
    assert all(SECRET in message["content"] for message in read)
    assert api.delete(f"{base}/ann").status_code == 204
    assert api.get(f"{base}/ann").status_code == api.get(f"{base}/ann/messages").status_code == 404
    assert ask(steered, tenant_id, "ann", "Who am I?") == 0
    assert SECRET not in prompt_of_the_last_request(puppet)
    assert len(api.get(f"{base}/bob/messages").json()["messages"]) == 2


ANN: dict[str, Any] = {"id": "ann", "name": "Ann", "timezone": "Pacific/Kiritimati"}
BOB: dict[str, Any] = {"id": "bob@example.com", "name": "Bob"}


def test_what_a_customer_says_is_known_in_their_next_conversation_and_in_nobody_else_s(
    steered: Steered, puppet: Puppet
) -> None:
    tenant_id = steered.tenant()

    def say(instance: str, user: dict[str, Any], text: str) -> str:
        return str(run(steered.api, tenant_id, "support", text, instance_id=instance, user=user)["run_id"])

    def learned(run_id: str) -> list[str]:
        path = f"/admin/agents/{tenant_id}/runs/{run_id}"
        shown = eventually(
            lambda: steered.api.get(path),
            lambda answer: (answer.json().get("learning") or {}).get("status") == "learned",
        )
        records: list[str] = shown.json()["learning"]["records"]
        return records

    [berlin] = learned(say("ann-1", ANN, "Hello! I live in Berlin."))
    learned(say("bob-1", BOB, "I live in Berlin."))
    [lyon] = learned(say("ann-2", ANN, "By the way, I moved to Lyon."))
    closed = steered.api.get(f"/admin/tenants/{tenant_id}/memories/{berlin}").json()
    assert (closed["superseded_by"], closed["subject"]) == (lyon, "user:ann")

    say("ann-3", ANN, "Where does my parcel go?")
    prompt = prompt_of_the_last_request(puppet)
    assert "Ann lives in Lyon" in prompt
    assert not [text for text in ("Berlin", "Bob") if text in prompt]
    say("bob-2", BOB, "Where does my parcel go?")
    prompt = prompt_of_the_last_request(puppet)
    assert "Bob lives in Berlin" in prompt
    assert not [text for text in ("Lyon", "Ann") if text in prompt]


def test_the_prompt_has_the_date_in_the_customer_s_time_zone(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    there = timezone(timedelta(hours=14))  # of Kiritimati
    before = datetime.now(UTC)
    run(steered.api, tenant_id, "support", "Good morning!", user=ANN)
    days = {f"{moment.astimezone(there):%Y-%m-%d} (Pacific/Kiritimati)." for moment in (before, datetime.now(UTC))}
    assert any(day in prompt_of_the_last_request(puppet) for day in days)
    refused = steered.api.post(
        f"/v1/agents/{tenant_id}/support/run",
        json={"input": "hi", "user": {"id": "ann", "timezone": "Europe/Atlantis"}},
    )
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_time_zone")
