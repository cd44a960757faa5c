"""Invariants 1 and 2: a call of a tool touches KV and the upstream, nothing else, with at most three KV reads."""

from __future__ import annotations

import pytest

from tests.workerd.server import TestWorker

pytestmark = pytest.mark.workerd


def test_invariant_2_a_call_through_the_entrypoint_is_answered_where_every_other_binding_raises(
    worker: TestWorker, origin: str
) -> None:
    outcome = worker.probe("gateway", origin=origin)
    assert outcome["touchable"] == []
    assert outcome["touched"] == []
    for answer in outcome["answers"]:
        assert answer["status"] == 200
        echoed = answer["body"]
        assert (echoed["target"], echoed["body"]) == ("/echo", '{"text":"hello"}')
        assert echoed["headers"]["authorization"] == "Bearer upstream-credential"
        assert sorted(answer["reads"]) == ["gateway_credential", "gateway_key", "gateway_tool"]
