"""A bare workerd that runs the benchmark's Workers, without wrangler or Miniflare in between.

KV is the service built into workerd, with its read cache on: a key is in the process, as a hot key is in a location of
Cloudflare's. With `cached=False` each read goes to its SQLite.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.local_config import local_config
from tools.offline_runtime import prepare
from tools.paths import CACHE, PRODUCTION_CONFIG, ROOT
from tools.stage import mirror, read_config, wanted_files

HERE = Path(__file__).parent
FOLDER = CACHE / "bench-proxy"
PACKAGES = ROOT / "python_modules"
# Bound to a Worker that only raises.
_UNREACHABLE = ("DB", "COLD", "VECTORIZE", "AGENT_RUNTIME", "TENANT_WRITER")
_CALLED = ("upstream", "javascript", "retain", "thin", "writer")
_START_TIMEOUT_S = 60


@dataclass(frozen=True)
class Running:
    """A started workerd. ports: by the Worker's name."""

    ports: Mapping[str, int]
    pid: int

    def cpu_ms(self) -> float:
        """Return the processor time that workerd has used, in milliseconds. Linux only."""
        user, system = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) * 1000 / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(credentials_key: str, *, cached: bool) -> Iterator[Running]:
    """Run the Workers `upstream`, `javascript`, `retain`, `thin` and `writer` until the block ends."""
    config = local_config(read_config(PRODUCTION_CONFIG), {"EMBEDDING_PROVIDER": "openai"})
    mirror(_files(config, credentials_key, cached=cached), FOLDER)
    (FOLDER / "kv").mkdir(exist_ok=True)
    ports = {name: _free_port() for name in _CALLED}
    addresses = [f"--socket-addr={name}=127.0.0.1:{port}" for name, port in ports.items()]
    command = [str(prepare()), "serve", "--experimental", *addresses, "config.capnp"]
    workerd = subprocess.Popen(command, cwd=FOLDER)
    try:
        for port in ports.values():
            _wait_for(port, workerd)
        yield Running(ports, workerd.pid)
    finally:
        workerd.terminate()
        workerd.wait()


def _files(config: dict[str, Any], credentials_key: str, *, cached: bool) -> dict[str, bytes]:
    """Return the content of the folder: the Workers' modules and the configuration that embeds them."""
    staged = {f"retain/{name}": content for name, content in wanted_files(config).items()}
    library = {name: content for name, content in staged.items() if name.startswith("retain/retain/")}
    thin = {name.replace("retain/", "thin/", 1): content for name, content in library.items()}
    thin["thin/entry.py"] = (HERE / "thin_entry.py").read_bytes()
    packages = {
        f"python_modules/{path.relative_to(PACKAGES).as_posix()}": path.read_bytes()
        for path in sorted(PACKAGES.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    scripts = {path.name: path.read_bytes() for path in sorted(HERE.glob("*.mjs"))}
    kv = 'kvNamespace = (name = "kv", props = (json = "{\\"namespace\\": \\"bench\\"}"))'
    bindings = [f'(name = "KV", {kv})', _text("CREDENTIALS_KEY", credentials_key)]
    variables = [_text(name, value) for name, value in config["vars"].items()]
    unreachable = [f'(name = "{name}", service = "unreachable")' for name in _UNREACHABLE]
    date, flags = config["compatibility_date"], json.dumps(config["compatibility_flags"])
    python = f'compatibilityDate = "{date}", compatibilityFlags = {flags}'
    javascript = f'compatibilityDate = "{date}"'
    disk = '(name = "SHARD", durableObjectNamespace = "KVNamespace"), (name = "BLOBS", service = "disk")'
    clustered = ', (name = "CLUSTERED", json = "true")' if cached else ""
    sockets = ", ".join(f'(name = "{name}", http = (), service = "{name}")' for name in _CALLED)
    text = f"""using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "upstream", worker = (modules = [{_module("upstream.mjs")}], {javascript})),
    (name = "unreachable", worker = (modules = [{_module("unreachable.mjs")}], {javascript})),
    (name = "writer", worker = (modules = [{_module("kv_writer.mjs")}], {javascript}, bindings = [{bindings[0]}])),
    (name = "javascript", worker = (modules = [{_module("proxy_worker.mjs")}], {javascript},
      bindings = [{", ".join(bindings)}])),
    (name = "retain", worker = (modules = [{_modules("retain/", staged, packages)}], {python},
      bindings = [{", ".join(bindings + variables + unreachable)}])),
    (name = "thin", worker = (modules = [{_modules("thin/", thin, packages)}], {python},
      bindings = [{", ".join(bindings)}])),
    (name = "kv", worker = (modules = [(name = "kv.js", bundled = "/workerd/kv.js")], {javascript},
      durableObjectNamespaces = [(className = "KVNamespace", uniqueKey = "kv", enableSql = true)],
      durableObjectStorage = (localDisk = "disk"), bindings = [{disk}{clustered}])),
    (name = "disk", disk = (path = "kv", writable = true)),
    (name = "internet", network = (allow = ["public", "private"]))
  ],
  sockets = [{sockets}]
);
"""
    return {**staged, **thin, **packages, **scripts, "config.capnp": text.encode()}


def _modules(prefix: str, staged: Mapping[str, bytes], packages: Mapping[str, bytes]) -> str:
    """Return the module list of a Python Worker, entry first."""
    own = sorted(staged, key=lambda path: (path != f"{prefix}entry.py", path))
    listed = [_module(path, path.removeprefix(prefix)) for path in own] + [_module(path) for path in packages]
    return ",\n".join(listed)


def _module(path: str, name: str = "") -> str:
    if path.startswith("python_modules/"):
        kind = "esModule" if path.endswith((".js", ".mjs")) else "data"
    else:
        kind = {".py": "pythonModule", ".mjs": "esModule"}.get(Path(path).suffix, "data")
    return f"(name = {json.dumps(name or path)}, {kind} = embed {json.dumps(path)})"


def _text(name: str, value: str) -> str:
    return f"(name = {json.dumps(name)}, text = {json.dumps(value)})"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, workerd: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and workerd.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("workerd did not start")
