"""A browser for each module, and the console of the module's tenant in it: no page may write an error to its console."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.console.canned import Deployment
from tests.support.browser import Browsing, browsing
from tools.local_server import LocalServer


@pytest.fixture(scope="module")
def browser() -> Iterator[Browsing]:
    """A browser for all tests of a module."""
    with browsing() as opened:
        yield opened


@pytest.fixture
def page(browser: Browsing, server: LocalServer, tenant_id: str) -> Iterator[Page]:
    """A page at the runs of the tenant of the test's module."""
    browser.errors.clear()
    browser.do(f"open {server.base_url}/console#/{tenant_id}")
    yield browser.tab
    browser.tab.close()
    assert browser.errors == []


@pytest.fixture
def console(browser: Browsing) -> Iterator[Deployment]:
    """A deployment whose answers a test prepares, with a page at nothing. The page may throw nothing."""
    page, thrown = browser.context.new_page(), list[str]()
    page.on("pageerror", lambda error: thrown.append(str(error)))
    yield Deployment(page)
    page.close()
    assert thrown == []
