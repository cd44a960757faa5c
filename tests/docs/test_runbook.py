"""Every command of the runbook works as written, one after another, against the running server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import httpx
import pytest

from retain.gateway.keys import KEY_PREFIX, STORED_PREFIX, stored_name
from tests.docs.markdown import page
from tests.e2e.local_state import LocalState
from tools.local_server import LocalServer
from tools.paths import PRODUCTION_CONFIG, ROOT

pytestmark = pytest.mark.workerd

_BLOCKS = page("docs/runbook.md").blocks("sh")
_SHELL = "set -euo pipefail\n"
_CREATE = ".venv/bin/retain gateway key create --tenant \"$TENANT\" --scope '*' $WHERE"
_SECTIONS = ("Is it well?", "Deploy", "Roll back", "Back up", "Restore", "Rotate keys", "Reindex", "Erase", "Incident")


def _ran(block: str, environment: dict[str, str]) -> str:
    script = f"{_SHELL}{_BLOCKS[0]}\n{block}"
    done = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _key_ids(environment: dict[str, str]) -> list[str]:
    listed = _ran('.venv/bin/retain gateway list --tenant "$TENANT" $WHERE', environment)
    return [line.split()[1] for line in listed.splitlines()]


@pytest.mark.timeout(900)
def test_the_commands_of_the_runbook_do_what_it_says(
    api: httpx.Client, server: LocalServer, state: LocalState, tmp_path: Path
) -> None:
    tenant = f"runbook-{os.getpid()}"
    assert api.put(f"/admin/tenants/{tenant}").status_code == 201
    for content in ("ann@shop.example likes tea.", "Bob likes cake."):
        assert api.post(f"/admin/tenants/{tenant}/memories", json={"content": content}).status_code == 201
    of_ann = {"content": "Drinks coffee.", "user_id": "ann"}
    assert api.post(f"/admin/tenants/{tenant}/memories", json=of_ann).status_code == 201
    environment = {
        **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        "RETAIN": server.base_url,
        "TENANT": tenant,
        "WHERE": f"--local-config {PRODUCTION_CONFIG}",
        "RETAIN_STATE": str(state.root),
        "HOME": str(tmp_path),
    }
    for _ in range(2):  # the one that is rotated, and one that stays
        _ran(_CREATE, environment)
    before = _key_ids(environment)
    printed = {block: _ran(block, environment) for block in _BLOCKS[1:]}
    every = "\n".join(printed.values())
    assert '"status": "ready"' in every or "ready" in every
    [rotated] = [text for block, text in printed.items() if "gateway key create" in block]
    [created] = [stored_name(line) for line in rotated.splitlines() if line.startswith(KEY_PREFIX)]
    after = _key_ids(environment)
    assert (after[:-1], created.startswith(STORED_PREFIX + after[-1])) == (before[1:], True)
    [restored] = [text for block, text in printed.items() if "-restored/restore" in block]
    assert "Bob likes cake." in restored
    assert json.loads(restored.splitlines()[1])["state"] == "completed"
    left = api.get(f"/admin/tenants/{tenant}/memories").text
    assert "Bob likes cake." in left
    assert "ann@shop.example" not in left
    assert api.get(f"/admin/tenants/{tenant}-restored/memories").status_code == 404


def test_the_runbook_has_a_section_for_each_job() -> None:
    text = page("docs/runbook.md").text
    assert [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")] == list(_SECTIONS)
