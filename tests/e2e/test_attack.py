"""The attacker of `tests/attack` on the real workerd: fewer attempts, against the platform's own stores and parsers.

It has a valid API key of its own tenant, so that the tool proxy is attacked with requests that reach an upstream.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from retain.cli.gateway import find_credentials_key
from retain.cli.project import Project
from retain.cli.wrangler_kv import wrangler_of
from retain.gateway.provisioning import KvEntry, credential_entry, new_api_key, tool_entry
from retain.host.crypto import HostCrypto
from tests.attack.attempts import GATEWAY, ROUTES, Attacker
from tests.attack.evidence import Evidence, Rows, rows_of
from tests.attack.known import Known
from tests.attack.tenants import ATTACKER, MEMBERS, TOOL, UPSTREAM, VICTIM, Answer, Furnished
from tests.attack.trial import wrongs
from tests.e2e.access_team import OWNER, Deployment, deployment
from tests.e2e.puppet import MODEL, Puppet
from tests.e2e.servers import one_database
from tests.e2e.waiting import eventually
from tests.gateway.setting import config
from tests.host.echo_server import echo_server
from tools.local_config import write_secrets
from tools.paths import PRODUCTION_CONFIG, ROOT

pytestmark = pytest.mark.workerd

ATTEMPTS = 400
GATEWAY_ATTEMPTS = 120
"""Attempts on the tool proxy alone, after the others."""
SEED = 20261122
_PROXIES = [f"{route.method} {route.path}" for route in GATEWAY]
_OF_THE_INDEX = "/facts"
"""How far the stand-in of the vector index has come, for all tenants together."""


@dataclass(frozen=True)
class Received:
    """What the deployment answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Sent:
    """Reaches the deployment as one person."""

    deployment: Deployment
    by: str
    answers: Counter[int] = field(default_factory=Counter)

    async def request(
        self,
        method: str,
        path: str,
        content: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send one request."""
        answer = self.deployment.ask(method, path, content, by=self.by, headers=headers, body=body)
        self.answers[answer.status_code] += 1
        return Received(answer.status_code, dict(answer.headers), answer.content)


@pytest.fixture(scope="module")
def state(migrated_state: Callable[[], Path]) -> Path:
    return migrated_state()


@dataclass(frozen=True)
class Attacked:
    """The deployment, and what both tenants have in it. canary: what every word of the victim begins with."""

    deployment: Deployment
    canary: str
    api_key: str


@pytest.fixture(scope="module")
def attacked(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    canary = f"q{Random(SEED).getrandbits(48):012x}"
    keys = {tenant: new_api_key(tenant, [TOOL], now_ms=time.time_ns() // 1_000_000) for tenant in (VICTIM, ATTACKER)}
    entries = [key.entry for key in keys.values()]
    for tenant, secret in ((VICTIM, f"{canary}xsecret"), (ATTACKER, "plainsecret")):
        entries += _tool(tenant, TOOL, secret)
    _write(entries, state, tmp_path_factory.mktemp("kv") / "entries.json")
    with Puppet(to_others="As you like.") as puppet, echo_server() as upstream:
        model = {
            "CHAT_PROVIDER": "openai",
            "CHAT_BASE_URL": puppet.base_url,
            "CHAT_MODEL": MODEL,
            "CHAT_API_KEY": puppet.api_key,
        }
        with deployment(state, None, {UPSTREAM: upstream.origin}, **model) as served:
            yield Attacked(served, canary, keys[ATTACKER].api_key)


def _tool(tenant: str, name: str, secret: str) -> list[KvEntry]:
    """Return what KV holds for a tool, with its credential."""
    write_secrets()
    sealing_key = find_credentials_key(os.environ, remote=False, local_secrets=ROOT / ".dev.vars")
    parameters = {"type": "object", "properties": {"order_id": {"type": "string"}}}
    credential = asyncio.run(credential_entry(HostCrypto(), sealing_key, tenant, name, secret))
    return [tool_entry(tenant, name, config(f"{UPSTREAM}/orders", parameters=parameters)), credential]


def _write(entries: list[KvEntry], state: Path, file: Path) -> None:
    file.write_text(json.dumps([{"key": entry.key, "value": entry.value} for entry in entries]))
    where = ["--binding", "KV", "--config", str(PRODUCTION_CONFIG), "--local", "--persist-to", str(state)]
    wrangler_of(Project(ROOT))(["kv", "bulk", "put", str(file), *where])


def _rows(root: Path) -> Rows:
    """Return every row of every store, and every value of KV and R2."""
    found: dict[str, Counter[tuple[object, ...]]] = {"blobs/files": Counter()}
    for path in (path for kind in ("d1", "kv", "r2", "do") for path in sorted((root / "v3" / kind).rglob("*"))):
        place = path.relative_to(root / "v3").parts[0]
        if path.suffix == ".sqlite" and path.stem != "metadata":
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as database:
                for name, rows in rows_of(f"do:{path.stem}" if place == "do" else place, database).items():
                    found[name] = found.get(name, Counter()) + rows
        elif "blobs" in path.parts and path.is_file():
            found["blobs/files"][(path.name, path.read_bytes())] += 1
    return {table: rows for table, rows in found.items() if not table.endswith(_OF_THE_INDEX)}


@one_database
async def test_invariant_3_no_attempt_on_workerd_reads_or_changes_anything_of_another_tenant(
    attacked: Attacked, state: Path
) -> None:
    rng, canary, guarded = Random(SEED), attacked.canary, attacked.deployment
    known = {VICTIM: Known(rng), ATTACKER: Known(rng)}
    words = {VICTIM: (f"{canary}x{number}" for number in range(10**6)), ATTACKER: (f"plain{n}" for n in range(10**6))}
    for tenant in (VICTIM, ATTACKER):
        furnished = Furnished(Sent(guarded, OWNER), tenant, words[tenant].__next__)
        await furnished.furnish()
        await furnished.look_around()
        for path, answer in furnished.answers:
            known[tenant].learn(path, answer.body)
        before = settled(state)
        if tenant == VICTIM:
            known[tenant].hide(rng)
            evidence = Evidence.taken(before, VICTIM)
            assert any(canary in repr(row) for row in before["d1/memory_records"])
    mallory = Sent(guarded, MEMBERS[ATTACKER])
    attacker = Attacker(rng, known[ATTACKER], known[VICTIM], api_key=attacked.api_key, token={})
    proxied: Counter[str] = Counter()
    for number in range(ATTEMPTS + GATEWAY_ATTEMPTS):
        attempt = attacker.attempt(ROUTES if number < ATTEMPTS else GATEWAY)
        answer = await mallory.request(attempt.method, attempt.path, headers=attempt.headers, body=attempt.body)
        assert wrongs(answer, canary, known[VICTIM].hidden) == [], f"attempt {number}: {attempt}"
        if attempt.route in _PROXIES and b"/orders" in answer.body:
            assert b"Bearer plainsecret" in answer.body, "the upstream gets the credential of the key's tenant and tool"
            proxied[attempt.route] += 1
        if answer.status < 300:
            known[ATTACKER].learn(attempt.path, answer.body)
    assert evidence.changes(settled(state)) == []
    allowed = sum(count for status, count in mallory.answers.items() if status < 300 or status in (404, 409))
    assert allowed >= ATTEMPTS * 0.4, mallory.answers
    assert proxied.keys() == set(_PROXIES), "attempts that reach no upstream prove little about the proxy"
    assert min(proxied.values()) >= 10, proxied


def settled(root: Path) -> Rows:
    """Return the rows once two readings are equal: instances write to D1 after their answers."""
    last = [_rows(root)]

    def again() -> bool:
        last.append(_rows(root))
        return last[-1] == last[-2]

    eventually(again, bool)
    return last[-1]
