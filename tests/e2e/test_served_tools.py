"""A run calls the tools of a real MCP server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retain.cli.project import Project
from retain.cli.wrangler_kv import wrangler_of
from retain.gateway.provisioning import tool_entry
from tests.e2e.calls import timeline
from tests.e2e.conftest import Steered
from tests.e2e.puppet import order
from tests.e2e.waiting import eventually
from tests.gateway.setting import config
from tests.support.mcp_server import shop
from tools.paths import PRODUCTION_CONFIG, ROOT

pytestmark = pytest.mark.workerd


def _provide(steered: Steered, tenant_id: str, url: str, file: Path) -> None:
    """Write the server into the tenant's gateway."""
    settings = config(
        url, auth={"kind": "none"}, parameters={"type": "object"}, max_response_bytes=50_000, agents_only=True
    )
    entry = tool_entry(tenant_id, "market", settings, allow_loopback=True)
    file.write_text(json.dumps([{"key": entry.key, "value": entry.value}]))
    where = ["--binding", "KV", "--config", str(PRODUCTION_CONFIG), "--local", "--persist-to", str(steered.state.root)]
    wrangler_of(Project(ROOT))(["kv", "bulk", "put", str(file), *where])


def test_a_run_calls_tools_of_a_server_until_it_is_away_and_a_person_approves(steered: Steered, tmp_path: Path) -> None:
    tenant_id = steered.tenant()
    path = f"/v1/agents/{tenant_id}/buyer/run"
    with shop(json_response=False, stateless=False, modern=False, left_open=True) as (url, _):
        _provide(steered, tenant_id, url, tmp_path / "entries.json")
        calls = order(("market__search", {"words": "hats"}), ("market__large", {}), ("market__refuse", {}))
        waiting = steered.api.post(path, json={"input": calls, "instance_id": "main"}).json()
        assert (waiting["status"], waiting["waiting_for"]["tool"]) == ("waiting", "market__refuse")
        place = f"/v1/agents/{tenant_id}/buyer/instances/main/runs/{waiting['run_id']}"
        answer = {"call": waiting["waiting_for"]["call"], "decision": "approve"}
        assert steered.api.post(f"{place}/resume", json=answer).status_code in (200, 202)
        result = eventually(lambda: steered.api.get(place).json(), lambda shown: shown["status"] == "completed")
        assert "sold out" in result["output"]
    answered = [
        event for event in timeline(steered.api, tenant_id, waiting["run_id"]) if event["kind"] == "tool_answered"
    ]
    shown = [json.dumps(event) for event in answered]
    assert len(shown) == 3, shown
    assert "hats" in shown[0]
    assert "response_too_large" in shown[1]
    assert "sold out" in shown[2]
    away = steered.api.post(path, json={"input": order(("market__search", {"words": "hats"})), "instance_id": "main"})
    assert away.json()["status"] == "completed"
    assert "upstream_unreachable" in away.text


def test_a_waiting_run_keeps_its_tools_when_its_isolate_has_ended_and_the_server_is_away(
    steered: Steered, tmp_path: Path
) -> None:
    tenant_id = steered.tenant()
    with shop(json_response=True, stateless=True) as (url, _):
        _provide(steered, tenant_id, url, tmp_path / "entries.json")
        calls = order(("market__refuse", {}), ("market__search", {"words": "hats"}))
        body = {"input": calls, "instance_id": "main"}
        waiting = steered.api.post(f"/v1/agents/{tenant_id}/buyer/run", json=body).json()
        assert waiting["status"] == "waiting"
    steered.crash()
    steered.restart()
    place = f"/v1/agents/{tenant_id}/buyer/instances/main/runs/{waiting['run_id']}"
    answer = {"call": waiting["waiting_for"]["call"], "decision": "approve"}
    assert steered.api.post(f"{place}/resume", json=answer).status_code in (200, 202)
    result = eventually(lambda: steered.api.get(place).json(), lambda shown: shown["status"] == "completed")
    refused, found = json.loads(result["output"])
    assert refused["error"]["code"] == found["error"]["code"] == "upstream_unreachable"
