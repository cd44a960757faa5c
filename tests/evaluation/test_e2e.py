"""Evaluation through the real Worker: its routes, its agents, and the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from retain.cli import evaluate as command
from tests.evaluation.world import SHIPPED
from tools.local_server import LocalServer

pytestmark = pytest.mark.workerd


def test_the_command_passes_every_shipped_agent_and_fails_one_below_its_threshold(
    server: LocalServer, api: httpx.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first cases of each: erasing a scratch tenant takes a second here. All of them run on the host.
    good = [tmp_path / f"{name}.yaml" for name in SHIPPED]
    for path in good:
        content = command.load(command.dataset_file(path.stem))
        assert isinstance(content["cases"], list)
        path.write_text(yaml.safe_dump({**content, "cases": content["cases"][:2]}))
    case = {"id": "wrong", "input": "Good morning!", "expected": {"exact": "no [such] text"}}
    bad = tmp_path / "below.yaml"
    bad.write_text(yaml.safe_dump({"target": {"agent": "sdr"}, "thresholds": {"pass_rate": 0.5}, "cases": [case]}))
    assert command.main(["--base-url", server.base_url, *map(str, good)]) == 0
    assert command.main(["--base-url", server.base_url, str(bad)]) == 1
    assert "below the threshold: pass_rate" in capsys.readouterr().out
    listed = api.get(f"/admin/tenants/{command.TENANT}/evals/runs").json()["runs"]
    assert [run["dataset"] for run in listed] == ["below", *reversed(SHIPPED)]
    assert [(run["total"], run["passed"]) for run in listed[1:]] == [(2, 2)] * len(SHIPPED)


def test_datasets_and_runs_over_http(api: httpx.Client, tenant: Callable[[], str]) -> None:
    base = f"/admin/tenants/{tenant()}/evals"
    case = {
        "id": "tea",
        "input": "What does Ann drink?",
        "memories": [{"id": "tea", "content": "Ann drinks green tea."}],
        "expected": {"memories": {"relevant": ["tea"]}},
    }
    content: dict[str, Any] = {"target": {"recall": {"agent_type": "sdr"}}, "cases": [case]}
    put = api.put(f"{base}/datasets/tea", json=content)
    assert put.status_code == 201, put.text
    assert api.put(f"{base}/datasets/tea", json=content).status_code == 200
    assert api.get(f"{base}/datasets/tea").json()["cases"] == [case]
    assert [found["name"] for found in api.get(f"{base}/datasets").json()["datasets"]] == ["tea"]
    runs = []
    for _ in range(2):
        answer = api.post(f"{base}/runs", json={"dataset": "tea"})
        while answer.status_code == 202:
            assert answer.json()["run"]["state"] in ("running", "cleaning")
            answer = api.post(f"{base}/runs/{answer.json()['run']['run_id']}")
        assert answer.status_code == 200, answer.text
        run = answer.json()["run"]
        assert (run["state"], run["summary"]["passed"]) == ("completed", 1)
        assert api.get(f"{base}/runs/{run['run_id']}").json() == run
        scratch = f"eval-{run['run_id'].lower()}-0"
        assert api.get(f"/admin/tenants/{scratch}/memories").status_code == 404
        runs.append(run["run_id"])
    compared = api.get(f"{base}/runs/{runs[1]}/compare/{runs[0]}").json()
    assert compared["counts"] == {"better": 0, "worse": 0, "equal": 1}
    cancelled = api.post(f"{base}/runs/{runs[0]}/cancel")
    assert (cancelled.status_code, cancelled.json()["run"]["summary"]["passed"]) == (200, 1), "it had completed"
    assert api.delete(f"{base}/runs/{runs[0]}").status_code == 204
    assert api.delete(f"{base}/datasets/tea").status_code == 204
    refused = api.post(f"{base}/runs", json={"dataset": "tea"})
    assert (refused.status_code, refused.json()["code"]) == (404, "no_such_dataset")
    invalid = api.put(f"{base}/datasets/bad", json={**content, "cases": []})
    assert (invalid.status_code, invalid.json()["code"]) == (400, "invalid_body")
