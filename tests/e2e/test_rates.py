"""The platform's rate limiting binding, as workerd has it: 429 with `retry-after`, for persons, keys and tenants."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from retain.cli.project import Project
from retain.cli.wrangler_kv import wrangler_of
from retain.gateway.provisioning import new_api_key
from tests.e2e.access_team import Deployment, deployment
from tests.e2e.local_state import LocalState
from tools.paths import PRODUCTION_CONFIG, ROOT

pytestmark = pytest.mark.workerd

CALLER, TENANT = 5, 8
PEOPLE = [f"p{number}@example.com" for number in range(4)]
TOOL = "/api/v1/tools/no_tool"


@pytest.fixture(scope="module")
def state(migrated_state: Callable[[], Path]) -> LocalState:
    return LocalState(migrated_state())


@pytest.fixture(scope="module")
def deployed(state: LocalState) -> Iterator[Deployment]:
    rates = {"CALLER_RATE": CALLER, "TENANT_RATE": TENANT}
    with deployment(state.root, rates, OWNERS="domain:example.com") as running:
        for number, tenant in enumerate(("acme", "shop", "kept")):
            assert running.ask("PUT", f"/admin/tenants/{tenant}", by=f"setup{number}@example.com").status_code == 201
        yield running


def in_one_minute() -> None:
    """Wait for the next minute if this one ends soon: the local binding counts in minutes of the clock."""
    left_s = 60 - time.time() % 60
    if left_s < 20:
        time.sleep(left_s + 0.2)


def test_a_person_and_a_tenant_are_limited_and_may_try_again_after_a_minute(deployed: Deployment) -> None:
    in_one_minute()
    memories = "/admin/tenants/acme/memories"
    answers = [deployed.ask("GET", memories, by=PEOPLE[0]) for _ in range(CALLER + 2)]
    assert [answer.status_code for answer in answers] == [200] * CALLER + [429] * 2
    refused = answers[-1]
    assert (refused.json()["code"], refused.headers["retry-after"]) == ("rate_limited", "60")
    others = [deployed.ask("GET", memories, by=PEOPLE[1]).status_code for _ in range(TENANT - CALLER + 1)]
    assert others == [200] * (TENANT - CALLER) + [429]
    assert deployed.ask("GET", "/admin/tenants/kept/memories", by=PEOPLE[2]).status_code == 200


def test_a_key_of_the_gateway_is_limited(deployed: Deployment, state: LocalState, tmp_path: Path) -> None:
    key = new_api_key("shop", ["*"], now_ms=0)
    file = tmp_path / "entries.json"
    file.write_text(json.dumps([{"key": key.entry.key, "value": key.entry.value}]))
    where = ["--binding", "KV", "--config", str(PRODUCTION_CONFIG), "--local", "--persist-to", str(state.root)]
    wrangler_of(Project(ROOT))(["kv", "bulk", "put", str(file), *where])
    in_one_minute()
    sent = {"authorization": f"Bearer {key.api_key}"}
    codes = [deployed.ask_without("POST", TOOL, {}, **sent).json()["code"] for _ in range(CALLER + 1)]
    assert codes == ["no_such_tool"] * CALLER + ["rate_limited"]
