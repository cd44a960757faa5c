"""A tenant of the deployment that is killed, as a scenario sees it, and what is found there in the end."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from tests.attack.known import ULID
from tests.e2e.local_state import LocalState
from tests.kills.shipping import Shipping

Things = Mapping[str, Counter[str]]
"""What is found, by its kind. What is missing was lost, and what there is in addition was doubled."""


@dataclass(frozen=True)
class Place:
    """A tenant. shipping: the upstream of its tool, outside the deployment."""

    api: httpx.Client
    state: LocalState
    tenant: str
    shipping: Shipping

    def request(self, method: str, path: str, content: object = None, *, key: str | None = None) -> httpx.Response:
        """Send a request. `{tenant}` in the path is the tenant. key: part of an idempotency key."""
        headers = {"x-work": self.tenant} | ({} if key is None else {"idempotency-key": f"{self.tenant}-{key}"})
        text = content if isinstance(content, str) else None
        return self.api.request(
            method,
            path.replace("{tenant}", self.tenant),
            json=None if text is not None else content,
            content=text,
            headers=headers,
        )

    def ask(self, method: str, path: str, content: object = None, *, key: str | None = None) -> Any:
        """Send a request; return the answer's JSON. Raises: AssertionError unless it is a success."""
        answer = self.request(method, path, content, key=key)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        return answer.json() if answer.content and "json" in answer.headers.get("content-type", "") else None

    def finish(self, method: str, path: str, content: object = None) -> Any:
        """Ask until the answer is not 202, which says that there is more to do; return its JSON. Raises: AssertionError."""
        for _ in range(30):
            answer = self.request(method, path, content)
            assert answer.is_success, f"{path}: {answer.status_code} {answer.text[:300]}"
            if answer.status_code != 202:
                return answer.json()
            time.sleep(min(answer.json().get("retry_after_ms") or 0, 500) / 1000)
        raise AssertionError(f"{path} is never complete")

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return rows of D1. sql: `?` is the tenant."""
        return self.state.d1(sql, self.tenant)

    def counted(self, sql: str) -> Counter[str]:
        """Count equal rows of D1, without the tenant's name and ids. sql: `?` is the tenant."""
        texts = (" ".join(map(str, row.values())) for row in self.rows(sql))
        return Counter(ULID.sub("-", text.replace(self.tenant, "-")) for text in texts)

    def memories(self) -> Things:
        """Return the records, and that the history and the index are whole."""
        checked = self.ask("POST", "/admin/tenants/{tenant}/verify")
        verified = self.ask("GET", "/admin/tenants/{tenant}/history/verify")
        return {
            "records": self.counted("SELECT content FROM memory_records WHERE tenant_id = ?"),
            "spent": self.counted("SELECT agent_type, runs FROM model_use WHERE tenant_id = ?"),
            "use": self.counted("SELECT memories, runs FROM tenant_use WHERE tenant_id = ?"),
            "history": Counter([f"problem: {verified['problem']}"]),
            "index": Counter(
                [f"checked {checked['checked']}", f"drift {json.dumps(checked['drift'], sort_keys=True)}"]
            ),
        }

    def runs(self) -> Things:
        """Return the runs with their status, the side effects in their logs, and the turns in their episodes.

        Raises: AssertionError when a log has a gap.
        """
        found = self.rows("SELECT run_id, agent_type, status FROM agent_runs WHERE tenant_id = ?")
        effects: list[str] = []
        turns: list[str] = []
        for run in found:
            events = self.state.d1(
                "SELECT seq, kind, data FROM run_events WHERE run_id = ? ORDER BY seq", run["run_id"]
            )
            assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), "the log has a gap"
            effects += [f"{run['agent_type']} {effect}" for effect in _effects(events)]
            kept = self.state.d1("SELECT turn FROM memory_episodes WHERE run_id = ?", run["run_id"])
            turns += [f"{run['agent_type']} {turn['turn']}" for turn in kept]
        ends = Counter(f"{run['agent_type']} {run['status']}" for run in found)
        return {"runs": ends, "effects": Counter(effects), "episodes": Counter(turns)}

    def traces(self, word: str) -> Counter[str]:
        """Return where a word is stored, in any store."""
        places = (*self.state.d1_tables(word), *self.state.instances(word), *self.state.blobs(word))
        return Counter(f"left in {place}" for place in places)


def _effects(events: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Yield the tool calls of a log, and how its run ended."""
    for event in events:
        if event["kind"] == "tool_called":
            yield f"calls {json.loads(event['data'])['name']}"
        elif event["kind"] in ("run_completed", "run_failed", "run_cancelled"):
            yield str(event["kind"])
