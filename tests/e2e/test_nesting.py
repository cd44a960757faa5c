"""Every way by which a text from outside is read as JSON: one nested 5,000 deep ends nothing, on the real workerd.

The decoder overflows WebAssembly's stack there, which ends the isolate; on the host it raises RecursionError instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import pytest

from tests.e2e.calls import run
from tests.e2e.conftest import Steered
from tests.e2e.puppet import as_it_is, order

pytestmark = pytest.mark.workerd

LEVELS = 5_000
LISTS = "[" * LEVELS + "]" * LEVELS
OBJECTS = '{"a":' * LEVELS + "1" + "}" * LEVELS
RECALLED = '{"memories":[' * (LEVELS // 2)
ADMIN = "/admin/tenants/{tenant}"


@dataclass(frozen=True)
class WayIn:
    """A request that carries a deep text, and how it is answered: a status, and the code of a problem."""

    method: str
    path: str
    status: int
    code: str = ""
    content: str = ""
    headers: dict[str, str] = field(default_factory=dict)


WAYS_IN = {
    "a run": WayIn("POST", "/v1/agents/{tenant}/order_triage/run", 400, "malformed_json", f'{{"input": {OBJECTS}}}'),
    "metadata": WayIn("POST", f"{ADMIN}/memories", 400, "malformed_json", f'{{"content": "x", "metadata": {OBJECTS}}}'),
    "a filter": WayIn("GET", f"{ADMIN}/memories?filter={OBJECTS[:6000]}", 400, "invalid_filter"),
    "a cursor": WayIn("GET", "/admin/errors?cursor=" + LISTS[:5000], 400, "invalid_cursor"),
    "an import": WayIn("POST", f"{ADMIN}/import", 400, "invalid_line", content=f"{LISTS}\n"),
    "a dataset": WayIn("PUT", f"{ADMIN}/evals/datasets/deep", 400, "malformed_json", OBJECTS),
    "a message of MCP": WayIn("POST", f"{ADMIN}/mcp", 400, "", OBJECTS),
    "an item": WayIn("PUT", f"{ADMIN}/items/svc/s1/cart/a", 400, "value_too_deep", json.dumps({"value": LISTS})),
    "an item of objects": WayIn(
        "PUT", f"{ADMIN}/items/svc/s1/cart/a", 400, "value_too_deep", json.dumps({"value": OBJECTS})
    ),
    "an ingest": WayIn("POST", f"{ADMIN}/memories/ingest", 400, "malformed_json", OBJECTS),
    "the words of an ingest": WayIn(
        "POST",
        f"{ADMIN}/memories/ingest",
        201,
        content=json.dumps(
            {"conversation": "c", "messages": [{"speaker": "Ann", "content": f"I like tea. {RECALLED}"}]}
        ),
    ),
    "what is stored": WayIn("POST", f"{ADMIN}/memories", 201, content=json.dumps({"content": f"tea {RECALLED}"})),
}


@pytest.mark.parametrize("way", WAYS_IN.values(), ids=list(WAYS_IN))
def test_a_deep_text_is_answered_and_ends_nothing(api: httpx.Client, tenant: Callable[[], str], way: WayIn) -> None:
    path = way.path.replace("{tenant}", tenant())
    answer = api.request(way.method, path, content=way.content, headers=way.headers)
    assert (answer.status_code, answer.json().get("code", "")) == (way.status, way.code), answer.text[:500]
    assert api.get("/healthz").status_code == 200


DEEP_ORDERS = {
    "arguments of a call": order(("set_working_memory", as_it_is(f'{{"key": "k", "value": {LISTS}}}'))),
    "a text among the arguments": order(("set_working_memory", {"key": "k", "value": LISTS}), say="kept"),
    "an answer": order(say=OBJECTS),
}


@pytest.mark.parametrize("text", DEEP_ORDERS.values(), ids=list(DEEP_ORDERS))
def test_what_a_model_answers_ends_nothing(steered: Steered, text: str) -> None:
    run(steered.api, steered.tenant(), "order_triage", text)
    assert steered.api.get("/healthz").status_code == 200
