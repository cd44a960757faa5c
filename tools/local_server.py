"""The local server: the real wrangler and workerd, with D1, KV, R2, Durable Objects and the Vectorize stand-in on disk."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from tools.local_config import write_local_config
from tools.offline_runtime import environment
from tools.paths import AGENT_MEMORY_CONFIG, LOCAL_CONFIG, NODE_BIN, ROOT, STAND_IN_CONFIG
from tools.stage import read_config

START_TIMEOUT_S = 120
START_ATTEMPTS = 3
MAX_PORT = 65_535
_APPLIED = """
CREATE TABLE IF NOT EXISTS d1_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
);
"""
"""The table of `wrangler d1 migrations`."""
_NOTED = "INSERT INTO d1_migrations (name) VALUES ('?');"


class PortTaken(SystemExit):
    """Another process listens on the server's port, or on that of its inspector."""


@dataclass(frozen=True)
class LocalServer:
    """A running local server. base_url: without a trailing slash. log: where wrangler writes. heir: see `heir_of`."""

    base_url: str
    log: Path
    process: subprocess.Popen[bytes]
    heir: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        """Kill the whole process group at once, as a crash would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.heir is not None:
            dismiss(self.heir)
        self.process.wait()


def migrate(state: Path, config: Path = LOCAL_CONFIG) -> None:
    """Apply the D1 migrations that the local databases lack. Raises: SystemExit with wrangler's output.

    A new database gets all of them in one command: `wrangler d1 migrations apply` starts workerd again for each.
    """
    known = len([path for path in (state / "v3" / "d1").rglob("*.sqlite") if path.stem != "metadata"])
    with tempfile.TemporaryDirectory(prefix="retain-migrations-") as folder:
        every = Path(folder) / "every.sql"
        every.write_text(_every_migration(ROOT / "migrations"))
        for number, name in enumerate(databases(config)):
            if number < known:
                _wrangler_d1("migrations", "apply", name, state=state, config=config)
            else:
                _wrangler_d1("execute", name, "--yes", "--file", str(every), state=state, config=config)


def databases(config: Path) -> list[str]:
    """Return the names of the bindings of the databases in a configuration, in order."""
    return [database["binding"] for database in read_config(config)["d1_databases"]]


def _every_migration(folder: Path) -> str:
    """Return all migrations as one script, which notes each one as `wrangler d1 migrations apply` does."""
    parts = [_APPLIED]
    for migration in sorted(folder.glob("*.sql")):
        parts += [migration.read_text(), _NOTED.replace("?", migration.name)]
    return "\n".join(parts)


def _wrangler_d1(*words: str, state: Path, config: Path) -> None:
    where = ["--local", "--config", str(config), "--persist-to", str(state)]
    done = subprocess.run(
        [str(NODE_BIN / "wrangler"), "d1", *words, *where],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"the migrations could not be applied:\n{done.stdout}\n{done.stderr}")


def command(port: int, state: Path, config: Path = LOCAL_CONFIG) -> list[str]:
    """Return the command that serves on this port with this state."""
    configs = [part for each in (config, STAND_IN_CONFIG, AGENT_MEMORY_CONFIG) for part in ("--config", each)]
    parts = [NODE_BIN / "wrangler", "dev", *configs]
    options = ["--port", port, "--ip", "127.0.0.1", "--inspector-port", free_port(), "--persist-to", state]
    return [str(part) for part in [*parts, *options, "--show-interactive-dev-session=false"]]


def registry_of(state: Path) -> Path:
    """Return where Workers that are served with a state in the background are found by other ones of this machine.

    Each state has its own: several servers have Workers of the same names. `tools.dev` uses wrangler's usual one.
    """
    return state / "registry"


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(
    state: Path,
    *,
    overrides: dict[str, str] | None = None,
    config: Path = LOCAL_CONFIG,
    port: int | None = None,
    shards: int | None = None,
) -> Iterator[LocalServer]:
    """Serve in the background until the block ends. overrides: variables that replace the local configuration's.

    Raises: SystemExit with the end of the log when the server does not become ready.
    """
    write_local_config(config, overrides=overrides, shards=shards)
    state.mkdir(parents=True, exist_ok=True)
    migrate(state, config)
    server = start(state, config=config, port=port)
    try:
        yield server
    finally:
        stop(server)


def start(state: Path, *, config: Path = LOCAL_CONFIG, port: int | None = None) -> LocalServer:
    """Start the server on a migrated state and wait until it answers.

    Another process may take a port that this function chose before the server binds it: then it chooses again.

    Raises: SystemExit with the end of the log when the server does not become ready.
    """
    for _ in range(START_ATTEMPTS - 1 if port is None else 0):
        with contextlib.suppress(PortTaken):
            return _start_on(free_port(), state, config)
    return _start_on(port or free_port(), state, config)


def check_port(port: int) -> None:
    """Check that nothing listens on the port: wrangler itself needs ten seconds to notice.

    Raises: PortTaken; SystemExit for what is not a port, or one that this user may not open.
    """
    if not 0 < port <= MAX_PORT:
        raise SystemExit(f"{port} is not a port: choose one from 1024 to {MAX_PORT} with --port or PORT")
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except PermissionError as error:
            raise SystemExit(
                f"this user may not open port {port}: choose one from 1024 to {MAX_PORT} with --port or PORT"
            ) from error
        except OSError as error:
            raise PortTaken(f"port {port} is in use: choose another one with --port or PORT") from error


def _start_on(port: int, state: Path, config: Path) -> LocalServer:
    check_port(port)
    log = state / f"wrangler-{port}.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command(port, state, config),
            cwd=ROOT,
            env={**environment(), "WRANGLER_REGISTRY_PATH": str(registry_of(state))},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = LocalServer(f"http://127.0.0.1:{port}", log, process, heir_of(process))
    try:
        wait_until_ready(server)
    except KeyboardInterrupt:  # nobody else knows the process yet
        server.kill()
        raise
    return server


def heir_of(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """Return a process that kills another one with its group when this process ends, however that is.

    process: in a session of its own. The heir waits for the end of its input, which the system closes with this process.
    """
    waiting = ["sh", "-c", 'read -r _; kill -KILL "-$0"', str(process.pid)]
    return subprocess.Popen(waiting, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)


def dismiss(heir: subprocess.Popen[bytes]) -> None:
    """End the heir of a process that has ended, before another one can have its number."""
    heir.kill()
    heir.communicate()


def wait_until_ready(server: LocalServer) -> None:
    """Return when `GET /healthz` answers. Raises: PortTaken, SystemExit with the end of the log."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and server.process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{server.base_url}/healthz", timeout=10, trust_env=False).status_code == 200:
                return
        time.sleep(0.2)
    server.kill()
    printed = server.log.read_text()[-4000:]
    failure = PortTaken if "Address already in use" in printed else SystemExit
    raise failure(f"the local server did not become ready:\n{printed}")


def stop(server: LocalServer) -> None:
    """Stop the server and everything it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.process.wait(timeout=10)
    server.kill()
