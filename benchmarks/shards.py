"""The trial of several databases: tenants are written and read while they move between four local databases.

    python -m benchmarks.shards
    python -m benchmarks.shards --tenants 100 --seconds 20

It counts writes that were acknowledged and are found in the end, reads that showed less than one before them, and for how
long a tenant refused writes. It is on the real workerd, with one process and bounded numbers; it measures no speed.
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
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx

from tools.local_server import serving
from tools.paths import ROOT

MOVING = "tenant_moving"
READERS = 3
MOVERS = 2


@dataclass
class Counts:
    """What the trial counted.

    refused: writes that got `tenant_moving`. longest_refusal_ms: of one tenant, from the first until a write was taken.
    """

    tenants: int = 0
    acknowledged: int = 0
    refused: int = 0
    failed: int = 0
    lost: int = 0
    reads: int = 0
    reads_that_showed_less: int = 0
    moves_switched: int = 0
    moves_completed: int = 0
    longest_refusal_ms: int = 0
    failures: dict[str, int] = field(default_factory=dict)


class Trial:
    """One trial against a running deployment. names: the tenants. shards: the databases that they move between."""

    def __init__(self, client: httpx.AsyncClient, names: Sequence[str], shards: Sequence[str], seed: int = 1) -> None:
        self.counts = Counts(tenants=len(names))
        self._client = client
        self._names = names
        self._shards = shards
        self._random = random.Random(seed)
        self._acknowledged: dict[str, list[str]] = {name: [] for name in names}
        self._refused_since: dict[str, float] = {}
        self._ends = 0.0

    async def run(self, seconds: float, *, writers: int = 6, complete: bool = True) -> Counts:
        """Write, read and move for so many seconds; then look for everything that was acknowledged.

        complete: whether the moves are ended before, with the removal of what has moved.
        """
        await self._each(16, self._register)
        self._ends = time.monotonic() + seconds
        open_moves: dict[str, str] = {}
        await asyncio.gather(
            *(self._writing(number) for number in range(writers)),
            *(self._reading() for _ in range(READERS)),
            *(self._moving(open_moves) for _ in range(MOVERS)),
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

    async def _register(self, name: str) -> None:
        (await self._client.put(f"/admin/tenants/{name}")).raise_for_status()

    async def _writing(self, number: int) -> None:
        written = 0
        while time.monotonic() < self._ends:
            name = self._random.choice(self._names)
            written += 1
            text = f"Note {written} of writer {number} for {name}."
            answer = await self._client.post(f"/admin/tenants/{name}/memories", json={"content": text})
            now = time.monotonic()
            if answer.is_success:
                self._acknowledged[name].append(text)
                self.counts.acknowledged += 1
                since = self._refused_since.pop(name, None)
                if since is not None:
                    self.counts.longest_refusal_ms = max(self.counts.longest_refusal_ms, int((now - since) * 1000))
            elif answer.json().get("code") == MOVING:
                self.counts.refused += 1
                self._refused_since.setdefault(name, now)
                await self._again(name, text)
            else:
                self._failed(answer)

    async def _again(self, name: str, text: str) -> None:
        """Write again what was refused, until it is taken: it is idempotent by content."""
        while True:
            await asyncio.sleep(0.2)
            answer = await self._client.post(f"/admin/tenants/{name}/memories", json={"content": text})
            if answer.is_success:
                self._acknowledged[name].append(text)
                self.counts.acknowledged += 1
                since = self._refused_since.pop(name, time.monotonic())
                waited = int((time.monotonic() - since) * 1000)
                self.counts.longest_refusal_ms = max(self.counts.longest_refusal_ms, waited)
                return
            if answer.json().get("code") != MOVING:
                self._failed(answer)
                return
            self.counts.refused += 1

    async def _reading(self) -> None:
        seen: dict[str, set[str]] = {}
        while time.monotonic() < self._ends:
            name = self._random.choice(self._names)
            before = {*self._acknowledged[name], *seen.get(name, ())}
            found = await self._listed(name)
            if found is not None:
                self.counts.reads += 1
                self.counts.reads_that_showed_less += not before <= found
                seen[name] = found

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
            here = (await self._client.get(f"/admin/tenants/{name}/shard")).json()["shard"]
            shard = self._random.choice([one for one in self._shards if one != here])
            open_moves[name] = shard
            while True:
                answer = await self._client.post(f"/admin/tenants/{name}/shard", json={"shard": shard})
                if not answer.is_success:
                    self._failed(answer)
                elif answer.json()["step"] == "remove":
                    self.counts.moves_switched += 1
                    break
                await asyncio.sleep(0.05)

    async def _completed(self, name: str, shard: str) -> None:
        while True:
            answer = await self._client.post(f"/admin/tenants/{name}/shard", json={"shard": shard})
            if answer.status_code == 200 or answer.json().get("code") == "same_shard":
                self.counts.moves_completed += 1
                return
            await asyncio.sleep(0.5)

    async def _checked(self, name: str) -> None:
        found = await self._listed(name) or set()
        self.counts.lost += len({*self._acknowledged[name]} - found)

    def _failed(self, answer: httpx.Response) -> None:
        self.counts.failed += 1
        code = str(answer.json().get("code"))
        self.counts.failures[code] = self.counts.failures.get(code, 0) + 1


async def tried(
    base_url: str,
    tenants: int,
    shards: Sequence[str],
    seconds: float,
    *,
    writers: int = 6,
    prefix: str = "t",
    complete: bool = True,
) -> Counts:
    """Return what a trial counted against the deployment at an address."""
    names = [f"{prefix}-{number}" for number in range(tenants)]
    async with httpx.AsyncClient(base_url=base_url, timeout=120, trust_env=False) as client:
        return await Trial(client, names, shards).run(seconds, writers=writers, complete=complete)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trial and print its counts as JSON; return 1 if a write was lost or a reader saw less than before."""
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
    return int(counts.lost > 0 or counts.reads_that_showed_less > 0 or counts.failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
