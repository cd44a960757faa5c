"""Two customers talk to one agent in two instances, on the real Worker: neither's turns are in the other's prompt."""

from __future__ import annotations

import pytest

from tests.e2e.calls import recorded_run, run
from tests.e2e.conftest import Steered
from tests.e2e.puppet import Puppet, order

pytestmark = pytest.mark.workerd

SECRET = "my card ends in 4242"


def prompt_of_the_last_request(puppet: Puppet) -> str:
    return "\n".join(message.content for message in puppet.requests[-1].messages)


def test_a_customer_s_turns_are_in_the_prompts_of_their_own_instance_alone(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()

    def ask(instance: str, text: str) -> int:
        result = run(steered.api, tenant_id, "concierge", order(say=text), instance_id=instance)
        recorded_run(steered.api, tenant_id, result["run_id"])  # its episode is in D1 before the next run starts
        used: int = result["memory"]["episodes_used"]
        return used

    assert ask("ann", f"I am Ann and {SECRET}") == 0
    for number in range(11):
        assert ask("bob", f"Bob says {number}") == min(number, 10)
        assert SECRET not in prompt_of_the_last_request(puppet)
    assert ask("ann", "What is my name?") == 1
    assert SECRET in prompt_of_the_last_request(puppet)
    assert "Bob says" not in prompt_of_the_last_request(puppet)
