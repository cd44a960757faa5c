"""The clients with their generated parts, and what an application has: a tenant, a key, and the server's address."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tools.clients import PYTHON, TYPESCRIPT, generate
from tools.clients.build import compile_typescript
from tools.local_server import LocalServer
from tools.paths import ROOT

SCOPES = ["runs", "memory:read", "memory:write", "admin"]
"""What the examples of the clients need."""


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


@pytest.fixture(scope="session")
def package(generated: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which Node finds the TypeScript client as an application installs it."""
    folder = tmp_path_factory.mktemp("typescript")
    installed = folder / "node_modules" / "retain-client"
    compile_typescript(installed / "dist")
    shutil.copy(TYPESCRIPT / "package.json", installed)
    for name in ("openapi-fetch", "openapi-typescript-helpers", "@types"):
        (folder / "node_modules" / name).symlink_to(ROOT / "node_modules" / name)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


@pytest.fixture(params=["Retain", "AsyncRetain"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which of the two Python clients."""
    return str(request.param)


@pytest.fixture
def application(server: LocalServer, api: httpx.Client, tenant: Callable[[], str]) -> Application:
    """An application with a tenant of its own."""
    tenant_id = tenant()
    made = api.post(f"/admin/tenants/{tenant_id}/keys", json={"name": "shop", "scopes": SCOPES})
    return Application(server.base_url, made.json()["key"], tenant_id)
