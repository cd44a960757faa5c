"""PII: sealed at rest, in the warm tier only, and sealed again when the key changes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput, Misconfigured
from retain.host.crypto import HostCrypto
from retain.items.resealing import Resealed, reseal
from retain.items.tiers.sql_warm import SqlWarm
from retain.sealing.pii import FIELDS, Sealer, declared_in, read_fields
from tests.items.world import KEY, NO_PATTERNS, OLDER_KEY, Tiered

PERSON = '{"name": "Ann",  "contact": [{"Email": "ann@shop.example"}], "phone": null}'
PLACE = "shop:acme:s-1:preferences:ann"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param(PERSON, ["email"], id="nested, in another case, and null is nothing"),
        pytest.param('{"address": {"city": "Rome"}}', ["address"], id="an object"),
        pytest.param('{"email": "a@b", "email": null}', ["email"], id="twice, the last one null"),
        pytest.param('{"email": {"email": null}}', ["email"], id="an object of nothing is something"),
        pytest.param(' \n[{"payment_method": "card"}]', ["payment_method"], id="in an array, after spaces"),
        pytest.param('{"mail": "x", "mails": "phone"}', [], id="other names, and a name as a value"),
        pytest.param('{"email_draft": "x", "emailSent": true, "headphones": 2}', [], id="names of something else"),
        pytest.param('{"email_address": "x"}', ["address", "email"], id="in words"),
        pytest.param('{"phoneNumber": "x"}', ["phone"], id="in humps"),
        pytest.param('{"e-mail": "x"}', ["email"], id="with a hyphen"),
        pytest.param('{"userEmail": "x"}', ["email"], id="with an owner"),
        pytest.param('{"USER_EMAIL": "x", "homeURLAddress": "y"}', ["address", "email"], id="in capitals"),
        pytest.param('{"emails": ["x"], "addresses": []}', ["address", "email"], id="in the plural"),
        pytest.param('{"paymentMethod": {}, "address_line_2": "x"}', ["address", "payment_method"], id="with a number"),
        pytest.param("email: ann@shop.example", [], id="text"),
        pytest.param('{"email": ', [], id="not JSON"),
        pytest.param('"email"', [], id="a JSON string"),
    ],
)
def test_declared_fields_are_found_at_any_depth(value: str, found: list[str]) -> None:
    assert declared_in(value, FIELDS) == found


OWNERS = ["", "user", "home", "billing", "primary", "customer"]
STYLES: dict[str, Callable[[list[str]], str]] = {
    "snake": "_".join,
    "kebab": "-".join,
    "dotted": ".".join,
    "spaced": " ".join,
    "screaming": lambda words: "_".join(words).upper(),
    "camel": lambda words: words[0] + "".join(word.capitalize() for word in words[1:]),
    "pascal": lambda words: "".join(word.capitalize() for word in words),
    "flat": "".join,
    "shouted": lambda words: "".join(words).upper(),
    "wide": lambda words: "".join(chr(ord(letter) + 0xFEE0) for letter in "".join(words)),
}
SPELLINGS = {
    "email": (["email"], ["e", "mail"]),
    "phone": (["phone"],),
    "address": (["address"],),
    "payment_method": (["payment", "method"],),
}


@given(
    field=st.sampled_from(sorted(SPELLINGS)),
    data=st.data(),
    owner=st.sampled_from(OWNERS),
    rest=st.sampled_from([[], ["address"], ["number"], ["numbers"], ["2"], ["line", "1"], ["no"]]),
    style=st.sampled_from(sorted(STYLES)),
)
def test_a_declared_field_is_found_in_every_style_of_names(
    field: str, data: st.DataObject, owner: str, rest: list[str], style: str
) -> None:
    words = data.draw(st.sampled_from(SPELLINGS[field]))
    name = STYLES[style]([*([owner] if owner else []), *words, *rest])
    assert field in declared_in(json.dumps({"deep": [{name: "x"}]}), FIELDS), name


@pytest.mark.parametrize(
    "name",
    ["headphones", "emailed", "emailVerified", "email_hash", "microphone", "mailing", "addressee", "method", "payment"],
)
@pytest.mark.parametrize("style", ["snake", "pascal", "screaming"])
def test_other_fields_are_not_declared_in_any_style(name: str, style: str) -> None:
    assert declared_in(json.dumps({STYLES[style]([name]): "x"}), FIELDS) == []


def test_a_long_name_is_read_in_linear_time() -> None:
    assert declared_in(json.dumps({"email" + "1" * 100_000 + "x": "y", "user" * 50_000 + "x": "y"}), FIELDS) == []


def test_a_value_too_deep_to_be_searched_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        declared_in("[" * 200_000, FIELDS)
    assert refused.value.code == "value_too_deep"


def test_the_fields_are_configurable() -> None:
    assert read_fields("") == FIELDS
    assert read_fields(" iban, email ") == ("iban", "email")
    assert declared_in('{"IBAN": "x", "phone": "1"}', read_fields("iban")) == ["iban"]


async def test_a_value_with_pii_is_sealed_at_rest_and_read_unchanged(world: Tiered) -> None:
    stored = await world.memory().put("preferences", "ann", PERSON, user_id="ann")
    assert (stored.tier, stored.hot_copy) == ("warm", False)
    [row] = world.rows()
    assert "shop.example" not in json.dumps(row)
    assert row["key_id"] == world.sealer().key_id() == json.loads(row["value"])["kid"]
    for _ in range(2):
        assert await world.memory().get("preferences", "ann") == PERSON
    assert (await world.kv.list("")).keys == []


@pytest.mark.parametrize("kind", ["cart", "session_state", "order_history", "system_logs"])
@pytest.mark.parametrize("write_through", [True, False])
async def test_pii_that_would_reach_the_hot_or_cold_tier_is_refused(
    world: Tiered, kind: str, write_through: bool
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await world.memory(write_through=write_through).put(kind, "one", PERSON)
    assert (refused.value.code, refused.value.details["fields"]) == ("pii_outside_warm", ["email"])
    assert "ann@" not in refused.value.message
    assert (world.rows(), world.rows("memory_item_objects"), await world.cold()) == ([], [], {})


async def test_a_value_that_gains_pii_loses_its_hot_copy(world: Tiered) -> None:
    await world.memory().put("preferences", "ann", "{}")
    assert await world.hot(PLACE) == "{}"
    await world.memory().put("preferences", "ann", PERSON)
    assert await world.hot(PLACE) is None


async def test_a_policy_cannot_demote_pii(world: Tiered) -> None:
    await world.memory().put("preferences", "ann", PERSON)
    world.clock.advance(86_400_000)
    done = await world.demotion(lambda _item, _now: "demote").run()
    assert (done["refused"], done.get("moved", 0)) == (1, 0)
    assert await world.cold() == {}
    assert await world.memory().get("preferences", "ann") == PERSON


async def test_pii_that_another_program_stored_unsealed_is_not_demoted(world: Tiered) -> None:
    await SqlWarm(world.sql, "acme", world.clock).upsert(PLACE, PERSON + " " * 2000)
    world.clock.advance(40 * 86_400_000)
    done = await world.demotion().run()
    assert (done["failed"], done.get("moved", 0)) == (1, 0)
    assert await world.cold() == {}


async def test_the_schema_itself_refuses_sealed_items_outside_the_warm_tier(world: Tiered) -> None:
    await world.memory().put("preferences", "ann", PERSON)
    with pytest.raises(Exception, match="constraint"):
        await world.sql.run("UPDATE memory_items SET tier = 'cold'")


async def test_without_a_key_a_value_with_pii_is_refused(world: Tiered) -> None:
    memory = world.builder().with_pii(world.sealer(key="")).build()
    with pytest.raises(Misconfigured) as refused:
        await memory.put("preferences", "ann", PERSON)
    assert refused.value.code == "memory_key_missing"
    assert world.rows() == []
    await memory.put("preferences", "theme", "dark")


@pytest.mark.parametrize("key", ["no base64!", "c2hvcnQ="])
async def test_an_invalid_key_is_refused(world: Tiered, key: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        await world.builder().with_pii(world.sealer(key=key)).build().put("preferences", "ann", PERSON)
    assert refused.value.code == "invalid_memory_key"


async def test_a_seal_does_not_open_under_another_item_or_with_another_key() -> None:
    sealer = Sealer(HostCrypto(), KEY)
    sealed = await sealer.seal(PLACE, PERSON)
    assert sealed != await sealer.seal(PLACE, PERSON)
    for opener, place, text in (
        (sealer, "shop:acme:s-1:preferences:bob", sealed),
        (Sealer(HostCrypto(), OLDER_KEY), PLACE, sealed),
        (sealer, PLACE, "{}"),
        (sealer, PLACE, "text"),
    ):
        with pytest.raises(Misconfigured) as refused:
            await opener.open(place, text)
        assert refused.value.code == "item_unreadable"


async def test_rotation_seals_everything_again_part_by_part_and_keeps_versions(world: Tiered) -> None:
    older = world.builder().with_pii(world.sealer(OLDER_KEY)).build()
    for number in range(5):
        await older.put("preferences", f"p-{number}", PERSON)
    await older.put("preferences", "theme", "dark")
    versions = {row["key"]: row["version"] for row in world.rows()}
    rotating = world.sealer(KEY, OLDER_KEY)
    lefts = [(await reseal(world.sql, rotating, "acme", NO_PATTERNS, limit=2)).left for _ in range(4)]
    assert lefts == [3, 1, 0, 0]
    assert {row["key"]: row["version"] for row in world.rows()} == versions
    assert {row["key_id"] for row in world.rows()} == {rotating.key_id(), None}
    assert await world.memory().get("preferences", "p-3") == PERSON  # with the new key alone


async def test_rotation_leaves_out_the_items_that_no_key_opens_and_counts_them(
    world: Tiered, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = world.builder().with_pii(world.sealer("bGxsbGxsbGxsbGxsbGxsbGxsbGxsbGxsbGxsbGxsbGw=")).build()
    older = world.builder().with_pii(world.sealer(OLDER_KEY)).build()
    for number in range(3):
        await lost.put("preferences", f"a-{number}", PERSON)
        await older.put("preferences", f"b-{number}", PERSON)
    rotating = world.sealer(KEY, OLDER_KEY)
    done = [await reseal(world.sql, rotating, "acme", NO_PATTERNS, limit=2) for _ in range(3)]
    assert done == [Resealed(2, 4, 3), Resealed(1, 3, 3), Resealed(0, 3, 3)]
    assert await lost.get("preferences", "a-1") == PERSON
    monkeypatch.setattr("retain.items.resealing.LOOKS", 2)
    assert (await reseal(world.sql, rotating, "acme", NO_PATTERNS, limit=2)).unreadable == 2, "a call is bounded"


async def test_without_the_key_before_nothing_is_sealed_again_and_everything_is_left(world: Tiered) -> None:
    await world.builder().with_pii(world.sealer(OLDER_KEY)).build().put("preferences", "ann", PERSON)
    assert await reseal(world.sql, world.sealer(KEY), "acme", NO_PATTERNS) == Resealed(0, 1, 1)
    assert await world.builder().with_pii(world.sealer(OLDER_KEY)).build().get("preferences", "ann") == PERSON


async def test_an_unsealed_value_that_another_program_stored_is_not_promoted(world: Tiered) -> None:
    await SqlWarm(world.sql, "acme", world.clock).upsert(PLACE, PERSON)
    assert await world.memory().get("preferences", "ann") == PERSON
    assert (await world.kv.list("")).keys == []
    object_key = "shop:acme:s-1:order_history:one@x"
    await world.memory().put("order_history", "one", "{}")
    await world.objects.put(object_key, PERSON.encode())
    await world.sql.run("UPDATE memory_items SET object_key = ? WHERE tier = 'cold'", object_key)
    assert await world.memory().get("order_history", "one") == PERSON
    assert (await world.kv.list("")).keys == []
    assert [row["value"] for row in world.rows() if row["tier"] == "cold"] == [None]
