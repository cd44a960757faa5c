"""The test Worker on the real workerd: staged, configured and served as `tools/local_server.py` serves Retain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tools.local_config import local_config
from tools.local_server import start, stop
from tools.paths import PRODUCTION_CONFIG, ROOT
from tools.stage import mirror, read_config, wanted_files, with_compiled

CONFIG = ROOT / "wrangler.ports.local.json"
BUILD = ROOT / ".build-ports"
MAIN = "test_worker.py"
_OBJECTS = {
    "AGENT_RUNTIME": "AgentRuntime",
    "TENANT_WRITER": "TenantWriter",
    "PROBE": "Probe",
    "REFUSING": "RefusingRuntime",
}


@dataclass(frozen=True)
class TestWorker:
    """A client of the running test Worker. log: the file that holds what it prints."""

    __test__ = False

    client: httpx.Client
    log: Path

    def get(self, path: str) -> Any:
        """Return what the path answers. Raises: AssertionError with the Worker's traceback."""
        return _content(self.client.get(path))

    def post(self, path: str, asked: Mapping[str, object]) -> Any:
        """Send JSON; return what the path answers. Raises: AssertionError with the Worker's traceback."""
        return _content(self.client.post(path, json=asked))

    def probe(self, name: str, /, **asked: object) -> Any:
        """Run a probe in the Worker."""
        return self.post(f"/probes/{name}", asked)

    def object_probe(self, name: str, probe: str, /, **asked: object) -> Any:
        """Run a probe in the Durable Object of this name."""
        return self.post(f"/objects/{name}/probe", {"probe": probe, **asked})


@contextmanager
def serving(state: Path) -> Iterator[TestWorker]:
    """Serve the test Worker until the block ends. state: a folder with a migrated database.

    Raises: SystemExit with the end of the log when the server does not get ready.
    """
    config = _config()
    mirror(with_compiled(_files(config), compiled=False), BUILD)
    CONFIG.write_text(json.dumps(config, indent=2) + "\n")
    server = start(state, config=CONFIG)
    try:
        with httpx.Client(base_url=server.base_url, timeout=60, trust_env=False) as client:
            yield TestWorker(client, server.log)
    finally:
        stop(server)


def _config() -> dict[str, Any]:
    # The local embedder's table is staged as well: it has a suite to pass.
    config = local_config(read_config(PRODUCTION_CONFIG), {"EMBEDDING_PROVIDER": "static"})
    config.update(
        name="retain-ports",
        main=f"{BUILD.name}/{MAIN}",
        durable_objects={"bindings": [{"name": name, "class_name": kind} for name, kind in _OBJECTS.items()]},
        migrations=[{"tag": "v1", "new_sqlite_classes": list(_OBJECTS.values())}],
    )
    del config["build"]  # staged once, before the start
    del config["assets"]
    return config


def _files(config: dict[str, Any]) -> dict[str, bytes]:
    """Return production's own files with the rest of the library, the suites, published and not, and what runs them."""
    tests = ROOT / "tests"
    staged = [tests / "__init__.py", tests / "workerd" / "__init__.py"]
    staged += [*sorted((tests / "ports").glob("*.py")), *sorted((tests / "workerd" / "inside").glob("*.py"))]
    published = ROOT / "workers"
    library = [path for path in sorted((published / "retain").rglob("*.py")) if not {"cli", "host"} & set(path.parts)]
    files = wanted_files(config) | {path.relative_to(published).as_posix(): path.read_bytes() for path in library}
    files |= {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in staged}
    return files | {MAIN: (tests / "workerd" / "entry.py").read_bytes()}


def _content(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()
