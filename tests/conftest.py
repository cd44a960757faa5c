"""Retain on the real workerd for every test area: one server per session, and a tenant of its own for each test that asks.

A test that uses any of these fixtures is marked `workerd`. No test reaches a real model: the switch against it is on.
"""

from __future__ import annotations

import gc
import itertools
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest

from retain.models.requests import forbid_model_requests
from tests.e2e.local_state import LocalState
from tests.e2e.servers import client_of, serving, staged
from tests.long import long_tests
from tests.scheduling import ServersTogether
from tests.support.contract import hold_routers
from tests.support.machines import SUITE
from tests.support.plans import UnplannedRead, check_statements, hold_statements
from tools.local_config import shards_wanted
from tools.local_server import LocalServer, migrate
from tools.paths import PRODUCTION_CONFIG

forbid_model_requests()
hold_routers()
hold_statements()

hypothesis.settings.load_profile(SUITE)

_PLANTING = {"test_planted", "test_shown"}
"""The modules whose tests plant faults in the product, also in its statements."""


def pytest_collection() -> None:
    """Let the garbage collector rest: collecting tests makes millions of objects, which all live to the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let it work again, without looking at those objects each time."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that take long, before those without or with a mark are chosen."""
    listed = long_tests()
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that made the product run a statement with a plan that is not allowed, except where faults are planted."""
    returned = yield
    try:
        check_statements()
    except UnplannedRead:
        if item.path.stem not in _PLANTING:
            raise
    return returned


@pytest.fixture(scope="session")
def migrated_state(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Make fresh states with empty, migrated databases. Migrating takes seconds, copying does not.

    There is one database, or as many as $RETAIN_SHARDS says.
    """
    template = tmp_path_factory.mktemp("migrated")
    if shards_wanted() == 1:
        migrate(template, PRODUCTION_CONFIG)
    else:
        with staged("migrated") as config:
            migrate(template, config)

    def fresh() -> Path:
        state = tmp_path_factory.mktemp("state")
        shutil.copytree(template, state, dirs_exist_ok=True)
        return state

    return fresh


@pytest.fixture(scope="session")
def server(migrated_state: Callable[[], Path]) -> Iterator[LocalServer]:
    """The running server."""
    with staged("e2e") as config, serving(migrated_state(), config) as running:
        yield running


@pytest.fixture(scope="session")
def api(server: LocalServer) -> Iterator[httpx.Client]:
    """A client of the server."""
    with client_of(server) as client:
        yield client


@pytest.fixture(scope="session")
def state(server: LocalServer) -> LocalState:
    """What the server keeps on disk."""
    return LocalState(server.log.parent)


_numbers = itertools.count(1)


@pytest.fixture
def tenant(api: httpx.Client) -> Callable[[], str]:
    """Register a tenant that no other test knows, and return its id."""

    def register() -> str:
        tenant_id = f"tenant-{next(_numbers)}"
        assert api.put(f"/admin/tenants/{tenant_id}").status_code == 201
        return tenant_id

    return register


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ServersTogether:
    """Let each server be started by one process."""
    return ServersTogether(config, log)
