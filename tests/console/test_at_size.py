"""What `make console-at-size` does at its full size, with fewer memories and runs."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.console.at_size import drive
from tests.e2e.local_state import LocalState
from tests.support.browser import browsing
from tests.support.large_tenant import large_tenant
from tools.local_server import LocalServer

pytestmark = pytest.mark.workerd


def test_a_tenant_with_many_memories_and_runs_is_driven(
    server: LocalServer, api: httpx.Client, state: LocalState, tenant: Callable[[], str]
) -> None:
    large = large_tenant(api, state, tenant(), records=200, runs=120, events=1_200)
    with browsing() as browser:
        browser.do(f"open {server.base_url}/console#/{large.tenant_id}")
        drive(browser.tab, server.base_url, large)
        assert browser.errors == []
