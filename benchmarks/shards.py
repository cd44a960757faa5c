"""The trial of several databases: tenants are written and read while they move between four local databases.

    python -m benchmarks.shards
    python -m benchmarks.shards --tenants 100 --seconds 20

Most of the writers, and the readers, follow the tenants that move, so that both meet the moments in which a tenant is not
written. It counts writes that were acknowledged and are found in the end, reads that showed less than one before them, and
for how long a tenant refused writes. It is on the real workerd, with one process and bounded numbers; it measures no speed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx

from retain.lifecycle.moving.mover import FREEZE_MS
from tools.local_server import serving
from tools.paths import ROOT

MOVING = "tenant_moving"
READERS = 3
BURST = 8
"""Reads, each followed by a write, that begin with the call that freezes a tenant."""
PATIENCE_S = 60.0
"""How long after the end of the trial what is open may take: a move until its switch, a write that is refused."""
AGAIN_S = 0.02
"""After how long a refused write is repeated. Its answer asks for a second; sooner shows how long the tenant was frozen."""


@dataclass
class Counts:
    """What the trial counted.

    refused: answers `tenant_moving` to writes. refused_writes: writes that got it at least once. with_retry_after: answers
    of these with the status 503 and `retry-after`. longest_refusal_ms: of one tenant, from the first answer until a write
    was taken. reads_meanwhile: reads that were answered within the call in which their tenant was frozen, from begin to end.
    never_taken: refused writes and moves that were still open long after the end.
    """

    tenants: int = 0
    acknowledged: int = 0
    refused: int = 0
    refused_writes: int = 0
    with_retry_after: int = 0
    longest_refusal_ms: int = 0
    failed: int = 0
    lost: int = 0
    never_taken: int = 0
    reads: int = 0
    reads_meanwhile: int = 0
    reads_that_showed_less: int = 0
    moves_switched: int = 0
    moves_completed: int = 0
    freezes: int = 0
    longest_freeze_ms: int = 0
    failures: dict[str, int] = field(default_factory=dict)

    @property
    def broken(self) -> list[str]:
        """Name what must not be: each promise that this trial saw broken."""
        broken = {
            "a write was lost": self.lost > 0,
            "a reader saw less": self.reads_that_showed_less > 0,
            "a request failed": self.failed > 0,
            "a refusal was not told as one": self.with_retry_after < self.refused,
            "a write or a move was never done": self.never_taken > 0,
            "a tenant refused writes for longer than two freezes": self.longest_refusal_ms > 2 * FREEZE_MS,
        }
        return [what for what, seen in broken.items() if seen]

    @property
    def met(self) -> bool:
        """Return whether writes and reads met a tenant that is not written."""
        return self.refused_writes > 0 and self.reads_meanwhile > 0


class Trial:
    """One trial against a running deployment. names: the tenants. shards: the databases that they move between."""

    def __init__(self, client: httpx.AsyncClient, names: Sequence[str], shards: Sequence[str], seed: int = 1) -> None:
        self.counts = Counts(tenants=len(names))
        self._client = client
        self._names = names
        self._shards = shards
        self._random = random.Random(seed)
        self._acknowledged: dict[str, list[str]] = {name: [] for name in names}
        self._seen: dict[str, set[str]] = {name: set() for name in names}
        self._refused_since: dict[str, float] = {}
        self._leaving: dict[str, float] = {}
        self._switching: dict[str, float] = {}
        self._bursts = 0
        self._ends = 0.0

    async def run(
        self,
        seconds: float,
        *,
        writers: int = 8,
        movers: int = 2,
        complete: bool = True,
        enough: Callable[[Counts], bool] | None = None,
    ) -> Counts:
        """Write, read and move for so many seconds; then look for everything that was acknowledged.

        complete: whether the moves are ended before, with the removal of what has moved. enough: ends the trial sooner.
        """
        await self._each(16, self._register)
        self._ends = time.monotonic() + seconds
        open_moves: dict[str, str] = {}
        await asyncio.gather(
            *(self._writing(number) for number in range(writers)),
            *(self._reading() for _ in range(READERS)),
            *(self._moving(open_moves) for _ in range(movers)),
            self._watching(enough),
        )
        for name, shard in open_moves.items() if complete else ():
            await self._completed(name, shard)
        await self._each(8, self._checked)
        return self.counts

    async def _each(self, width: int, work: Callable[[str], Awaitable[None]]) -> None:
        waiting = list(self._names)

        async def one() -> None:
            while waiting:
                await work(waiting.pop())

        await asyncio.gather(*(one() for _ in range(width)))

    async def _watching(self, enough: Callable[[Counts], bool] | None) -> None:
        while enough is not None and time.monotonic() < self._ends:
            if enough(self.counts):
                self._ends = time.monotonic()
            await asyncio.sleep(0.05)

    async def _register(self, name: str) -> None:
        (await self._client.put(f"/admin/tenants/{name}")).raise_for_status()

    def _one(self, following: bool) -> str:
        """Choose a tenant. following: one that moves, if any does; of these one that is frozen, if any is."""
        chosen = ([*self._switching] or [*self._leaving]) if following else []
        return self._random.choice(chosen or self._names)

    async def _writing(self, number: int) -> None:
        written = 0
        while time.monotonic() < self._ends:
            name = self._one(following=number % 4 > 0)
            written += 1
            await self._written(name, f"Note {written} of writer {number} for {name}.")

    async def _written(self, name: str, text: str) -> None:
        """Write until it is taken: what was refused is repeated, which is idempotent by content."""
        refused = False
        while time.monotonic() < self._ends + PATIENCE_S:
            answer = await self._client.post(f"/admin/tenants/{name}/memories", json={"content": text})
            now = time.monotonic()
            if answer.is_success:
                self._acknowledged[name].append(text)
                self.counts.acknowledged += 1
                waited = int((now - self._refused_since.pop(name, now)) * 1000)
                self.counts.longest_refusal_ms = max(self.counts.longest_refusal_ms, waited)
                return
            if answer.json().get("code") != MOVING:
                self._failed(answer)
                return
            self._refused_since.setdefault(name, now)
            self.counts.refused += 1
            self.counts.refused_writes += not refused
            refused = True
            self.counts.with_retry_after += answer.status_code == 503 and int(answer.headers.get("retry-after", 0)) > 0
            await asyncio.sleep(AGAIN_S)
        self.counts.never_taken += 1

    async def _reading(self) -> None:
        while time.monotonic() < self._ends:
            await self._read(self._one(following=True))

    async def _read(self, name: str) -> None:
        before = {*self._acknowledged[name], *self._seen[name]}
        switching = self._switching.get(name)
        found = await self._listed(name)
        if found is not None:
            self.counts.reads += 1
            self.counts.reads_meanwhile += switching is not None and self._switching.get(name) == switching
            self.counts.reads_that_showed_less += not before <= found
            self._seen[name] |= found

    async def _listed(self, name: str) -> set[str] | None:
        found: set[str] = set()
        query = {"limit": "100"}
        while True:
            answer = await self._client.get(f"/admin/tenants/{name}/memories", params=query)
            if not answer.is_success:
                self._failed(answer)
                return None
            page = answer.json()
            found |= {memory["content"] for memory in page["memories"]}
            if page["cursor"] is None:
                return found
            query["cursor"] = page["cursor"]

    async def _moving(self, open_moves: dict[str, str]) -> None:
        while time.monotonic() < self._ends:
            still = [one for one in self._names if one not in open_moves]
            if not still:
                return
            name = self._random.choice(still)
            open_moves[name] = ""
            here = (await self._client.get(f"/admin/tenants/{name}/shard")).json()["shard"]
            open_moves[name] = shard = self._random.choice([one for one in self._shards if one != here])
            self._leaving[name] = time.monotonic()
            if not await self._switched(name, shard):
                self.counts.never_taken += 1
            self._leaving.pop(name)

    async def _switched(self, name: str, shard: str) -> bool:
        burst: list[asyncio.Task[None]] = []
        while time.monotonic() < self._ends + PATIENCE_S:
            answer = await self._client.post(f"/admin/tenants/{name}/shard", json={"shard": shard})
            self._switching.pop(name, None)
            await asyncio.gather(*burst)
            burst.clear()
            if not answer.is_success:
                self._failed(answer)
                return False
            move = answer.json()
            if move["step"] == "remove":
                self.counts.moves_switched += 1
                self.counts.freezes += move["counts"].get("freezes", 0)
                frozen = move["counts"].get("frozen_ms", 0)
                self.counts.longest_freeze_ms = max(self.counts.longest_freeze_ms, frozen)
                return True
            if move["step"] == "switch":  # the next call freezes the tenant
                self._switching[name] = time.monotonic()
                burst = [asyncio.create_task(self._bursting(name, number)) for number in range(BURST)]
        return False

    async def _bursting(self, name: str, number: int) -> None:
        """Read and write while a tenant is frozen: one of several, each a little later than the one before."""
        await asyncio.sleep(number * 0.04)
        await self._read(name)
        self._bursts += 1
        await self._written(name, f"Note {self._bursts} of a burst for {name}.")

    async def _completed(self, name: str, shard: str) -> None:
        until = time.monotonic() + 2 * PATIENCE_S
        while time.monotonic() < until:
            answer = await self._client.post(f"/admin/tenants/{name}/shard", json={"shard": shard})
            if answer.status_code == 200 or answer.json().get("code") == "same_shard":
                self.counts.moves_completed += 1
                return
            await asyncio.sleep(0.5)
        self.counts.never_taken += 1

    async def _checked(self, name: str) -> None:
        found = await self._listed(name) or set()
        self.counts.lost += len({*self._acknowledged[name]} - found)

    def _failed(self, answer: httpx.Response) -> None:
        self.counts.failed += 1
        code = str(answer.status_code)
        with suppress(ValueError):
            code = str(answer.json().get("code"))
        self.counts.failures[code] = self.counts.failures.get(code, 0) + 1


async def tried(
    base_url: str,
    tenants: int,
    shards: Sequence[str],
    seconds: float,
    *,
    writers: int = 8,
    movers: int = 2,
    prefix: str = "t",
    complete: bool = True,
    enough: Callable[[Counts], bool] | None = None,
) -> Counts:
    """Return what a trial counted against the deployment at an address."""
    names = [f"{prefix}-{number}" for number in range(tenants)]
    async with httpx.AsyncClient(base_url=base_url, timeout=120, trust_env=False) as client:
        return await Trial(client, names, shards).run(
            seconds, writers=writers, movers=movers, complete=complete, enough=enough
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trial and print its counts as JSON; return 1 if a promise was broken, or nothing met a freeze."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shards", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--shards", type=int, default=4)
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    names = ["DB", *(f"DB_{number}" for number in range(1, options.shards))]
    config = ROOT / "wrangler.trial-of-shards.local.json"
    try:
        with (
            tempfile.TemporaryDirectory(prefix="retain-shards-") as state,
            serving(Path(state), config=config, shards=options.shards) as server,
        ):
            counts = asyncio.run(tried(server.base_url, options.tenants, names, options.seconds))
    finally:
        config.unlink(missing_ok=True)
    print(json.dumps(asdict(counts), indent=2))
    for broken in counts.broken:
        print(broken)
    return int(bool(counts.broken) or not counts.met)


if __name__ == "__main__":
    raise SystemExit(main())
