"""What the Worker logs: every line that a request causes names the request, in the instance and in the background too."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Steered
from tests.e2e.local_state import LocalState
from tests.e2e.puppet import Puppet
from tests.e2e.waiting import eventually
from tests.support.model_server import Failure
from tools.local_server import LocalServer

pytestmark = pytest.mark.workerd


def logged(server: LocalServer, message: str) -> list[dict[str, Any]]:
    """Return the lines with this message."""
    lines = server.log.read_text(errors="replace").splitlines()
    parsed = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    return [line for line in parsed if line.get("message") == message]


def test_a_line_of_an_instance_names_request_tenant_instance_and_run(steered: Steered, puppet: Puppet) -> None:
    tenant_id = steered.tenant()
    puppet.fail(Failure(status=400))
    response = steered.api.post(
        f"/v1/agents/{tenant_id}/order_triage/run", json={"input": "hello", "instance_id": "logs"}
    )
    [line] = eventually(
        lambda: [line for line in logged(steered.server, "the model failed") if line.get("tenant_id") == tenant_id],
        lambda lines: len(lines) > 0,
    )
    assert {name: line[name] for name in ("request_id", "tenant_id", "agent_type", "instance_id", "run_id")} == {
        "request_id": response.headers["x-request-id"],
        "tenant_id": tenant_id,
        "agent_type": "order_triage",
        "instance_id": "logs",
        "run_id": response.json()["run_id"],
    }


def test_a_line_of_background_work_names_the_request_that_began_it(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState, server: LocalServer
) -> None:
    tenant_id = tenant()
    path = f"/admin/tenants/{tenant_id}/memories/ingest"
    body = {"conversation": "c", "messages": [{"speaker": "Bea", "content": "Hello"}]}
    job_id = api.post(path, json=body).json()["job_id"]
    with state.d1_transaction() as database:  # no Worker leaves it so: the job cannot continue
        database.execute(
            "UPDATE ingest_jobs SET state = 'running', lease_until_ms = 1, completed_at_ms = NULL WHERE job_id = ?",
            (job_id,),
        )
        database.execute(
            "UPDATE ingest_messages SET state = 'received', speaker = 'Bea', content = ' ' WHERE job_id = ?", (job_id,)
        )
    response = api.get(f"{path}/{job_id}")
    [line] = eventually(
        lambda: [line for line in logged(server, "ingest failed") if line.get("job_id") == job_id],
        lambda lines: len(lines) > 0,
    )
    assert line["request_id"] == response.headers["x-request-id"]
