"""Errors raised in a Durable Object arrive as they were raised: the same class, code, message and details."""

from __future__ import annotations

from typing import Any

import pytest

from retain import errors
from tests.workerd.server import TestWorker

pytestmark = pytest.mark.workerd

CLASSES = [
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.RetainError)
]
DETAILS = {"limit": 5, "ratio": 0.5, "allowed": ["GET", "é"], "missing": None, "final": True, "tool": "echo"}
IDENTITY = {"tenant_id": "acme", "agent_type": "order_triage", "instance_id": "one"}


def _refused(worker: TestWorker, request: dict[str, Any], *, binding: str, method: str, name: str) -> Any:
    return worker.probe("refused", binding=binding, method=method, name=name, request=request)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_arrives_as_it_was_raised(worker: TestWorker, kind: str) -> None:
    raised = {"class": kind, "code": "planned_code", "message": "planned, with 'quotes' and é", "details": DETAILS}
    request = {**IDENTITY, "error": raised}
    assert _refused(worker, request, binding="REFUSING", method="refuse", name="refusing") == raised


def test_an_unexpected_error_arrives_without_its_text(worker: TestWorker) -> None:
    request = {**IDENTITY, "error": {"class": "ValueError", "message": "hunter2"}}
    arrived = _refused(worker, request, binding="REFUSING", method="refuse", name="refusing")
    assert (arrived["class"], arrived["code"]) == ("RetainError", "internal")
    assert "hunter2" not in str(arrived)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"tenant_id": "Not A Tenant"}, "invalid_tenant", id="tenant"),
        pytest.param({"instance_id": "a:b"}, "invalid_instance_id", id="instance"),
    ],
)
def test_an_agent_runtime_refuses_an_identity_with_its_own_code(
    worker: TestWorker, change: dict[str, str], code: str
) -> None:
    arrived = _refused(worker, {**IDENTITY, **change}, binding="AGENT_RUNTIME", method="describe", name="refusing")
    assert (arrived["class"], arrived["code"]) == ("InvalidInput", code)


@pytest.mark.parametrize("change", [{"instance_id": "two"}, {"tenant_id": "other"}, {"agent_type": "sdr"}], ids=str)
def test_an_agent_runtime_serves_only_the_instance_that_it_was_first(
    worker: TestWorker, change: dict[str, str]
) -> None:
    def described(identity: dict[str, str]) -> Any:
        return _refused(worker, identity, binding="AGENT_RUNTIME", method="describe", name="claimed")

    wish = {
        **IDENTITY,
        "idempotency_key": "never",
        "by": "a test",
        "reason": None,
    }  # showing an instance does not create it
    cancelled = _refused(worker, wish, binding="AGENT_RUNTIME", method="cancel_call", name="claimed")
    assert cancelled["answer"] == {"status": "unknown"}
    assert described(IDENTITY)["answer"]["instance_id"] == "one"
    refused = described({**IDENTITY, **change})
    assert (refused.get("class"), refused.get("code")) == ("Misconfigured", "wrong_instance")
    assert described(IDENTITY)["answer"]["instance_id"] == "one"
