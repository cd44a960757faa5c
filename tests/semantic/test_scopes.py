"""Scope is structural: what is visible is the scope and what is around it, what may be changed lies at or below it.

Invariant 3: a search or delete without a scope cannot be expressed, and nothing crosses, whatever the index returns.
"""

from __future__ import annotations

import inspect
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.errors import InvalidInput, LimitExceeded, NotFound
from retain.limits import utf8_bytes
from retain.memory.recall.candidates import MAX_SCOPES
from retain.memory.recall.recall import Recall, RecallQuery
from retain.memory.records.listing import Listing, list_records
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from tests.semantic.agreement import check_agreement
from tests.semantic.indexes import HostileIndex, WatchingIndex
from tests.semantic.substrate import AGENT, HOUSE, INSTANCE, PERSON, TENANT, Substrate

SECRET = "The vault code of Emil is 4711."

tenants = st.sampled_from(["acme", "acme-2", "a"])
houses = st.sampled_from([None, "sales", "support", "sdr"])
agents = st.sampled_from(["sdr", "triage", "sales"])
"""An agent and a house may have the same name."""
instances = st.sampled_from(["desk", "sdr", "a.b-c_D"])


@st.composite
def forests(draw: st.DrawFn) -> list[Scope]:
    """Draw scopes of several tenants; an agent is in one house, or in none, for as long as the test lasts."""
    found: list[Scope] = []
    for tenant in draw(st.lists(tenants, min_size=1, max_size=2, unique=True)):
        house_of = {agent: draw(houses) for agent in ("sdr", "triage", "sales")}
        kinds = draw(st.lists(st.sampled_from(["tenant", "house", "agent", "instance"]), min_size=1, max_size=4))
        for kind in kinds:
            agent = draw(agents)
            scope = {
                "tenant": Scope(tenant),
                "house": Scope(tenant, house=draw(houses.filter(bool))),
                "agent": Scope(tenant, agent, house_of[agent]),
                "instance": Scope(tenant, agent, house_of[agent], draw(instances)),
            }[kind]
            if scope not in found:
                found.append(scope)
    return found


def key_of(scope: Scope) -> tuple[str, str]:
    return scope.tenant_id, scope.scope_id


def visible_from(scope: Scope) -> set[tuple[str, str]]:
    """Return the scopes that are visible from a scope, as the documentation says: itself and what is around it."""
    around = [Scope(scope.tenant_id)]
    if scope.house is not None:
        around.append(Scope(scope.tenant_id, house=scope.house))
    if scope.agent_type is not None:
        around.append(Scope(scope.tenant_id, scope.agent_type, scope.house))
    return {key_of(one) for one in [*around, scope]}


@dataclass(frozen=True)
class Forest:
    """Scopes with one memory each, all of equal words. stored: the scope of each id."""

    substrate: Substrate
    stored: dict[str, Scope]

    @classmethod
    async def planted(cls, substrate: Substrate, scopes: list[Scope], *, copies: int = 1) -> Forest:
        stored: dict[str, Scope] = {}
        for number, scope in enumerate(scopes * copies):
            stored[await substrate.store(f"{SECRET} Note {number}.", scope)] = scope
        substrate.index = HostileIndex(substrate.vectors)
        return cls(substrate, stored)

    def visible(self, scope: Scope) -> set[str]:
        return {found for found, where in self.stored.items() if key_of(where) in visible_from(scope)}

    def changeable(self, scope: Scope) -> set[str]:
        return {found for found, where in self.stored.items() if key_of(scope) in visible_from(where)}

    async def recalled(self, scope: Scope, **wanted: Any) -> set[str]:
        return {hit.record.id for hit in await self.substrate.hits(SECRET, scope, top_k=50, **wanted)}


@settings(max_examples=40, deadline=None)
@given(scopes=forests(), stranger=forests())
async def test_a_recall_sees_its_scope_and_what_is_around_it_whatever_the_index_returns(
    scopes: list[Scope], stranger: list[Scope]
) -> None:
    with closing(Substrate()) as substrate:
        forest = await Forest.planted(substrate, scopes)
        consistent = [scope for scope in stranger if _houses_agree(scope, scopes)]
        for scope in [*scopes, *consistent]:  # also from scopes that never stored anything
            assert await forest.recalled(scope) == forest.visible(scope), scope
            assert await forest.recalled(scope, below=True) == forest.changeable(scope), scope


@settings(max_examples=25, deadline=None)
@given(scopes=forests())
async def test_what_can_be_read_listed_changed_and_deleted_lies_at_or_below_the_scope(scopes: list[Scope]) -> None:
    with closing(Substrate()) as substrate:
        forest = await Forest.planted(substrate, scopes)
        for scope in scopes:
            memory, changeable = substrate.memory(scope), forest.changeable(scope)
            assert {record.id for record in await substrate.listed(scope)} == changeable, scope
            for record_id in forest.stored.keys() - changeable:
                await _check_out_of_reach(memory, record_id)
            for record_id in changeable:
                record, events = await memory.get(record_id)
                assert key_of(forest.stored[record_id]) == (record.tenant_id, record.scope_id)
                assert len(events) >= 1
                assert (await memory.edit(record_id, {"importance": 0.7}, PERSON)).importance == 0.7
                await memory.invalidate(record_id, substrate.clock(), PERSON)
                await memory.restore(record_id, PERSON)
        untouched = {record_id for record_id, scope in forest.stored.items() if scope not in scopes}
        assert not untouched
        for scope in scopes:
            for record_id in forest.changeable(scope):
                await substrate.memory(scope).delete(record_id, PERSON)
                del forest.stored[record_id]
            for other in scopes:
                assert await forest.recalled(other) == forest.visible(other)
        substrate.index = substrate.vectors
        await check_agreement(substrate)


async def _check_out_of_reach(memory: SemanticMemory, record_id: str) -> None:
    attempts = (
        lambda: memory.get(record_id),
        lambda: memory.edit(record_id, {"content": "It is open."}, PERSON),
        lambda: memory.invalidate(record_id, 0, PERSON),
        lambda: memory.restore(record_id, PERSON),
        lambda: memory.delete(record_id, PERSON),
    )
    for attempt in attempts:
        with pytest.raises(NotFound) as raised:
            await attempt()
        assert raised.value.code == "no_such_memory"


def _houses_agree(scope: Scope, scopes: list[Scope]) -> bool:
    """Whether the scope's agent is in the house in which the others have it."""
    known = {(one.tenant_id, one.agent_type): one.house for one in scopes if one.agent_type is not None}
    return scope.agent_type is None or known.get((scope.tenant_id, scope.agent_type), scope.house) == scope.house


@pytest.mark.parametrize(
    ("reader", "sees"),
    [
        (TENANT, ["tenant"]),
        (HOUSE, ["house", "tenant"]),
        (AGENT, ["agent", "house", "tenant"]),
        (INSTANCE, ["agent", "house", "instance", "tenant"]),
        (Scope("acme", "sdr", "sales", "desk-2"), ["agent", "house", "tenant"]),
        (Scope("acme", "triage", "sales"), ["house", "tenant"]),
        (Scope("acme", "triage"), ["tenant"]),
        (Scope("acme", house="support"), ["tenant"]),
        (Scope("acme", "triage", "sales", "desk-1"), ["house", "tenant"]),
        (Scope("acme-2", "sdr", "sales"), []),
    ],
    ids=lambda value: ".".join(filter(None, (value.tenant_id, value.scope_id))) if isinstance(value, Scope) else None,
)
async def test_private_and_shared_memories_are_seen_as_documented(
    substrate: Substrate, reader: Scope, sees: list[str]
) -> None:
    for name, scope in {"tenant": TENANT, "house": HOUSE, "agent": AGENT, "instance": INSTANCE}.items():
        await substrate.store(f"Emil likes the {name}.", scope)
    expected = [f"Emil likes the {name}." for name in sees]
    assert sorted(await substrate.found("What does Emil like?", reader)) == expected


async def test_an_agent_that_moved_sees_its_new_house_at_once_and_its_old_one_no_more(substrate: Substrate) -> None:
    await substrate.store("Sales closes at five.", Scope("acme", house="sales"))
    await substrate.store("Support closes at six.", Scope("acme", house="support"))
    await substrate.store("Emil closes the window.", Scope("acme", "sdr", "sales"))
    moved = Scope("acme", "sdr", "support")
    assert sorted(await substrate.found("closes", moved)) == ["Emil closes the window.", "Support closes at six."]
    await substrate.store("Emil moved.", moved)
    assert await substrate.contents(HOUSE) == ["Sales closes at five."]
    assert len(await substrate.contents(Scope("acme", house="support"))) == 3


async def test_a_sub_agent_has_a_scope_of_its_own(substrate: Substrate) -> None:
    caller, delegate = Scope("acme", "order_triage"), Scope("acme", "refund_decision")
    await substrate.store(SECRET, delegate)
    assert await substrate.found(SECRET, caller) == []
    assert await substrate.found(SECRET, delegate) == [SECRET]


async def test_equal_content_is_one_record_a_scope(substrate: Substrate) -> None:
    ids = [await substrate.store(SECRET, scope) for scope in (TENANT, HOUSE, AGENT, INSTANCE, AGENT, TENANT)]
    assert len(set(ids)) == 4
    assert (ids[4], ids[5]) == (ids[2], ids[0])


@pytest.mark.parametrize("made", [SemanticMemory, Recall])
def test_a_delete_or_search_without_scope_is_refused_since_no_memory_can_be_made_without_one(made: type) -> None:
    parameters = inspect.signature(made).parameters
    assert next(iter(parameters)) == "scope"
    assert parameters["scope"].default is inspect.Parameter.empty
    assert parameters["scope"].annotation in (Scope, "Scope")
    assert inspect.signature(list_records).parameters["scope"].default is inspect.Parameter.empty


def test_no_operation_takes_a_scope_a_tenant_or_the_indexs_own_filter() -> None:
    for name, method in inspect.getmembers(SemanticMemory, inspect.isfunction):
        if not name.startswith("_"):
            parameters = set(inspect.signature(method).parameters)
            assert not parameters & {"scope", "tenant", "tenant_id", "agent_type", "namespace", "house"}, name
    assert set(inspect.signature(RecallQuery).parameters) == {"text", "top_k", "as_of_ms", "filter", "below"}


@pytest.mark.parametrize(
    "wanted", [{}, {"filter": {"kind": {"$ne": "task"}}}, {"as_of_ms": 2**52}, {"below": True}], ids=str
)
async def test_a_search_that_omits_its_filter_is_refused_since_each_carries_one(
    substrate: Substrate, wanted: dict[str, Any]
) -> None:
    for scope in (TENANT, HOUSE, AGENT, Scope("other", "sdr", "sales")):
        await substrate.store(SECRET, scope)
    substrate.index = watching = WatchingIndex(substrate.vectors)
    await substrate.hits(SECRET, AGENT, **wanted)
    [asked] = watching.asked
    assert asked["namespace"] == "agent_memory_semantic:acme"
    scope_ids = ["agent.sdr"] if "below" in wanted else ["agent.sdr", "house.sales", "tenant"]
    assert asked["filter"]["tenant_id"] == "acme"
    assert sorted(asked["filter"]["scope_id"]["$in"]) == scope_ids


@pytest.mark.parametrize("name", ["tenant_id", "scope_id", "agent_type", "id", "number", "r.tenant_id", "content_hash"])
async def test_a_filter_cannot_name_a_scope_or_widen_it(substrate: Substrate, name: str) -> None:
    """Such a name is looked up in the record's own metadata, which has no such thing."""
    try:
        assert await substrate.found(SECRET, Scope("other"), filter={name: {"$ne": "acme"}}) == []
        await substrate.store(SECRET, Scope("other"), metadata={})
        assert await substrate.found(SECRET, Scope("other"), filter={name: "other"}) == []
    except InvalidInput as error:
        assert error.code == "invalid_filter"


@pytest.mark.parametrize(
    "parts",
    [
        {"tenant_id": ""},
        {"tenant_id": "*"},
        {"tenant_id": "%"},
        {"tenant_id": "acme:x"},
        {"tenant_id": "Acme"},
        {"tenant_id": "acme\n"},
        {"tenant_id": None},
        {"tenant_id": "acme", "agent_type": ""},
        {"tenant_id": "acme", "agent_type": "*"},
        {"tenant_id": "acme", "agent_type": "a.b"},
        {"tenant_id": "acme", "agent_type": "sdr\n"},
        {"tenant_id": "acme", "house": ""},
        {"tenant_id": "acme", "house": "*"},
        {"tenant_id": "acme", "house": "sales:x"},
        {"tenant_id": "acme", "house": "h" * 33},
        {"tenant_id": "acme", "agent_type": "sdr", "instance_id": ""},
        {"tenant_id": "acme", "agent_type": "sdr", "instance_id": "*"},
        {"tenant_id": "acme", "agent_type": "sdr", "instance_id": "a:b"},
        {"tenant_id": "acme", "agent_type": "sdr", "instance_id": "i" * 65},
        {"tenant_id": "acme", "instance_id": "desk"},
        {"tenant_id": "acme", "house": "sales", "instance_id": "desk"},
    ],
    ids=str,
)
def test_a_scope_with_an_empty_or_wildcard_part_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Scope(**parts)


ids = st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True)
names = st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True)


@given(first=ids, second=ids)
def test_two_tenants_with_ids_that_share_64_bytes_cannot_exist(first: str, second: str) -> None:
    """The vector index compares 64 bytes of a namespace and of a string: both always tell two tenants apart."""
    spaces = [Scope(tenant).vector_namespace for tenant in (first, second)]
    assert all(utf8_bytes(space) <= 64 for space in spaces)
    assert (spaces[0] == spaces[1]) == (first == second)
    for longer in (first.ljust(64, "x"), first.ljust(41, "x")):
        with pytest.raises(InvalidInput):
            Scope(longer)


_scopes = st.one_of(
    st.just(Scope("acme")),
    names.map(lambda house: Scope("acme", house=house)),
    st.builds(lambda agent, house: Scope("acme", agent, house), names, st.none() | names),
    st.builds(
        lambda agent, instance: Scope("acme", agent, None, instance),
        names,
        st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True),
    ),
)


@given(first=_scopes, second=_scopes)
def test_scopes_of_a_tenant_have_different_ids_within_64_bytes(first: Scope, second: Scope) -> None:
    assert utf8_bytes(first.scope_id) <= 64
    same = (first.kind, first.agent_type, first.instance_id) == (second.kind, second.agent_type, second.instance_id)
    if first.kind == second.kind == "house":
        same = first.house == second.house
    assert (first.scope_id == second.scope_id) == same


async def test_more_scopes_than_one_recall_searches_are_refused(substrate: Substrate) -> None:
    for number in range(MAX_SCOPES + 1):
        await substrate.store("Emil likes tea.", Scope("acme", f"agent_{number}"))
    with pytest.raises(LimitExceeded) as raised:
        await substrate.found("tea", TENANT, below=True)
    assert raised.value.code == "too_many_scopes"
    assert await substrate.found("tea", Scope("acme", "agent_7"), below=True) == ["Emil likes tea."]


async def test_a_listing_pages_through_one_scope_and_no_other(substrate: Substrate) -> None:
    for number in range(7):
        await substrate.store(f"Emil owns hat {number}.", (AGENT, HOUSE, Scope("acme-2", "sdr"))[number % 3])
    found: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        page, cursor = await list_records(substrate.d1, TENANT, Listing(limit=2, cursor=cursor))
        found += [record.content for record in page]
    assert cursor is None
    assert found == [f"Emil owns hat {number}." for number in (0, 1, 3, 4, 6)]


@pytest.mark.parametrize("cursor", ["", "-1", "1e3", "x", "٣", "1" * 17, "1;--"])
def test_a_cursor_that_no_listing_gave_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Listing(cursor=cursor)
    assert raised.value.code == "invalid_cursor"


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_listing_has_a_limit(limit: int) -> None:
    with pytest.raises(InvalidInput) as raised:
        Listing(limit=limit)
    assert raised.value.code == "invalid_limit"
