"""Stand-ins on the real workerd, called over HTTP through a test Worker."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "vectorize" / "wrangler.toml"
Variables = Mapping[str, object]

_SERVER = """\
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [{services}],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "gateway")]
);
"""
_GATEWAY = """
    (name = "gateway", worker = (
      modules = [(name = "gateway.js", esModule = embed "/tests/vectorize/gateway.js")],
      compatibilityDate = "{date}", bindings = [{bindings}]))"""
_STAND_IN = """
    (name = "state-{name}", disk = (path = {folder}, writable = true)),
    (name = "{name}", worker = (
      modules = [{modules}], compatibilityDate = "{date}", bindings = [{bindings},
        (name = "INDEX", durableObjectNamespace = "StandInIndex")],
      durableObjectNamespaces = [(className = "StandInIndex", uniqueKey = "{name}", enableSql = true)],
      durableObjectStorage = (localDisk = "state-{name}")))"""


def variables(**changes: object) -> dict[str, object]:
    """Return the variables of vectorize/wrangler.toml with these changes."""
    return {**tomllib.loads(CONFIG.read_text())["vars"], **changes}


@contextmanager
def running(state: Path, indexes: Mapping[str, Variables]) -> Iterator[str]:
    """Run one stand-in for each binding, with its variables; yield the address of the gateway, ending in a slash.

    state: an existing folder, in which the indexes are stored. At the end the process is killed, as in a crash.
    """
    (state / "config.capnp").write_text(_config(state, indexes))
    programs = sorted((ROOT / "node_modules" / "@cloudflare").glob("workerd-*/bin/workerd"))
    if not programs:
        raise RuntimeError("workerd is not installed: run `npm ci` first")
    command = [str(programs[0]), "serve", "--experimental", "--control-fd=1", f"--import-path={ROOT}"]
    command += [f"--import-path={ROOT / 'node_modules'}", str(state / "config.capnp")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}/"
        finally:
            process.kill()


def _config(state: Path, indexes: Mapping[str, Variables]) -> str:
    date = tomllib.loads(CONFIG.read_text())["compatibility_date"]
    main = ROOT / "vectorize" / "stand_in" / "worker.js"
    # The first module is the main one.
    scripts = [main, *sorted(path for path in main.parent.glob("*.js") if path != main)]
    compiled = sorted(main.parent.glob("*.wasm"))
    kinds = [*((path, "esModule") for path in scripts), *((path, "wasm") for path in compiled)]
    modules = ", ".join(
        f'(name = "{path.name}", {kind} = embed "/{path.relative_to(ROOT).as_posix()}")' for path, kind in kinds
    )
    bindings = ", ".join(f'(name = "{name}", service = "{name}")' for name in indexes)
    services = [_GATEWAY.format(date=date, bindings=bindings)]
    for name, values in indexes.items():
        (state / name).mkdir(exist_ok=True)
        services.append(
            _STAND_IN.format(
                name=name,
                folder=json.dumps(str(state / name)),
                modules=modules,
                date=date,
                bindings=", ".join(_binding(key, value) for key, value in values.items()),
            )
        )
    return _SERVER.replace("{services}", ",".join(services))


def _binding(name: str, value: object) -> str:
    """Return a variable as Wrangler binds it: a string as text, a table as JSON."""
    kind, text = ("text", value) if isinstance(value, str) else ("json", json.dumps(value))
    return f'(name = "{name}", {kind} = {json.dumps(text)})'
