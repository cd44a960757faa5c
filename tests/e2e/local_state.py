"""What the local server keeps on disk, read by another process: D1, KV, R2 and the SQLite of Durable Objects.

Miniflare keeps each database in a file of its own under `v3/`, in write-ahead mode, so that another process can read it
while the server runs. Values of KV and R2 are files, which an entry in a database names.
"""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.stage import read_config

Rows = list[dict[str, Any]]


class Written:
    """Several databases that are written in one transaction: `main`, and the others that are attached to it."""

    def __init__(self, database: sqlite3.Connection, others: int) -> None:
        self._database = database
        self._schemas = ["main", *(f"shard_{number}" for number in range(others))]

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Execute a statement. An INSERT says which tenant's row it is by one of its values, or in its text."""
        words = sql.split(None, 3)
        if words[0] == "INSERT":
            words[2] = f"{self._home_of([*map(str, values), sql])}.{words[2]}"
            self._database.execute(" ".join(words), values)
            return
        place = 2 if words[0] == "DELETE" else 1
        for schema in self._schemas:
            self._database.execute(" ".join([*words[:place], f"{schema}.{words[place]}", *words[place + 1 :]]), values)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each of several rows."""
        for row in rows:
            self.execute(sql, row)

    def _home_of(self, texts: Sequence[str]) -> str:
        for schema in self._schemas:
            for (tenant,) in self._database.execute(f"SELECT tenant_id FROM {schema}.tenants").fetchall():
                if tenant in texts or any(f"'{tenant}'" in text for text in texts):
                    return schema
        return "main"


@dataclass(frozen=True)
class LocalState:
    """The state that one server works on. root: what was given to wrangler as `--persist-to`."""

    root: Path

    def d1(self, sql: str, *values: object) -> Rows:
        """Return the rows that D1 holds, of all databases as if they were one."""
        first, *others = self._databases("d1/miniflare-D1DatabaseObject")
        return _rows(first, sql, *values, also=others)

    @contextmanager
    def d1_transaction(self) -> Iterator[sqlite3.Connection | Written]:
        """Write to D1 bypassing the server. Until the block ends nobody else can write, not even the server.

        Where there are several databases, a row is inserted where the tenant that it names lives; other statements are
        executed on each.
        """
        first, *others = self._databases("d1/miniflare-D1DatabaseObject")
        with closing(sqlite3.connect(first, timeout=30, isolation_level=None)) as database:
            for number, other in enumerate(others):
                database.execute(f"ATTACH ? AS shard_{number}", (str(other),))
            database.execute("BEGIN IMMEDIATE")
            try:
                yield Written(database, len(others)) if others else database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def kv(self, prefix: str) -> dict[str, tuple[str, int | None]]:
        """Return the values under the keys with this prefix, each with its expiry in epoch milliseconds."""
        entries = _rows(self._database("kv/miniflare-KVNamespaceObject"), "SELECT * FROM _mf_entries ORDER BY key")
        return {
            entry["key"]: (self._blob("kv", entry["blob_id"]).decode(), entry["expiration"])
            for entry in entries
            if entry["key"].startswith(prefix)
        }

    def r2(self, prefix: str) -> dict[str, bytes]:
        """Return the objects under the keys with this prefix."""
        entries = _rows(self._database("r2/miniflare-R2BucketObject"), "SELECT * FROM _mf_objects ORDER BY key")
        return {
            entry["key"]: self._blob("r2", entry["blob_id"]) for entry in entries if entry["key"].startswith(prefix)
        }

    def instance(self, tenant_id: str, agent_type: str, instance_id: str, sql: str) -> Rows:
        """Return rows of an instance's own SQLite."""
        for path in sorted(self._databases("do/retain-AgentRuntime"), key=lambda path: -path.stat().st_mtime):
            if _rows(path, "SELECT 1 FROM sqlite_master WHERE name = 'identity'") and _rows(
                path, "SELECT 1 FROM identity WHERE (tenant_id, agent_type, instance_id) = (?, ?, ?)",
                tenant_id, agent_type, instance_id,
            ):  # fmt: skip
                return _rows(path, sql)
        raise LookupError(f"there is no instance {agent_type}:{tenant_id}:{instance_id}")

    def instances(self, text: str) -> list[str]:
        """Return the tables of all instances' SQLite in which a text is stored."""
        return [table for path in self._databases("do/retain-AgentRuntime") for table in _holding(path, text)]

    def d1_tables(self, text: str) -> list[str]:
        """Return the tables of D1 in which a text is stored."""
        return [table for path in self._databases("d1/miniflare-D1DatabaseObject") for table in _holding(path, text)]

    def blobs(self, text: str) -> list[str]:
        """Return the files of KV and R2 in which a text is stored."""
        files = [path for kind in ("kv", "r2") for path in (self.root / "v3" / kind).rglob("*") if path.is_file()]
        return [path.name for path in files if text.encode() in path.read_bytes()]

    def age_runs(self, key: str, by_ms: int) -> None:
        """Let the runs of a stopped server's instance be older. key: its namespace key."""
        folder = self.root / "v3" / "do" / "retain-AgentRuntime"
        with closing(sqlite3.connect(folder / "metadata.sqlite")) as schedule:
            [(actor_id,)] = schedule.execute("SELECT actor_id FROM _cf_ALARM WHERE actor_name = ?", (key,)).fetchall()
        with closing(sqlite3.connect(folder / f"{actor_id}.sqlite", isolation_level=None)) as object_:
            object_.execute("UPDATE turn_state SET updated_at_ms = updated_at_ms - ?", (by_ms,))

    def make_alarm_due(self, key: str) -> None:
        """Let an instance's alarm be long overdue when the stopped server starts again. key: its namespace key.

        workerd keeps an alarm's time twice, in its schedule and in the object, and believes the object.
        """
        folder = self.root / "v3" / "do" / "retain-AgentRuntime"
        with closing(sqlite3.connect(folder / "metadata.sqlite", isolation_level=None)) as schedule:
            [(actor_id,)] = schedule.execute("SELECT actor_id FROM _cf_ALARM WHERE actor_name = ?", (key,)).fetchall()
            schedule.execute("UPDATE _cf_ALARM SET scheduled_time = 1 WHERE actor_id = ?", (actor_id,))
        with closing(sqlite3.connect(folder / f"{actor_id}.sqlite", isolation_level=None)) as object_:
            assert object_.execute("UPDATE _cf_METADATA SET value = 1 WHERE key = 1").rowcount == 1

    def let_instances_wake(self, tenants: Collection[str]) -> None:
        """Let the alarms of these tenants' instances be long overdue when the stopped server starts again, and what they
        have to learn be due.
        """
        folder = self.root / "v3" / "do" / "retain-AgentRuntime"
        with closing(sqlite3.connect(folder / "metadata.sqlite", isolation_level=None)) as schedule:
            alarms = schedule.execute("SELECT actor_name, actor_id FROM _cf_ALARM").fetchall()
            for actor_id in [id_ for name, id_ in alarms if name.split(":")[1] in tenants]:
                schedule.execute("UPDATE _cf_ALARM SET scheduled_time = 1 WHERE actor_id = ?", (actor_id,))
                with closing(sqlite3.connect(folder / f"{actor_id}.sqlite", isolation_level=None)) as object_:
                    object_.execute("UPDATE _cf_METADATA SET value = 1 WHERE key = 1")
                    object_.execute("UPDATE pending_learnings SET due_at_ms = 1")

    def lose_instance(self, key: str) -> None:
        """Delete the storage of a stopped server's instance, with its alarm. key: its namespace key."""
        folder = self.root / "v3" / "do" / "retain-AgentRuntime"
        with closing(sqlite3.connect(folder / "metadata.sqlite", isolation_level=None)) as schedule:
            [(actor_id,)] = schedule.execute("SELECT actor_id FROM _cf_ALARM WHERE actor_name = ?", (key,)).fetchall()
            schedule.execute("DELETE FROM _cf_ALARM WHERE actor_id = ?", (actor_id,))
        for path in folder.glob(f"{actor_id}.sqlite*"):
            path.unlink()

    def databases_with(self, sql: str, *values: object) -> list[Rows]:
        """Return the rows of each database of D1 in which a query finds some, where a deployment has several."""
        found = (_rows(path, sql, *values) for path in self._databases("d1/miniflare-D1DatabaseObject"))
        return [rows for rows in found if rows]

    def _database(self, folder: str) -> Path:
        [path] = self._databases(folder)
        return path

    def _databases(self, folder: str) -> list[Path]:
        return [path for path in (self.root / "v3" / folder).glob("*.sqlite") if path.stem != "metadata"]

    def _blob(self, kind: str, blob_id: str) -> bytes:
        [path] = (self.root / "v3" / kind).glob(f"*/blobs/{blob_id}")
        return path.read_bytes()


def databases_of(root: Path, config: Path) -> list[Path]:
    """Return the files in which Miniflare keeps the databases of a configuration, in their order; make their folder."""
    folder = root / "v3" / "d1" / "miniflare-D1DatabaseObject"
    folder.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(folder.name.encode()).digest()

    def digest(content: bytes) -> bytes:
        return hmac.new(key, content, hashlib.sha256).digest()[:16]

    ids = [database["database_id"].encode() for database in read_config(config)["d1_databases"]]
    return [folder / f"{(digest(one) + digest(digest(one))).hex()}.sqlite" for one in ids]


def _unite(database: sqlite3.Connection, schemas: Sequence[str]) -> None:
    """Let the name of a table stand for its rows in all databases: a temporary view comes before a table."""
    tables = database.execute(
        "SELECT name FROM main.sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        " AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\'"
    ).fetchall()
    for (name,) in tables:
        rows = " UNION ALL ".join(f'SELECT * FROM {schema}."{name}"' for schema in schemas)
        database.execute(f'CREATE TEMP VIEW "{name}" AS {rows}')


def _holding(path: Path, text: str) -> list[str]:
    tables = _rows(path, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'memory_text%'")
    return [
        table["name"]
        for table in tables
        if any(text in str(row) for row in _rows(path, f'SELECT * FROM "{table["name"]}"'))
    ]


def _rows(path: Path, sql: str, *values: object, also: Sequence[Path] = ()) -> Rows:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as database:
        database.row_factory = sqlite3.Row
        for number, other in enumerate(also):
            database.execute(f"ATTACH ? AS shard_{number}", (f"file:{other}?mode=ro",))
        if also:
            _unite(database, ["main", *(f"shard_{number}" for number in range(len(also)))])
        return [dict(row) for row in database.execute(sql, values)]
