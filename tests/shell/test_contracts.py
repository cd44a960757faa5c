"""The Worker's adapters pass the ports' contracts on the stand-ins as they do on workerd: the stand-ins behave alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from tests.host.echo_server import echo_server
from tests.ports import Case, cases
from tests.shell.platform.objects import Storage
from tests.shell.worker import Worker, bindings

PORTS: dict[str, Callable[[Worker], Any]] = {
    "kv": lambda worker: bindings.WorkersKv(worker.env.KV),
    "sql": lambda worker: bindings.D1(worker.env.DB),
    "objects": lambda worker: bindings.R2(worker.env.COLD),
    "vector_index": lambda worker: bindings.Vectorize(worker.env.VECTORIZE),
    "object_sql": lambda _: bindings.DurableSql(Storage()),
    "crypto": lambda _: bindings.WebCrypto(),
    "time_zones": lambda _: bindings.time_zones,
    "hot_memory": lambda worker: KvHot(bindings.WorkersKv(worker.env.KV)),
    "warm_memory": lambda worker: SqlWarm(bindings.D1(worker.env.DB), "acme", bindings.now_ms),
    "catalogue": lambda worker: SqlWarm(bindings.D1(worker.env.DB), "acme", bindings.now_ms),
    "cold_memory": lambda worker: ObjectsCold(bindings.R2(worker.env.COLD)),
}
CASES = [(suite, case) for suite in PORTS for case in cases(import_module(f"tests.ports.{suite}"))]
OVER_HTTP = [
    (suite, case) for suite in ("fetch", "fetch_stream") for case in cases(import_module(f"tests.ports.{suite}"))
]


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with echo_server() as server:
        yield server.origin


def _case(suite: str, name: str) -> Case:
    return cases(import_module(f"tests.ports.{suite}"))[name]


@pytest.mark.parametrize(("suite", "name"), CASES, ids=[f"{suite}-{name}" for suite, name in CASES])
async def test_contract(worker: Worker, suite: str, name: str) -> None:
    await _case(suite, name)(PORTS[suite](worker))


@pytest.mark.parametrize(("suite", "name"), OVER_HTTP, ids=[f"{suite}-{name}" for suite, name in OVER_HTTP])
async def test_contract_over_http(worker: Worker, origin: str, suite: str, name: str) -> None:
    await _case(suite, name)(getattr(bindings, suite), origin)
