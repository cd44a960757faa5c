"""The attacker of `tests/attack` on the real workerd: fewer attempts, against the platform's own stores and parsers."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from tests.attack.attempts import Attacker
from tests.attack.evidence import Evidence, Rows, rows_of
from tests.attack.known import Known
from tests.attack.tenants import ATTACKER, MEMBERS, VICTIM, Answer, Furnished
from tests.attack.trial import wrongs
from tests.e2e.access_team import OWNER, Deployment, deployment
from tests.e2e.puppet import MODEL, Puppet
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd

ATTEMPTS = 400
SEED = 20261122
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


@pytest.fixture(scope="module")
def guarded(state: Path) -> Iterator[Deployment]:
    with Puppet() as puppet:
        model = {
            "CHAT_PROVIDER": "openai",
            "CHAT_BASE_URL": puppet.base_url,
            "CHAT_MODEL": MODEL,
            "CHAT_API_KEY": puppet.api_key,
        }
        with deployment(state, **model) as served:
            yield served


def _rows(root: Path) -> Rows:
    """Return every row of every store, and every value of KV and R2."""
    found: dict[str, Counter[tuple[object, ...]]] = {"blobs/files": Counter()}
    for path in (path for kind in ("d1", "kv", "r2", "do") for path in sorted((root / "v3" / kind).rglob("*"))):
        place = path.relative_to(root / "v3").parts[0]
        if path.suffix == ".sqlite" and path.stem != "metadata":
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as database:
                found |= rows_of(f"do:{path.stem}" if place == "do" else place, database)
        elif "blobs" in path.parts and path.is_file():
            found["blobs/files"][(path.name, path.read_bytes())] += 1
    return {table: rows for table, rows in found.items() if not table.endswith(_OF_THE_INDEX)}


async def test_invariant_3_no_attempt_on_workerd_reads_or_changes_anything_of_another_tenant(
    guarded: Deployment, state: Path
) -> None:
    rng = Random(SEED)
    canary = f"q{rng.getrandbits(48):012x}"
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
    attacker = Attacker(rng, known[ATTACKER], known[VICTIM], api_key="retain_team_unknown", token={})
    for number in range(ATTEMPTS):
        attempt = attacker.attempt()
        answer = await mallory.request(attempt.method, attempt.path, headers=attempt.headers, body=attempt.body)
        assert wrongs(answer, canary, known[VICTIM].hidden) == [], f"attempt {number}: {attempt}"
        if answer.status < 300:
            known[ATTACKER].learn(attempt.path, answer.body)
    assert evidence.changes(settled(state)) == []
    allowed = sum(count for status, count in mallory.answers.items() if status < 300 or status in (404, 409))
    assert allowed >= ATTEMPTS * 0.4, mallory.answers


def settled(root: Path) -> Rows:
    """Return the rows once two readings are equal: instances write to D1 after their answers."""
    last = [_rows(root)]

    def again() -> bool:
        last.append(_rows(root))
        return last[-1] == last[-2]

    eventually(again, bool)
    return last[-1]
