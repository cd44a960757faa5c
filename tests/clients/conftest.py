"""The clients with their generated parts, and what an application has: a tenant, a key, and the server's address."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tools.clients import PYTHON, generate
from tools.local_server import LocalServer


@dataclass(frozen=True)
class Application:
    """What an application is given."""

    url: str
    key: str
    tenant: str


@pytest.fixture(scope="session")
def generated() -> None:
    """Make the generated parts of both clients, as a build does."""
    generate()


@pytest.fixture(scope="session")
def library(generated: None) -> Any:
    """The Python client as an application imports it."""
    sys.path.insert(0, str(PYTHON))
    return importlib.import_module("retain_client")


@pytest.fixture
def application(server: LocalServer, api: httpx.Client, tenant: Callable[[], str]) -> Application:
    """An application with a tenant of its own."""
    tenant_id = tenant()
    scopes = ["runs", "memory:read", "memory:write", "admin"]
    made = api.post(f"/admin/tenants/{tenant_id}/keys", json={"name": "shop", "scopes": scopes})
    return Application(server.base_url, made.json()["key"], tenant_id)
