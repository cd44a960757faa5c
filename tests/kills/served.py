"""A deployment with fault points, which is killed and started again."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from retain.admin.catching_up import CATCH_UP
from retain.cli.project import Project
from retain.cli.wrangler_kv import wrangler_of
from retain.gateway.provisioning import KvEntry
from tests.e2e.local_state import LocalState
from tests.e2e.puppet import MODEL, Puppet
from tests.e2e.servers import client_of, staged
from tests.kills.of_items import FLAGS
from tests.kills.place import Place
from tests.kills.points import Points
from tests.kills.shipping import Shipping
from tests.kills.staged import add_points
from tools.local_server import LocalServer, start, stop
from tools.paths import PRODUCTION_CONFIG, ROOT

MOST_WORKS = 700
"""Works of a walk through all faults, at most. Each has a tenant of its own, with the tool of the upstream."""
CARELESS = 0
"""The tenant whose tool claims to be idempotent, and is not."""


class Killed:
    """A running deployment. starts: how often it was started."""

    def __init__(self, config: Path, state: Path, points: Points, shipping: Shipping, works: int) -> None:
        self._config = config
        self._works = works
        self._shipping = shipping
        self.state = LocalState(state)
        self.points = points
        self.starts = 0
        self._start()

    def kill(self) -> None:
        """End the process group at once."""
        self.server.kill()
        self.api.close()
        self.points.release()

    def restart(self, tenants: Collection[str]) -> None:
        """Start on what is there, when leases of the dead have ended and the index's debts are old enough to be settled.

        tenants: the alarms of whose instances are due.
        """
        self._let_time_pass()
        self.state.let_instances_wake(tenants)
        self._start()

    def _start(self) -> None:
        self.server: LocalServer = start(self.state.root, config=self._config)
        self.api = client_of(self.server)
        self.starts += 1

    def _let_time_pass(self) -> None:
        """Let everything be older that somebody who was killed still seems to be at work on."""
        leased = self.state.d1(
            "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'lease_until_ms'"
        )
        with self.state.d1_transaction() as database:
            for table in leased:
                database.execute(f"UPDATE {table['name']} SET lease_until_ms = 1 WHERE lease_until_ms > 1")
            database.execute("UPDATE memory_outbox SET at_ms = 1, due_at_ms = 1 WHERE state = 'owed'")

    def catch_up(self) -> None:
        """Do what the deployment does every five minutes. Raises: AssertionError when that fails."""
        fired = self.api.get("/cdn-cgi/handler/scheduled", params={"cron": CATCH_UP})
        assert fired.is_success, fired.text

    def place(self, number: int) -> Place:
        """Return a tenant as a scenario sees it. number: of its work."""
        assert number < self._works, "there are more works than tenants"
        return Place(self.api, self.state, _tenant(number), self._shipping)

    def place_of(self, place: Place) -> Place:
        """Return the same tenant, after a restart."""
        return replace(place, api=self.api)


@contextmanager
def killable(state: Path, works: int = MOST_WORKS) -> Iterator[Killed]:
    """Serve a deployment with fault points on a migrated state. works: at most so many are interrupted."""
    points, shipping = Points(), Shipping()
    try:
        tools = [shipping.tool(_tenant(number), idempotent=number == CARELESS) for number in range(works)]
        _provision(tools, state)
        with Puppet() as puppet:
            model = {"CHAT_PROVIDER": "openai", "CHAT_BASE_URL": puppet.base_url, "CHAT_MODEL": MODEL}
            with staged("kills", {**model, **FLAGS, "CHAT_API_KEY": puppet.api_key}) as config:
                add_points(ROOT / f".build-kills-{os.getpid()}", points.origin)
                served = Killed(config, state, points, shipping, works)
                try:
                    yield served
                finally:
                    served.api.close()
                    stop(served.server)
    finally:
        points.close()
        shipping.close()


def _tenant(number: int) -> str:
    return f"kill-{number}"


def _provision(entries: Sequence[KvEntry], state: Path) -> None:
    """Write into the KV of a server that does not run yet."""
    file = state / "entries.json"
    file.write_text(json.dumps([{"key": entry.key, "value": entry.value} for entry in entries]))
    where = ["--binding", "KV", "--config", str(PRODUCTION_CONFIG), "--local", "--persist-to", str(state)]
    wrangler_of(Project(ROOT))(["kv", "bulk", "put", str(file), *where])
