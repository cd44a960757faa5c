"""Erasing what a conversation mentions: its messages, its title and its summary, and nothing of other conversations."""

from __future__ import annotations

from tests.lifecycle.erasable import ANN, erased
from tests.lifecycle.world import World, living

SUMMARISED = 45
"""More turns than a prompt has messages, so that the first ones are in the summary."""


async def talk(world: World, instance: str, *texts: str) -> None:
    for text in texts:
        await world.run("refund_decision", text, instance=instance)
    await world.settled()


async def test_a_mention_is_erased_from_messages_title_and_summary() -> None:
    with living() as world:
        await world.sql.run("INSERT OR IGNORE INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
        for instance, name in (("hers", f"I am {ANN}."), ("his", "I am Bob, order CD-2001.")):
            await talk(world, instance, name, *[f"My order is AB-{number}." for number in range(SUMMARISED)])
        await world.sql.run("UPDATE conversations SET title = ? WHERE instance_id = 'hers'", f"Refund for {ANN}")
        [before] = await world.rows("SELECT summary FROM conversations WHERE instance_id = 'hers'")
        assert ANN in before["summary"]
        hers = await world.rows("SELECT run_id, content FROM conversation_messages WHERE instance_id = 'hers'")
        named = {row["run_id"] for row in hers if ANN in row["content"]}
        outcome = await erased(world)
        assert outcome.receipt.counts["d1.conversations"] == 1
        assert outcome.receipt.counts["d1.conversation_messages"] == sum(row["run_id"] in named for row in hers)
        left = {row["instance_id"]: row for row in await world.rows("SELECT * FROM conversations")}
        assert (left["hers"]["title"], left["hers"]["summary"], left["hers"]["summary_through"]) == (None, None, None)
        assert "CD-2001" in left["his"]["summary"]
        kept = await world.rows("SELECT content FROM conversation_messages WHERE instance_id = 'hers'")
        assert len(kept) == sum(row["run_id"] not in named for row in hers) >= SUMMARISED
        await talk(world, "hers", "Which order was it?")
        [again] = await world.rows("SELECT summary FROM conversations WHERE instance_id = 'hers'")
        assert ANN not in again["summary"]
        assert "AB-0" in again["summary"]
        assert ANN not in str(world.everything())
