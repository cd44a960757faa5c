"""Function tools that use synchronous HTTP libraries, on the real workerd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.calls import timeline
from tests.e2e.conftest import Steered
from tests.e2e.puppet import order
from tests.e2e.waiting import eventually
from tests.host.echo_server import EchoServer, echo_server

pytestmark = pytest.mark.workerd

LIBRARIES = ("requests", "urllib", "http.client")


@pytest.fixture(scope="module")
def echo() -> Iterator[EchoServer]:
    with echo_server() as server:
        yield server


@pytest.fixture(scope="module")
def tenant_id(steered: Steered) -> str:
    return steered.tenant()


def _asked(steered: Steered, tenant_id: str, instance_id: str, **arguments: object) -> tuple[dict[str, Any], str]:
    """Return what the tool answered, and its run's id."""
    body = {"input": order(("ask_a_server", arguments)), "instance_id": instance_id}
    run = steered.api.post(f"/v1/agents/{tenant_id}/clerk/run", json=body).json()
    assert run["status"] == "completed", run
    [answer] = json.loads(run["output"])
    return answer, run["run_id"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_sends_what_it_was_given_and_reads_the_answer(
    steered: Steered, tenant_id: str, echo: EchoServer, library: str
) -> None:
    url = f"{echo.origin}/orders"
    answer, run_id = _asked(steered, tenant_id, library, library=library, url=url, body="a=1")
    seen = json.loads(answer["text"])
    assert (answer["status"], seen["method"], seen["target"], seen["body"]) == (200, "POST", "/orders", "a=1")
    assert seen["headers"]["idempotency-key"] == f"{run_id}.1.0"
    assert ("authorization" in seen["headers"]) == (library == "requests")
    squeezed, _ = _asked(steered, tenant_id, library, library=library, url=f"{echo.origin}/gzip")
    assert squeezed["text"] == "squeezed " * 100
    missing, _ = _asked(steered, tenant_id, library, library=library, url=f"{echo.origin}/status/404")
    assert (missing["status"], missing["text"]) == (404, "")


@pytest.mark.parametrize("library", ["requests", "urllib"])
def test_a_library_follows_redirects_itself(steered: Steered, tenant_id: str, echo: EchoServer, library: str) -> None:
    answer, _ = _asked(steered, tenant_id, "redirected", library=library, url=f"{echo.origin}/redirect")
    assert json.loads(answer["text"])["target"] == "/echo"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://10.0.0.1/latest", "forbidden_upstream"),
        ("http://169.254.169.254/latest/meta-data", "forbidden_upstream"),
        ("http://shop.internal/", "forbidden_upstream"),
        ("http://shop.example/", "forbidden_upstream"),
        ("{origin}/bomb", "response_too_large"),
    ],
)
def test_what_the_guard_refuses_reaches_the_model_with_its_code(
    steered: Steered, tenant_id: str, echo: EchoServer, library: str, url: str, code: str
) -> None:
    answer, _ = _asked(steered, tenant_id, "refused", library=library, url=url.format(origin=echo.origin))
    assert answer["error"]["code"] == code


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_failure_is_the_library_s_own_and_shows_no_credential(
    steered: Steered, tenant_id: str, echo: EchoServer, library: str
) -> None:
    url = f"{echo.origin}/hangup?key=my-own-secret"
    answer, run_id = _asked(steered, tenant_id, "failed", library=library, url=url)
    assert answer["error"]["code"] == "internal"
    [answered] = [event for event in timeline(steered.api, tenant_id, run_id) if event["kind"] == "tool_answered"]
    shown = json.dumps(answered)
    assert "ConnectionError: " in shown
    assert "my-own-secret" not in shown
    assert "YWRhOnNlY3JldA" not in shown  # "ada:secret"


def test_tools_that_wait_block_nobody_and_are_given_up_at_the_deadline_of_their_runs(steered: Steered) -> None:
    tenant_id = steered.tenant()
    path = f"/v1/agents/{tenant_id}/hasty/run"
    with echo_server() as echo, ThreadPoolExecutor(len(LIBRARIES)) as pool:
        silent = [
            order(("ask_a_server", {"library": library, "url": f"{echo.origin}/silent"})) for library in LIBRARIES
        ]
        runs = [
            pool.submit(steered.api.post, path, json={"input": asked, "instance_id": f"instance-{place}"})
            for place, asked in enumerate(silent)
        ]
        eventually(lambda: echo.silent, lambda waiting: waiting == len(LIBRARIES))
        answer, _ = _asked(steered, tenant_id, "other", library="urllib", url=f"{echo.origin}/status/200")
        assert answer["status"] == 200
        assert not any(run.done() for run in runs)
        for place, run in enumerate(runs):
            ended = run.result().json()
            assert (ended["status"], ended["error"]["code"]) == ("failed", "run_deadline")
            body = {"input": order(say="Still here."), "instance_id": f"instance-{place}"}
            assert steered.api.post(path, json=body).json()["output"] == "Still here."
