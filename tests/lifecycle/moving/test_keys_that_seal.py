"""The keys of the deployment that seal are replaced while a tenant moves: the new ones open all, and the old ones can go."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial

import pytest

from retain.admin.resources import items
from retain.items.resealing import reseal
from retain.limits.room import Room
from retain.shards.place import HOME
from retain.webhooks.signing import signed_headers
from tests.lifecycle.moving.features import ADMIN, AGENTS, KEPT_MS, Features, Meeting, agents
from tests.lifecycle.moving.test_meetings import boundless
from tests.shell.test_webhooks import Shop
from tests.shell.worker import KEY, Worker, serving

OLD = base64.b64encode(bytes(32)).decode()
WEBHOOKS = "/v1/tenants/acme/webhooks"
NAMES = ("one", "two", "three", "four", "five")
PROGRAM = ("replace_keys", "reseal_some", "put_item", "rotate_webhook", "remove_old_keys")
CALLS = (3, 40, 12, 12, 2)
"""At which call of D1 something meets each step of a move, from `prepare` to `remove`."""


class Sealed(Features):
    """A tenant with items that have PII, and a webhook whose secret is sealed."""

    webhook: str = ""
    secret: str = ""

    async def do(self, name: str) -> None:
        """See the base."""
        await getattr(self, name)()
        await self.worker.settled()

    async def furnish(self) -> None:
        """Put items and create a webhook, sealed with the old keys."""
        for name in NAMES:
            await self._put(name, f'{{"email": "{name}@shop.example"}}')
        made = await self.ask("POST", WEBHOOKS, {"url": self.shop.url})
        assert made.status == 201, made.body
        self.webhook, self.secret = made.content["webhook_id"], made.content["secret"]

    async def replace_keys(self) -> None:
        """Deploy new keys; the old ones still open."""
        env = self.worker.env
        env.MEMORY_KEY, env.PREVIOUS_MEMORY_KEY = KEY, OLD
        env.CREDENTIALS_KEY, env.PREVIOUS_CREDENTIALS_KEY = KEY, OLD
        self.worker.restart()

    async def reseal_some(self) -> None:
        """Seal a part of the items with the new key."""
        assert await self._resealed() == 3, "two of five in a call"

    async def put_item(self) -> None:
        """Change an item, which the new key seals then."""
        await self._put(NAMES[-1], '{"email": "changed@shop.example"}')

    async def rotate_webhook(self) -> None:
        """Give the webhook another secret, which the new key seals."""
        made = await self.ask("POST", f"{WEBHOOKS}/{self.webhook}/rotate")
        assert made.status == 200, made.body
        self.secret = made.content["secret"]

    async def remove_old_keys(self) -> None:
        """Seal the rest, and deploy without the old keys."""
        while await self._resealed():
            pass
        self.worker.env.PREVIOUS_MEMORY_KEY = self.worker.env.PREVIOUS_CREDENTIALS_KEY = ""
        self.worker.restart()

    async def hear(self) -> None:
        """Run an agent, of which the webhook hears with a valid signature."""
        before = len(self.shop.messages)
        ended = await self.ask("POST", f"{AGENTS}/guide/run", {"input": "hello", "instance_id": "desk"})
        assert ended.status == 200, ended.body
        await self.worker.settled()
        headers, body = self.shop.messages[before:][-1]
        sent_at_ms = int(headers["webhook-timestamp"]) * 1000
        signed = signed_headers([self.secret], headers["webhook-id"], sent_at_ms, body)
        assert signed["webhook-signature"] == headers["webhook-signature"].split()[0]

    async def values(self) -> list[str]:
        """Return the values of the items."""
        found = [await self.ask("GET", f"{ADMIN}/items/shop/s-1/preferences/{name}") for name in NAMES]
        assert [one.status for one in found] == [200] * len(NAMES), [one.body for one in found]
        return [one.content["value"] for one in found]

    async def _put(self, name: str, value: str) -> None:
        made = await self.ask("PUT", f"{ADMIN}/items/shop/s-1/preferences/{name}", {"value": value})
        assert made.status in (200, 201), made.body

    async def _resealed(self) -> int:
        answer = await self.ask("POST", f"{ADMIN}/items/reseal")
        assert answer.status == 200, answer.body
        return int(answer.content["left"])


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """What hears the webhook."""
    served = Shop()
    yield served
    served.close()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal two items in a call. What meets a step is awaited in it, so the step may not hold the room that it needs."""
    monkeypatch.setattr(Room, "take", boundless)
    monkeypatch.setattr(items, "reseal", partial(reseal, limit=2))


async def step(worker: Worker, target: str) -> str:
    """Take a step of the move to a database; return the next one, or "" at the end."""
    worker.clock.advance(KEPT_MS)
    answer = await worker.request("POST", f"{ADMIN}/shard", {"shard": target})
    assert answer.status in (200, 202) or answer.content["code"] == "same_shard", answer.body
    return str(answer.content["step"]) if answer.status == 202 else ""


async def ended(worker: Worker, target: str) -> None:
    for _ in range(12):
        if not await step(worker, target):
            return
    raise AssertionError("the move does not end")


@pytest.mark.parametrize("first", range(6))
async def test_what_is_sealed_is_opened_by_the_new_keys_alone_whichever_step_of_a_move_their_replacement_meets(
    shop: Shop, first: int
) -> None:
    async with serving(agents=agents(), shards="2", MEMORY_KEY=OLD, CREDENTIALS_KEY=OLD) as worker:
        await worker.tenant("acme")
        features = Sealed(worker, shop)
        await features.furnish()
        [home] = [shard for shard in worker.shards if await rows(worker, shard)]
        away = "DB_1" if home == HOME else HOME
        meeting = Meeting(features)
        for _ in range(first):  # the replacement begins later in the move, or within the move back
            await step(worker, await target_of(worker))
        for place, name in enumerate(PROGRAM):
            target = await target_of(worker)

            async def stepped(target: str = target) -> None:
                await step(worker, target)

            await meeting.during(stepped, name, CALLS[(first + place) % 5])
        wanted = [f'{{"email": "{name}@shop.example"}}' for name in (*NAMES[:-1], "changed")]
        for target in (await target_of(worker), away, home):
            await ended(worker, target)
            assert await features.values() == wanted
            await features.hear()
            [only] = [shard for shard in worker.shards if await rows(worker, shard)]
            assert only == target
            assert len({row["key_id"] for row in await rows(worker, only)}) == 1, "one key has sealed them all"


async def target_of(worker: Worker) -> str:
    """Return where the tenant is being moved, or the other database."""
    shown = (await worker.request("GET", f"{ADMIN}/shard")).content
    if (shown["move"] or {}).get("state") == "running":
        return str(shown["move"]["target"])
    return "DB_1" if shown["shard"] == HOME else HOME


async def rows(worker: Worker, shard: str) -> list[dict[str, str]]:
    found = await worker.shards[shard].store.run("SELECT key, key_id FROM memory_items WHERE key_id IS NOT NULL")
    return [dict(row) for row in found.rows]
