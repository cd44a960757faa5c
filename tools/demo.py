"""The demo: the order-triage scenario on the real workerd, step by step."""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import yaml
from rich.console import Console

from retain.cli.deployed.exit_status import INTERRUPTED
from tools.local_server import serving

SCENARIO = Path(__file__).with_name("demo_data.yaml")
_out = Console(highlight=False, soft_wrap=True)


class Story:
    """Narrates what happens on a server."""

    def __init__(self, client: httpx.Client, tenant: str) -> None:
        self._client = client
        self._tenant = tenant

    def seed(self, memories: list[dict[str, Any]]) -> None:
        """Store the memories and print them."""
        _out.print(f"\n[bold]1. What {len(memories)} memories the agent refund_decision starts with[/]")
        body = {"tenant": self._tenant, "agent_type": "refund_decision", "memories": memories}
        ids = self._post("/admin/seed-memory", body)["ids"]
        for memory_id, memory in zip(ids, memories, strict=True):
            _out.print(f"   stored  {memory_id}  {memory['content']}")

    def mail(self, number: int, title: str, text: str, instance_id: str) -> dict[str, Any]:
        """Run order_triage on a mail and print the run."""
        _out.print(f"\n[bold]{number}. {title}[/]")
        for line in text.splitlines():
            _out.print(f"   [italic]{line}[/]")
        path = f"/v1/agents/{self._tenant}/order_triage/run"
        result = self._post(path, {"input": text, "instance_id": instance_id})
        self._tell(result["run_id"], "order_triage", indent=3)
        _out.print(f"   [bold green]decided[/]  {result['output']}")
        return result

    def context_of(self, run_id: str) -> None:
        """Print which earlier turns the run had in its context."""
        run = self._run(run_id)
        episodes = run["input"]["episodes"]
        _out.print(f"\n   In its context were {len(episodes)} episodes, the turns of the runs before it:")
        for episode in episodes:
            first = episode["content"].splitlines()[-1]
            _out.print(f"   episode  turn {episode['turn']}: {first[:150]}")

    def _tell(self, run_id: str, agent: str, indent: int) -> None:
        """Print a run's tool calls; a delegated run is shown inside the call that made it."""
        pad = " " * indent
        delegated = iter(self._run(run_id)["delegated"])
        for event in self._events(run_id):
            data = event["data"]
            if event["kind"] == "tool_called":
                _out.print(f"{pad}{agent} calls [cyan]{data['name']}[/] {json.dumps(data['arguments'])}")
                if data["name"] == "delegate":
                    child = next(delegated)
                    self._tell(child["run_id"], child["agent_type"], indent + 3)
            elif event["kind"] == "tool_answered" and data["name"] == "recall_memory":
                for memory in json.loads(data["content"])["memories"]:
                    _out.print(f"{pad}   recalled  score {memory['score']:.3f}  {memory['content']}")
            elif event["kind"] == "tool_answered" and data["name"] == "store_memory":
                _out.print(f"{pad}   stored  {json.loads(data['content'])['id']}")
            elif event["kind"] == "run_completed":
                _out.print(f"{pad}{agent} answers: {data['output']}")

    def _run(self, run_id: str) -> dict[str, Any]:
        """Return a run once D1 has its final state, which the instance writes after its answer."""
        for _ in range(100):
            response = self._client.get(f"/admin/agents/{self._tenant}/runs/{run_id}")
            if response.status_code == 200 and response.json()["status"] not in ("queued", "running"):
                found: dict[str, Any] = response.json()
                return found
            time.sleep(0.05)
        raise SystemExit(f"the run {run_id} did not arrive in D1: {response.text}")

    def _events(self, run_id: str) -> list[dict[str, Any]]:
        response = self._client.get(f"/admin/agents/{self._tenant}/runs/{run_id}/events")
        events: list[dict[str, Any]] = _checked(response)["events"]
        return events

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return _checked(self._client.post(path, json=body))


def _checked(response: httpx.Response) -> dict[str, Any]:
    if response.is_error:
        raise SystemExit(f"{response.request.method} {response.request.url.path}: {response.text}")
    answer: dict[str, Any] = response.json()
    return answer


def tell(base_url: str, tenant: str | None = None) -> None:
    """Run and narrate the whole scenario on a server that has not seen it yet. tenant: instead of the scenario's."""
    scenario = yaml.safe_load(SCENARIO.read_text())
    with httpx.Client(base_url=base_url, timeout=60, trust_env=False) as client:
        story = Story(client, tenant or scenario["tenant"])
        story.seed(scenario["memories"])
        for number, mail in enumerate(scenario["mails"], start=2):
            result = story.mail(number, mail["title"], mail["input"], "demo-conversation")
        story.context_of(result["run_id"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a server with a fresh state, narrate the scenario, and suggest what to try next; return the exit status."""
    parser = argparse.ArgumentParser(prog="retain demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--serve", action="store_true", help="keep serving what it did, for the console, until Ctrl-C")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the server ends with the demo
    with suppress(KeyboardInterrupt):
        _play(serve=options.serve)
        return 0
    return INTERRUPTED


def _play(*, serve: bool) -> None:
    """Tell the story on a fresh server. serve: serve it until Ctrl-C afterwards."""
    started = time.monotonic()
    _out.print(
        "Starting the real wrangler and workerd with a fresh state (D1, KV, R2, Durable Objects, Vectorize stand-in) …"
    )
    with tempfile.TemporaryDirectory(prefix="retain-demo-") as folder, serving(Path(folder)) as server:
        try:
            tell(server.base_url)
        except SystemExit:
            _out.print(server.log.read_text()[-3000:])
            raise
        if serve:
            _out.print(f"\nLook at it: {server.base_url}/console   (Ctrl-C stops it)")
            with suppress(KeyboardInterrupt):
                server.process.wait()
            return
    _out.print(f"\nDone in {time.monotonic() - started:.0f} s. Next:")
    _out.print("   make demo SERVE=1   the same, and then look at it in the console")
    _out.print("   make dev            serve it, then run an agent with curl as the README shows")
    _out.print("   agents/             the agents are YAML: copy one, change its instructions, run it")
    _out.print("   ARCHITECTURE.md     the way of a request")
