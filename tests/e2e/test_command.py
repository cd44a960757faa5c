"""The command asks a deployment on the real workerd: it moves in, ingests, exports, imports, follows, and examines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from retain.cli.command import main
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd
EXPORTS = Path(__file__).parents[1] / "cli" / "moving"
Tenant = Callable[[], str]
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(api: httpx.Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("RETAIN_URL", str(api.base_url))

    def run(tenant_id: str, *arguments: str) -> tuple[int, str]:
        return main([*arguments, "--tenant", tenant_id]), capsys.readouterr().out

    return run


def test_memories_of_another_product_are_recalled_here_and_can_be_moved_to_another_tenant(
    tenant: Tenant, command: Command, tmp_path: Path
) -> None:
    first, second, file = tenant(), tenant(), str(tmp_path / "all.jsonl")
    assert command(first, "import", str(EXPORTS / "mem0.json"), "--from", "mem0")[0] == 0
    assert command(first, "import", str(EXPORTS / "zep.json"), "--from", "zep", "--user", "emily")[0] == 0
    items = str(EXPORTS / "langgraph.jsonl")
    assert command(first, "import", items, "--from", "langgraph", "--user-at", "-1") == (
        0,
        "scopes 1, created 2, events 2\n",
    )
    assert command(first, "export", file)[1].startswith("record 6, ")
    assert "created 6" in command(second, "import", file)[1]
    for tenant_id in (first, second):
        _, recalled = command(tenant_id, "recall", "Where does Emily live?", "--user", "emily", "--top-k", "1")
        assert recalled.strip().endswith("Emily lives in Lyon")
    assert command(second, "import", file)[1].endswith("unchanged 6\n")


def test_a_conversation_is_ingested_once_and_its_facts_are_recalled(
    tenant: Tenant, command: Command, tmp_path: Path
) -> None:
    tenant_id, chat = tenant(), tmp_path / "chat.txt"
    chat.write_text("Bea: Hi! I live in Porto.\nMaya: Nice to meet you.\n")
    for _ in range(2):
        assert command(tenant_id, "ingest", str(chat)) == (0, "stored 2, extracted 1\n")
    assert "Porto" in command(tenant_id, "recall", "Where does Bea live?")[1]


def test_a_run_is_followed_and_the_deployment_is_well(api: httpx.Client, tenant: Tenant, command: Command) -> None:
    tenant_id = tenant()
    body = {"input": "hello", "instance_id": "desk", "background": True}
    run_id = api.post(f"/v1/agents/{tenant_id}/sdr/run", json=body).json()["run_id"]
    eventually(lambda: command(tenant_id, "runs", "list")[1], lambda printed: run_id in printed)
    status, followed = command(tenant_id, "tail", run_id, "--json")
    events = [json.loads(line)["event"] for line in followed.splitlines()]
    assert (status, events[0], events[-1]) == (0, "run.started", "run.completed")
    assert "sdr" in command(tenant_id, "agents")[1]
    status, found = command(tenant_id, "doctor", "--json")
    verdicts = {line["check"]: line["verdict"] for line in map(json.loads, found.splitlines())}
    assert (status, verdicts.pop("clock")) == (0, "unknown")
    assert set(verdicts.values()) == {"ok"}
