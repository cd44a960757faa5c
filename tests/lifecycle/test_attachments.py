"""Attachments through their life on the host: stored whole or not at all, kept, pruned and erased with their objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from retain.admin.maintenance import prune
from retain.agents.calls.client import InstanceClient
from retain.agents.conversations.deletion import delete_conversation
from retain.agents.identity import instance_of
from retain.attachments.attachment import MAX_UNUSED, Attachment, object_key
from retain.attachments.removal import ARRIVING_MS, remove_owed
from retain.attachments.store import Attachments, NewAttachment
from retain.errors import InvalidInput, QuotaExceeded, RetainError, Unavailable
from retain.lifecycle.erasure.eraser import Erasure
from retain.retention import DAY_MS
from tests.agents.attached import PICTURE, pieces, viewers
from tests.agents.stepped_chat import SteppedChat
from tests.lifecycle.world import World
from tests.support.faults import Crash, Fault
from tests.support.files import PDF, png
from tests.support.instances import LocalInstances

NOTE = b"Ann Smith owes 3"


@pytest.fixture
def world() -> Iterator[World]:
    """A deployment whose agent takes files."""
    made = World(viewers(), chat=lambda _: SteppedChat())
    yield made
    made.close()


async def uploaded(world: World, content: bytes = PICTURE, media_type: str = "image/png", **more: Any) -> Attachment:
    await world.sql.run("INSERT OR IGNORE INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
    new = NewAttachment(more.get("name"), media_type, len(content), more.get("user"))
    return (await world.attachments.store("acme", new, pieces(content)))[0]


async def named(world: World, *files: Attachment, instance: str = "main", **more: Any) -> None:
    asked = [file.attached.to_json() for file in files]
    await world.run("viewer", "Look", instance=instance, attachments=asked, **more)
    await world.settled()


async def ids(world: World) -> list[str]:
    return [
        row["attachment_id"] for row in (await world.sql.run("SELECT * FROM attachments ORDER BY attachment_id")).rows
    ]


async def objects(world: World) -> list[str]:
    return [key.rpartition("/")[2] for key in (await world.objects_store.list("attachments/")).keys]


async def swept(world: World) -> None:
    """Do what the work of every five minutes does, once what may still arrive has arrived."""
    world.clock.advance(ARRIVING_MS)
    await remove_owed(world.sql, world.objects_store, world.clock())


async def test_an_equal_file_of_the_same_user_is_stored_once(world: World) -> None:
    first = await uploaded(world, name="a.png", user="ann")
    assert (await uploaded(world, name="a.png", user="ann")).id == first.id
    others = [await uploaded(world, name="b.png", user="ann"), await uploaded(world, name="a.png", user="bob")]
    others.append(await uploaded(world, name="a.png"))
    assert len({first.id, *(one.id for one in others)}) == 4
    both = await asyncio.gather(*(uploaded(world, png(seed=5)) for _ in range(3)))
    assert len({one.id for one in both}) == 1
    await swept(world)
    assert len(await objects(world)) == len(await ids(world)) == 5


async def test_what_does_not_arrive_whole_is_not_there(world: World) -> None:
    await uploaded(world, name="before.png")

    async def broken() -> AsyncIterator[bytes]:
        yield PICTURE[:20]
        raise Unavailable("the body did not arrive completely", code="body_interrupted")

    with pytest.raises(Unavailable):
        await world.attachments.store("acme", NewAttachment(None, "image/png", 900), broken())
    for size in (len(PICTURE) - 1, len(PICTURE) + 1):
        with pytest.raises(InvalidInput) as other:
            await world.attachments.store("acme", NewAttachment(None, "image/png", size), pieces(PICTURE))
        assert other.value.code == "invalid_content"
    await swept(world)
    assert len(await ids(world)) == len(await objects(world)) == 1


PORTS = ("sql.run", "sql.batch", "objects.put_stream", "objects.delete")


@pytest.mark.parametrize("point", [f"{port}{when}" for port in PORTS for when in ("", " done")])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("error", [Crash(), Unavailable("away", code="r2_unavailable")], ids=["crash", "away"])
async def test_an_upload_that_fails_anywhere_leaves_nothing_or_the_file(
    world: World, point: str, nth: int, error: BaseException
) -> None:
    """An object never stays without a row or a debt, and a row without an object is never read."""
    await world.sql.run("INSERT OR IGNORE INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
    life = world.faults.life("upload")
    sql, store = world.faults.wrap("sql", world.sql, life), world.faults.wrap("objects", world.objects_store, life)
    failing = Attachments(sql, store, world.clock)
    world.faults.plan(Fault(error, nth=nth, point=point))
    try:
        await failing.store("acme", NewAttachment(None, "image/png", len(PICTURE)), pieces(PICTURE))
    except (Crash, RetainError):
        page = await world.attachments.page("acme", limit=10)
        assert len(page.attachments) <= 1
    world.faults.cancel()
    again = await uploaded(world)
    assert b"".join([piece async for piece in await world.attachments.open("acme", again.id)]) == PICTURE
    world.clock.advance(2 * DAY_MS)
    await prune(world.sql, world.clock, 400)
    await swept(world)
    assert (await ids(world), await objects(world)) == ([], [])


async def test_a_file_is_kept_for_a_day_and_for_ninety_after_a_run_that_names_it(world: World) -> None:
    unused, used = await uploaded(world, name="unused.png"), await uploaded(world, name="used.png")
    await named(world, used)

    async def kept_after(days: float) -> list[str]:
        world.clock.advance(int(days * DAY_MS))
        await prune(world.sql, world.clock, 400)
        await swept(world)
        assert sorted(await objects(world)) == await ids(world)
        return await ids(world)

    assert await kept_after(0.9) == [unused.id, used.id]
    assert await kept_after(0.2) == [used.id]
    assert await kept_after(88) == [used.id]
    await named(world, used, instance="other")
    assert await kept_after(89) == [used.id]
    assert await kept_after(2) == []
    assert (await world.sql.run("SELECT 1 FROM attachment_uses")).rows == []


async def test_a_debt_is_paid_when_the_object_store_is_back(world: World) -> None:
    picture = await uploaded(world)
    life = world.faults.life("route")
    store = Attachments(world.sql, world.faults.wrap("objects", world.objects_store, life), world.clock)
    world.faults.down.add("objects")
    await store.delete("acme", picture.id)
    assert (await ids(world), await objects(world)) == ([], [picture.id])
    world.faults.down.clear()
    await store.remove_owed("acme")
    assert await objects(world) == []
    assert (await world.sql.run("SELECT 1 FROM attachment_objects")).rows == []


async def test_an_object_that_cannot_be_removed_comes_after_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = [await uploaded(world, name=f"{number}.png") for number in range(3)]
    locked, delete = object_key("acme", pictures[1].id), world.objects_store.delete

    async def refusing(key: str) -> None:
        if key == locked:
            raise Unavailable("a lock of the bucket")
        await delete(key)

    await world.sql.run("DELETE FROM attachments")
    monkeypatch.setattr(world.objects_store, "delete", refusing)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await remove_owed(world.sql, world.objects_store, world.clock())
    assert await objects(world) == [pictures[1].id]


async def test_a_conversation_takes_the_files_that_no_other_one_names(world: World) -> None:
    own, shared = await uploaded(world, name="own.png"), await uploaded(world, name="shared.png")
    await named(world, own, shared)
    await named(world, shared, instance="other")
    client = InstanceClient(LocalInstances(world), instance_of("acme", "viewer", "main"))
    await delete_conversation(world.sql, client)
    await swept(world)
    assert await ids(world) == await objects(world) == [shared.id]
    await delete_conversation(world.sql, InstanceClient(LocalInstances(world), instance_of("acme", "viewer", "other")))
    await swept(world)
    assert await ids(world) == await objects(world) == []


async def test_an_erasure_of_a_user_takes_their_files_and_no_others(world: World) -> None:
    ann = await uploaded(world, user="ann")
    others = [await uploaded(world, user="bob"), await uploaded(world)]
    await named(world, ann, user={"id": "ann"})
    erasure = Erasure(world.stores())
    outcome = await world.completed(lambda: erasure.erase_user("acme", "ann"))
    assert outcome.receipt.counts["d1.attachments"] == 1
    assert outcome.receipt.counts["r2"] == 1
    assert await ids(world) == await objects(world) == [one.id for one in others]
    assert world.mentions(ann.id) == []


async def test_an_erasure_of_a_user_takes_nobodys_files_that_only_runs_of_the_user_named(world: World) -> None:
    own, early, shared, other = [await uploaded(world, name=f"{n}.png") for n in range(4)]
    await named(world, early)
    await named(world, own, shared, user={"id": "ann"})
    await named(world, own, instance="second", user={"id": "ann"})
    await named(world, shared, instance="third", user={"id": "bob"})
    erasure = Erasure(world.stores())
    outcome = await world.completed(lambda: erasure.erase_user("acme", "ann"))
    assert (outcome.receipt.counts["d1.attachments"], outcome.receipt.counts["r2"]) == (2, 2)
    assert await ids(world) == await objects(world) == [shared.id, other.id]


async def test_an_erasure_by_mention_takes_files_by_their_name_and_texts_by_their_content(world: World) -> None:
    gone = [
        await uploaded(world, name="Ann Smith.png"),
        await uploaded(world, NOTE, "text/plain", name="note.txt"),
    ]
    kept = [await uploaded(world), await uploaded(world, b"Joann Smithers", "text/plain", name="other.txt")]
    await named(world, *gone, *kept)
    erasure = Erasure(world.stores())
    outcome = await world.completed(lambda: erasure.erase_subject("acme", "ann smith", "mention"))
    assert outcome.receipt.counts["r2"] == 2
    assert await ids(world) == await objects(world) == [one.id for one in kept]
    assert world.mentions("Ann Smith owes") == world.mentions("Ann Smith.png") == []


async def test_an_erasure_of_a_tenant_takes_every_object_even_without_a_row(world: World) -> None:
    await named(world, await uploaded(world), await uploaded(world, PDF, "application/pdf"))
    await world.objects_store.put(object_key("acme", "stray"), b"stray")
    await world.objects_store.put(object_key("acme-2", "other"), b"other")
    erasure = Erasure(world.stores())
    await world.completed(lambda: erasure.erase_tenant("acme"))
    assert await objects(world) == ["other"]
    for table in ("attachments", "attachment_uses", "attachment_objects"):
        assert (await world.sql.run(f"SELECT 1 FROM {table}")).rows == []
    with pytest.raises(RetainError):
        await world.attachments.store("acme", NewAttachment(None, "image/png", len(PICTURE)), pieces(PICTURE))


async def test_an_upload_under_way_during_an_erasure_is_not_there_afterwards(world: World) -> None:
    await uploaded(world, user="ann", name="first.png")
    erasure = Erasure(world.stores())

    async def slow() -> AsyncIterator[bytes]:
        yield PICTURE[:30]
        outcome = await erasure.erase_user("acme", "ann")
        assert outcome.retry_after_ms is not None, "it waits for what may still arrive"
        yield PICTURE[30:]

    with pytest.raises(Unavailable):
        await world.attachments.store("acme", NewAttachment(None, "image/png", len(PICTURE), "ann"), slow())
    world.clock.advance(ARRIVING_MS)
    await world.completed(lambda: erasure.erase_user("acme", "ann"))
    assert await ids(world) == await objects(world) == []


async def test_a_file_with_the_id_of_another_tenant_or_user_is_never_read(world: World) -> None:
    """What a run is asked names ids. They are compared with tenant and user when they are read."""
    secret = await uploaded(world, user="bob")
    seen = SteppedChat()
    world._chat = lambda _: seen
    await named(world, secret, instance="mine", user={"id": "ann"})
    asked = [secret.attached.to_json()]
    await world.run("viewer", "Look", tenant="other", attachments=asked)
    assert [dict(request.contents) for request in seen.requests] == [{}, {}]


async def test_a_user_has_so_many_files_that_no_run_has_named(world: World) -> None:
    used = await uploaded(world, user="ann")
    await named(world, used, user={"id": "ann"})
    for number in range(MAX_UNUSED - 1):
        world.plant(
            "attachments", attachment_id=f"planted-{number}", tenant_id="acme", user_id="ann", sha256=str(number)
        )
    await uploaded(world, png(seed=1), user="ann")
    with pytest.raises(QuotaExceeded) as full:
        await uploaded(world, png(seed=2), user="ann")
    assert full.value.code == "too_many_uploads"
    await uploaded(world, png(seed=2), user="bob")
    await swept(world)
    assert len(await objects(world)) == 3


async def test_rows_that_move_to_another_database_leave_no_debts(world: World) -> None:
    await uploaded(world)
    for state, debts in (("removing", 0), ("here", 1)):
        world.sql_now("INSERT OR REPLACE INTO tenant_places (tenant_id, state) VALUES ('acme', ?)", state)
        world.sql_now("CREATE TABLE kept AS SELECT * FROM attachments")
        world.sql_now("DELETE FROM attachments")
        assert len(world.sql_now("SELECT 1 FROM attachment_objects")) == debts
        world.sql_now("INSERT INTO attachments SELECT * FROM kept")
        world.sql_now("DROP TABLE kept")
