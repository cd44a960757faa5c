"""What a node of a cluster says is stored, compared with what was acknowledged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx

from tests.cluster.writers import Acknowledged
from tools.cluster.nodes import Node

_ATTEMPTS = 60
_ENDED = ("completed", "failed", "cancelled")


@dataclass(frozen=True)
class Comparison:
    """What one node has of one writer's. unfinished: runs that are acknowledged and have not ended."""

    lost: frozenset[str]
    doubled: frozenset[str]
    unfinished: frozenset[str]

    def __bool__(self) -> bool:
        """Return whether something is wrong."""
        return bool(self.lost or self.doubled or self.unfinished)


def compared(node: Node, note: Acknowledged) -> Comparison:
    """Read everything of a writer's tenant from a node, and compare it with what was acknowledged."""
    contents = [each["content"] for each in _listed(node, f"/admin/tenants/{note.tenant}/memories", "memories")]
    ours = [content for content in contents if content.startswith("Writer ")]
    runs = {each["run_id"]: each["status"] for each in _listed(node, f"/admin/agents/{note.tenant}/runs", "runs")}
    history = asked(node, "GET", f"/admin/tenants/{note.tenant}/history/verify")
    lost = {content for content in note.memories if content not in ours}
    lost |= {run_id for run_id in note.runs.values() if run_id not in runs}
    doubled = {content for content in ours if ours.count(content) > 1}
    unfinished = {run_id for run_id in note.runs.values() if runs.get(run_id) not in (*_ENDED, None)}
    assert history["problem"] is None, history
    return Comparison(frozenset(lost), frozenset(doubled), frozenset(unfinished))


def asked(node: Node, method: str, address: str, **options: Any) -> dict[str, Any]:
    """Return a node's answer; one that does not come, or says that a store is away, is asked for again for a minute."""
    for _ in range(_ATTEMPTS):
        with suppress(httpx.TransportError):
            answer = httpx.request(method, node.base_url + address, timeout=60, **options)
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                found: dict[str, Any] = answer.raise_for_status().json()
                return found
        time.sleep(1)
    raise TimeoutError(f"{node.name} does not answer {method} {address}")


def _listed(node: Node, address: str, name: str) -> Iterator[dict[str, str]]:
    cursor: str | None = None
    while True:
        page = asked(node, "GET", address, params={"limit": 100, **({"cursor": cursor} if cursor else {})})
        yield from page[name]
        if not (cursor := page.get("cursor")):
            return
