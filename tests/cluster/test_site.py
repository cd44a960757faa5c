"""The static files of a node: as at Cloudflare, with their headers."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tools.cluster.local import local_cluster

pytestmark = [pytest.mark.workerd, pytest.mark.timeout(420)]


def test_the_console_of_a_node_is_in_no_frame_and_its_address_leads_to_it(tmp_path: Path) -> None:
    with local_cluster(tmp_path, 1) as [node]:
        console = httpx.get(f"{node.base_url}/console", timeout=60, trust_env=False)
        first = httpx.get(node.base_url, timeout=60, trust_env=False)
        health = httpx.get(f"{node.base_url}/healthz", timeout=60, trust_env=False)
    assert (console.status_code, console.headers["x-frame-options"]) == (200, "DENY")
    assert "frame-ancestors 'none'" in console.headers["content-security-policy"]
    assert (first.status_code, first.headers["location"]) == (302, "/console")
    assert health.json()["status"] == "ok"
