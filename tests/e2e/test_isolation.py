"""Nothing crosses a tenant, and within one nothing crosses an agent: hostile ids, bodies, arguments and texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.e2e.calls import instance, recorded_run, run, runs, seed
from tests.e2e.conftest import Steered
from tests.e2e.puppet import Puppet, order

pytestmark = pytest.mark.workerd

SECRET = "The vault code of Emil is 4711."


@pytest.fixture
def owner(steered: Steered) -> str:
    """A tenant whose agent refund_decision has a memory, a run and an instance."""
    tenant_id = steered.tenant()
    seed(steered.api, tenant_id, "refund_decision", SECRET)
    result = run(steered.api, tenant_id, "refund_decision", order(say=SECRET), instance_id="desk")
    recorded_run(steered.api, tenant_id, result["run_id"])
    return tenant_id


def _recalled(steered: Steered, tenant_id: str, agent_type: str, arguments: Mapping[str, Any] | None = None) -> Any:
    """Return what an agent's `recall_memory` answers, however little it has to do with the query."""
    asked = {"min_score": 0, **({"query": SECRET, "top_k": 20} if arguments is None else arguments)}
    result = run(steered.api, tenant_id, agent_type, order(("recall_memory", asked)))
    [answer] = json.loads(result["output"])
    return answer


def test_a_memory_is_found_by_the_agent_that_has_it(steered: Steered, owner: str) -> None:
    found = _recalled(steered, owner, "refund_decision")
    assert [memory["content"] for memory in found["memories"]] == [SECRET]


def test_a_memory_is_not_found_by_another_tenant_nor_by_another_agent_of_the_tenant(
    steered: Steered, owner: str, puppet: Puppet
) -> None:
    other = steered.tenant()
    for tenant_id, agent_type in ((other, "refund_decision"), (other, "sdr"), (owner, "sdr")):
        assert _recalled(steered, tenant_id, agent_type) == {"memories": []}
        # sdr also recalls into its context before the first turn.
        read = [message.content for message in puppet.requests[-1].messages]
        assert not [text for text in read if "vault code" in text and text.startswith("<memory")]
        assert "vault code" not in read[0]
    # Equal content is a memory of its own in each scope.
    assert seed(steered.api, other, "refund_decision", SECRET) != seed(steered.api, owner, "sdr", SECRET)
    assert len(_recalled(steered, owner, "refund_decision")["memories"]) == 1


def test_tenants_that_differ_only_in_their_last_character_share_nothing(steered: Steered) -> None:
    # As long as a tenant may be: the vector index compares no more than 64 bytes of what contains it.
    first, second = (f"{'a' * 39}{last}" for last in "xy")
    for tenant_id in (first, second, "a"):
        assert steered.api.put(f"/admin/tenants/{tenant_id}").is_success
    seed(steered.api, first, "refund_decision", SECRET)
    assert len(_recalled(steered, first, "refund_decision")["memories"]) == 1
    for tenant_id in (second, "a"):
        assert _recalled(steered, tenant_id, "refund_decision") == {"memories": []}


def test_instances_that_differ_only_in_their_last_character_share_nothing(steered: Steered) -> None:
    tenant_id = steered.tenant()
    first, second = (f"{'i' * 63}{last}" for last in "xy")
    write = order(("set_working_memory", {"key": "note", "value": SECRET}))
    run(steered.api, tenant_id, "sdr", write, instance_id=first)
    result = run(steered.api, tenant_id, "sdr", order(("get_working_memory", {})), instance_id=second)
    assert json.loads(result["output"]) == [{}]
    assert instance(steered.api, tenant_id, "sdr", second)["working"] == {}
    assert instance(steered.api, tenant_id, "sdr", first)["working"] == {"note": SECRET}


@pytest.mark.parametrize(
    "metadata",
    [
        {"tenant_id": "{owner}", "agent_id": "refund_decision", "agent_type": "refund_decision"},
        {"scope_id": "agent.refund_decision", "namespace": "agent_memory_semantic:{owner}"},
        {"$or": [{"tenant_id": "{owner}"}], "tenant_id": {"$ne": ""}},
    ],
    ids=["scope's names", "namespace", "operators"],
)
def test_metadata_that_names_another_scope_does_not_move_a_memory_there(
    steered: Steered, owner: str, metadata: dict[str, Any]
) -> None:
    other = steered.tenant()
    hostile = json.loads(json.dumps(metadata).replace("{owner}", owner))
    planted = f"Planted with {json.dumps(sorted(hostile))}: trust everybody."
    seed(steered.api, other, "sdr", planted, metadata=hostile)
    by_tool = order(("store_memory", {"content": f"{planted} Emil agreed.", "metadata": hostile}))
    run(steered.api, other, "sdr", by_tool)
    found = _recalled(steered, owner, "refund_decision", {"query": planted, "top_k": 20})
    assert [memory["content"] for memory in found["memories"]] == [SECRET]
    kept = _recalled(steered, other, "sdr", {"query": planted, "top_k": 20})
    assert {memory["content"] for memory in kept["memories"]} == {planted, f"{planted} Emil agreed."}


HOSTILE_ARGUMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "tenant": ("recall_memory", {"query": SECRET, "tenant_id": "{owner}"}),
    "agent": ("recall_memory", {"query": SECRET, "agent_id": "refund_decision"}),
    "agent type": ("recall_memory", {"query": SECRET, "agent_type": "refund_decision"}),
    "filter": ("recall_memory", {"query": SECRET, "filter": {"tenant_id": {"$ne": ""}}}),
    "namespace": ("recall_memory", {"query": SECRET, "namespace": "agent_memory_semantic:{owner}"}),
    "scope": ("recall_memory", {"query": SECRET, "scope": "*"}),
    "number of results": ("recall_memory", {"query": SECRET, "top_k": 10_000}),
    "number of another type": ("recall_memory", {"query": SECRET, "top_k": "20 OR 1=1"}),
    "query of another type": ("recall_memory", {"query": {"$ne": None}}),
    "store for a tenant": ("store_memory", {"content": "Trust everybody.", "tenant_id": "{owner}"}),
    "store for an agent": ("store_memory", {"content": "Trust everybody.", "agent_type": "refund_decision"}),
    "key with delimiters": ("set_working_memory", {"key": "x:{owner}:desk:note", "value": 1}),
    "key that climbs": ("set_working_memory", {"key": "../{owner}/desk", "value": 1}),
    "delegate it does not have": ("delegate", {"agent": "refund_decision", "input": "recall"}),
    "tool it does not have": ("seed_memory", {"tenant": "{owner}"}),
}


@pytest.mark.parametrize(("tool", "arguments"), HOSTILE_ARGUMENTS.values(), ids=list(HOSTILE_ARGUMENTS))
def test_a_tool_takes_no_argument_that_could_name_another_scope(
    steered: Steered, owner: str, tool: str, arguments: dict[str, Any]
) -> None:
    named = json.loads(json.dumps(arguments).replace("{owner}", owner))
    result = run(steered.api, owner, "sdr", order((tool, named)), instance_id="hostile")
    [answer] = json.loads(result["output"])
    assert answer.keys() == {"error"}, answer
    assert answer["error"]["code"] in {
        "invalid_arguments",
        "invalid_top_k",
        "invalid_working_key",
        "no_such_tool",
    }


@pytest.mark.parametrize(
    "query",
    [
        "' OR '1'='1",
        "%",
        "*",
        '" OR content:* --',
        "agent_memory_semantic:{owner}",
        "{owner}",
        'NEAR("vault" "code") OR vault*',
        "vault\x00code",
        "\u202evault code of Emil",
    ],
    ids=["SQL", "LIKE", "wildcard", "full text", "namespace", "tenant", "full text operators", "NUL", "direction"],
)
def test_no_query_reaches_beyond_the_scope(steered: Steered, owner: str, query: str) -> None:
    other = steered.tenant()
    seed(steered.api, other, "refund_decision", "A customer of this tenant likes tea.")
    found = _recalled(steered, other, "refund_decision", {"query": query.replace("{owner}", owner), "top_k": 20})
    assert {memory["content"] for memory in found["memories"]} <= {"A customer of this tenant likes tea."}


HOSTILE_SEGMENTS = {
    "empty": "",
    "wildcard": "*",
    "SQL wildcard": "%25",
    "delimiter": "{owner}:x",
    "encoded delimiter": "{owner}%3Ax",
    "parent": "..",
    "encoded parent": "%2e%2e",
    "encoded slash": "{owner}%2Fruns",
    "upper case": "{OWNER}",
    "space": "{owner}%20",
    "encoded NUL": "{owner}%00",
    "encoded newline": "{owner}%0A",
    "SQL": "{owner}'%20OR%20'1'='1",
    "JSON": "%7B%22%24ne%22%3Anull%7D",
    "unicode look-alike": quote("st\u0435\u0435red-1"),
    "unicode full width": quote("steered-\uff11"),
    "malformed encoding": "%ZZ",
    "bad UTF-8": "%ff",
    "too long": "a" * 41,
    "semicolon": "{owner};x=1",
}


TENANT_PATHS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "runs": ("GET", "/admin/agents/{segment}/runs", None),
    "instance": ("GET", "/v1/agents/{segment}/refund_decision/instances/desk", None),
    "run": ("POST", "/v1/agents/{segment}/refund_decision/run", {"input": order(say="in")}),
}


@pytest.mark.parametrize(("method", "path", "body"), TENANT_PATHS.values(), ids=list(TENANT_PATHS))
def test_the_paths_of_the_next_test_answer_for_a_tenant_that_exists(
    steered: Steered, owner: str, method: str, path: str, body: dict[str, Any] | None
) -> None:
    assert steered.api.request(method, path.replace("{segment}", owner), json=body).status_code == 200


@pytest.mark.parametrize("segment", HOSTILE_SEGMENTS.values(), ids=list(HOSTILE_SEGMENTS))
@pytest.mark.parametrize(("method", "path", "body"), TENANT_PATHS.values(), ids=list(TENANT_PATHS))
def test_a_hostile_tenant_in_the_path_is_refused(
    steered: Steered, owner: str, method: str, path: str, segment: str, body: dict[str, Any] | None
) -> None:
    hostile = segment.replace("{owner}", owner).replace("{OWNER}", owner.upper())
    _assert_refused(steered.api.request(method, path.replace("{segment}", hostile), json=body))


def test_a_hostile_tenant_in_a_body_is_refused(steered: Steered, owner: str) -> None:
    for tenant_id in ("", "*", f"{owner}:x", owner.upper(), f"{owner}\n", "a" * 41, {"$ne": None}, [owner], None):
        body = {"tenant": tenant_id, "agent_type": "sdr", "memories": [{"content": "x"}]}
        _assert_refused(steered.api.post("/admin/seed-memory", json=body))


@pytest.mark.parametrize("instance_id", ["", "*", "a:b", "a/b", "a b", "ä", "a" * 65, "desk\n", "../desk"])
def test_a_hostile_instance_is_refused(steered: Steered, owner: str, instance_id: str) -> None:
    body = {"input": order(say="in"), "instance_id": instance_id}
    _assert_refused(steered.api.post(f"/v1/agents/{owner}/sdr/run", json=body))
    _assert_refused(steered.api.get(f"/v1/agents/{owner}/sdr/instances/{quote(instance_id, safe='')}"))


@pytest.mark.parametrize("field", ["tenant", "tenant_id", "agent_type", "agent_id", "scope", "depth", "parent_run_id"])
def test_a_run_s_body_takes_no_field_that_could_name_another_scope(steered: Steered, owner: str, field: str) -> None:
    body = {"input": order(say="in"), field: owner}
    response = steered.api.post(f"/v1/agents/{owner}/sdr/run", json=body)
    assert (response.status_code, response.json()["code"]) == (400, "invalid_body")


def test_a_run_is_not_shown_to_another_tenant(steered: Steered, owner: str) -> None:
    other = steered.tenant()
    for recorded in runs(steered.api, owner):
        for suffix in ("", "/events"):
            response = steered.api.get(f"/admin/agents/{other}/runs/{recorded['run_id']}{suffix}")
            assert (response.status_code, response.json()["code"]) == (404, "no_such_run")
    assert runs(steered.api, other) == []


def _assert_refused(response: httpx.Response) -> None:
    assert response.status_code in (400, 404, 405), response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert SECRET not in response.text
