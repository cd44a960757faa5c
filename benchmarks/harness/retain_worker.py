"""Retain on bare workerd: the Worker with its stores, and what fills them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.services import (
    Service,
    as_json,
    d1,
    d1_store,
    javascript,
    kv,
    kv_store,
    objects,
    service,
    text,
    worker,
)
from benchmarks.harness.workerd import Workerd
from retain.host.sql import split_statements
from retain.json_text import read_own_json
from tools.bytecode import MAIN
from tools.local_config import local_config
from tools.paths import PRODUCTION_CONFIG, ROOT, STAND_IN_CONFIG
from tools.stage import read_config, wanted_files, with_compiled
from tools.worker_modules import python_packages

HERE = Path(__file__).parent
OBJECTS = {"AGENT_RUNTIME": "AgentRuntime", "TENANT_WRITER": "TenantWriter"}
"""Bindings of Durable Objects, and their classes."""
_STATEMENTS = 50
"""Statements of a migration in one request."""


def configuration(overrides: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the local configuration. overrides: variables that replace its own."""
    return local_config(read_config(PRODUCTION_CONFIG), dict(overrides or {}))


def python_worker(
    name: str,
    modules: Mapping[str, bytes],
    bindings: Sequence[str],
    *,
    packages: bool = True,
    stored: Sequence[str] = (),
) -> Service:
    """Return a Worker in Python. modules: with `entry.py`. packages: whether the vendored ones are with it."""
    config = configuration()
    files = with_compiled(modules, compiled=True)
    ordered = {path: files[path] for path in sorted(files, key=lambda path: (path != MAIN, path))}
    return worker(
        name,
        ordered,
        shared=python_packages() if packages else None,
        bindings=bindings,
        date=config["compatibility_date"],
        flags=config["compatibility_flags"],
        stored=stored,
    )


def proxy_only(name: str, secrets: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> list[Service]:
    """Return Retain with KV alone: its other bindings lead to a Worker that only raises. Needs `kv_store`."""
    config = configuration({"EMBEDDING_PROVIDER": "openai", **(overrides or {})})
    unreachable = [service(one, "unreachable") for one in ("DB", "COLD", "VECTORIZE", *OBJECTS)]
    return [
        python_worker(name, wanted_files(config), [kv("KV"), *_texts(config, secrets), *unreachable]),
        javascript("unreachable", HERE / "unreachable.mjs", called=False),
    ]


def whole(
    name: str = "retain",
    *,
    secrets: Mapping[str, str],
    overrides: Mapping[str, str] | None = None,
    agents: Path = ROOT / "agents",
    metered: bool = False,
) -> list[Service]:
    """Return Retain with all its stores, except R2, and the Worker `stores` that fills them.

    agents: the folder of definitions. metered: count the calls of D1 and its rows, which `Meter` reads; it takes time.
    """
    meter = javascript("d1-meter", HERE / "d1_meter.mjs", bindings=[service("D1", "d1", {"database": "bench"})])
    return [
        with_stores(name, secrets, overrides, agents=agents, database="d1-meter" if metered else "d1"),
        kv_store(cached=True),
        d1_store(),
        stand_in(),
        javascript("unreachable", HERE / "unreachable.mjs", called=False),
        javascript("stores", HERE / "stores.mjs", bindings=[kv("KV"), d1("DB")]),
        *([meter] if metered else []),
    ]


def with_stores(
    name: str,
    secrets: Mapping[str, str],
    overrides: Mapping[str, str] | None = None,
    *,
    agents: Path = ROOT / "agents",
    sources: Path = ROOT,
    database: str = "d1",
) -> Service:
    """Return Retain alone, which needs the stores of `whole`. sources: its code, of another version than this one's."""
    config = configuration(overrides)
    bindings = [
        kv("KV"),
        d1("DB", database),
        service("VECTORIZE", "vectorize"),
        service("COLD", "unreachable"),
        *(objects(binding, class_name) for binding, class_name in OBJECTS.items()),
        *_texts(config, secrets),
    ]
    return python_worker(name, wanted_files(config, agents, sources), bindings, stored=tuple(OBJECTS.values()))


def stand_in() -> Service:
    """Return the stand-in of Vectorize, as the service `vectorize`."""
    config = read_config(STAND_IN_CONFIG)
    folder = STAND_IN_CONFIG.parent / "stand_in"
    scripts = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in (".js", ".wasm")}
    ordered = {name: scripts[name] for name in sorted(scripts, key=lambda name: (name != "worker.js", name))}
    values = [text(k, v) if isinstance(v, str) else as_json(k, v) for k, v in config["vars"].items()]
    stored = "StandInIndex"
    bindings = [objects("INDEX", stored), *values]
    return worker("vectorize", ordered, bindings=bindings, stored=(stored,), called=False)


def _texts(config: Mapping[str, Any], secrets: Mapping[str, str]) -> list[str]:
    return [text(name, value) for name, value in {**config["vars"], **secrets}.items()]


class Stores:
    """Fills the stores of a running workerd through its service `stores`."""

    def __init__(self, workerd: Workerd, name: str = "stores") -> None:
        self._port = workerd.ports[name]

    def put(self, key: str, value: str) -> None:
        """Write a key to KV."""
        self._ask("PUT", "/kv", [key, value])

    def run(self, statements: Sequence[tuple[str, Sequence[object]]]) -> object:
        """Run statements in D1, in one transaction; return their rows."""
        return self._ask("POST", "/sql", [[sql, list(values)] for sql, values in statements])

    def migrate(self, folder: Path = ROOT / "migrations") -> None:
        """Apply the migrations of D1 that are in a folder."""
        for path in sorted(folder.glob("*.sql")):
            statements = [(sql, ()) for sql in split_statements(path.read_text("utf-8"))]
            for first in range(0, len(statements), _STATEMENTS):
                self.run(statements[first : first + _STATEMENTS])

    def _ask(self, method: str, path: str, value: object) -> object:
        return _asked(self._port, method, path, value)


class Meter:
    """Reads what the meter in front of D1 has counted."""

    def __init__(self, workerd: Workerd) -> None:
        self._port = workerd.ports["d1-meter"]

    def counts(self) -> dict[str, float]:
        """Return the trips to D1 since the start, and the rows that its statements read and wrote."""
        counted = _asked(self._port, "GET", "/counts", None)
        assert isinstance(counted, dict)
        return {str(name): float(value) for name, value in counted.items()}


def _asked(port: int, method: str, path: str, value: object) -> object:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(method, path, None if value is None else json.dumps(value))
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status}: {content[:1000].decode(errors='replace')}")
        return read_own_json(content.decode())
    finally:
        connection.close()
