"""The local server starts although a port was taken in the meantime, and migrates a new database at once."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from retain.host.connection import open_database
from retain.host.sql import SqliteSql
from tests.e2e.servers import staged
from tools import local_server
from tools.local_server import PortTaken, start, stop
from tools.paths import PRODUCTION_CONFIG, ROOT

pytestmark = pytest.mark.workerd


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        yield port


def test_a_chosen_port_that_was_taken_is_chosen_again_and_a_given_one_is_refused(
    taken: int, migrated_state: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    free_port, offered = local_server.free_port, [taken]
    monkeypatch.setattr(local_server, "free_port", lambda: offered.pop() if offered else free_port())
    with staged("taken-port") as config:
        server = start(migrated_state(), config=config)
        try:
            assert not server.base_url.endswith(f":{taken}")
            assert httpx.get(f"{server.base_url}/healthz", trust_env=False).status_code == 200
        finally:
            stop(server)
        with pytest.raises(PortTaken, match="is in use"):
            start(migrated_state(), config=config, port=taken)


_KILLED = """
import os, signal, sys
from pathlib import Path
from tools import local_server
local_server.command = lambda *_: ["sh", "-c", f"exec 3>{sys.argv[1]}; sleep 30; echo still there >&3"]
local_server.wait_until_ready = lambda _: None
local_server.start(Path(sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_server_ends_with_the_process_that_started_it_even_if_that_is_killed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen([sys.executable, "-c", _KILLED, pipe, tmp_path], cwd=ROOT) as killed:
        assert pipe.read_bytes() == b""  # what it wrote until all processes of the server had ended
    assert killed.returncode == -signal.SIGKILL


def test_a_new_database_gets_every_migration_and_wrangler_knows_it(tmp_path: Path) -> None:
    local_server.migrate(tmp_path, PRODUCTION_CONFIG)
    [path] = [path for path in tmp_path.glob("v3/d1/miniflare-D1DatabaseObject/*.sqlite") if path.stem != "metadata"]
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as local:
        noted = local.execute("SELECT name FROM d1_migrations ORDER BY id").fetchall()
        made = _schema(local)
    assert [name for (name,) in noted] == sorted(file.name for file in (ROOT / "migrations").glob("*.sql"))
    host = open_database()
    SqliteSql(host).migrate(ROOT / "migrations")
    assert made == _schema(host)
    before = path.read_bytes()
    local_server.migrate(tmp_path, PRODUCTION_CONFIG)
    assert path.read_bytes() == before


def _schema(connection: sqlite3.Connection) -> set[str]:
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {" ".join(sql.split()) for name, sql in found if not name.startswith(("_cf_", "sqlite_", "d1_migrations"))}
