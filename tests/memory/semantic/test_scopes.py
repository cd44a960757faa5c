"""Scope is structural: a scope and its ancestors are visible; only what is at or below the scope may be changed.

Invariant 3: a search or delete without a scope cannot be expressed, and nothing crosses scopes, whatever the index returns.
"""

from __future__ import annotations

import ast
import inspect
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from retain.limits.storage import utf8_bytes
from retain.limits.vector_filter import matches
from retain.memory.recall.recall import Recall, RecallQuery
from retain.memory.recall.sources.statistics import MAX_SCOPES
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.vector_names import vector_namespace
from retain.memory.scope import CHAIN, Reach, Scope, View, user_scope_id
from retain.memory.semantic import SemanticMemory
from tests.memory.semantic.agreement import check_agreement
from tests.memory.semantic.counting import CountingSql
from tests.memory.semantic.indexes import HostileIndex, WatchingIndex
from tests.memory.semantic.substrate import AGENT, HOUSE, INSTANCE, PERSON, TENANT, Substrate
from tests.ports import raises

SECRET = "The vault code of Emil is 4711."

tenants = st.sampled_from(["acme", "acme-2", "a"])
houses = st.sampled_from([None, "sales", "support", "sdr"])
agents = st.sampled_from(["sdr", "triage", "sales"])
"""An agent and a house may have the same name."""
instances = st.sampled_from(["desk", "sdr", "a.b-c_D"])


@st.composite
def forests(draw: st.DrawFn) -> list[Scope]:
    """Draw scopes of several tenants; an agent is in one house, or in none, for the whole test."""
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
    """Return the scopes that are visible from a scope, as documented: itself and its ancestors."""
    around = [Scope(scope.tenant_id)]
    if scope.house is not None:
        around.append(Scope(scope.tenant_id, house=scope.house))
    if scope.agent_type is not None:
        around.append(Scope(scope.tenant_id, scope.agent_type, scope.house))
    return {key_of(one) for one in [*around, scope]}


@dataclass(frozen=True)
class Forest:
    """Scopes with one memory each, all with the same words. stored: the scope of each id."""

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
async def test_a_recall_sees_its_scope_and_the_ancestors_whatever_the_index_returns(
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
async def test_only_what_is_at_or_below_the_scope_can_be_listed_changed_and_deleted_and_what_is_visible_read(
    scopes: list[Scope],
) -> None:
    with closing(Substrate()) as substrate:
        forest = await Forest.planted(substrate, scopes)
        for scope in scopes:
            memory, changeable = substrate.memory(scope), forest.changeable(scope)
            assert {record.id for record in await substrate.listed(scope)} == changeable, scope
            readable = changeable | forest.visible(scope)
            for record_id in forest.stored.keys() - changeable:
                await _check_out_of_reach(memory, record_id)
                if record_id in readable:
                    assert (await memory.get(record_id))[0].id == record_id
                else:
                    with raises(NotFound, code="no_such_memory"):
                        await memory.get(record_id)
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
    """Return whether the scope's agent is in the same house as in the other scopes."""
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


async def test_an_agent_that_moved_immediately_sees_its_new_house_and_not_its_old_one(substrate: Substrate) -> None:
    await substrate.store("Sales closes at five.", Scope("acme", house="sales"))
    await substrate.store("Support closes at six.", Scope("acme", house="support"))
    await substrate.store("Emil closes the window.", Scope("acme", "sdr", "sales"))
    moved = Scope("acme", "sdr", "support")
    assert sorted(await substrate.found("closes", moved)) == ["Emil closes the window.", "Support closes at six."]
    await substrate.store("Emil moved.", moved)
    assert await substrate.contents(HOUSE) == ["Sales closes at five."]
    assert len(await substrate.contents(Scope("acme", house="support"))) == 3


async def test_a_house_without_records_and_agents_is_refused(substrate: Substrate) -> None:
    await substrate.store("Emil likes tea.", TENANT)
    memory, wanted = substrate.memory(HOUSE), RecallQuery("tea")
    with raises(NotFound, code="unknown_scope"):
        await memory.search(wanted, register=False)
    assert await substrate.rows("SELECT 1 FROM scopes WHERE kind = 'house'") == []
    assert await substrate.found("tea", AGENT) == ["Emil likes tea."]
    assert len(await memory.search(wanted, register=False)) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM scopes WHERE scope_id = 'agent.sdr'",
        "DELETE FROM scopes WHERE scope_id = 'house.sales'",
        "DELETE FROM scopes WHERE scope_id = 'tenant'",
        "UPDATE scopes SET parent_id = 'house.support' WHERE scope_id = 'agent.sdr'",
        "UPDATE scopes SET parent_id = 'tenant' WHERE scope_id = 'agent.sdr'",
        "UPDATE scopes SET parent_id = 'agent.triage' WHERE kind = 'instance'",
    ],
    ids=["no agent", "no house", "no tenant", "another house", "no house around", "another agent"],
)
async def test_a_recall_is_refused_unless_its_chain_is_known_and_ends_in_its_tenant(
    substrate: Substrate, damage: str
) -> None:
    for scope in (TENANT, INSTANCE, Scope("acme", "triage", "support")):
        await substrate.store(SECRET, scope)
    reader = Recall(View(INSTANCE), substrate.sql, substrate.index, substrate.embedder, substrate.clock)
    assert len((await reader.search(RecallQuery(SECRET))).hits) == 1  # equal contents are shown once
    await substrate.d1.run(damage.format(instance=INSTANCE.scope_id.partition(".")[2]))
    with raises(NotFound, code="unknown_scope"):
        await reader.search(RecallQuery(SECRET))


async def test_an_instance_without_a_row_has_no_records_and_hides_none(substrate: Substrate) -> None:
    await substrate.store(SECRET, AGENT)
    reader = Recall(View(INSTANCE), substrate.sql, substrate.index, substrate.embedder, substrate.clock)
    assert len((await reader.search(RecallQuery(SECRET))).hits) == 1


async def test_the_chain_is_walked_in_the_round_trip_that_reads_the_statistics(substrate: Substrate) -> None:
    await substrate.store(SECRET, INSTANCE)
    substrate.sql = counting = CountingSql(substrate.d1)
    await substrate.found(SECRET, INSTANCE)
    assert counting.trips == 2  # chain, statistics and candidates; their neighbours and records
    [first, *_] = counting.statements
    assert first == (CHAIN, ("acme", json.dumps([scope.scope_id for scope in INSTANCE.path()])))
    assert not [sql for sql, _ in counting.statements if "INSERT" in sql]


@pytest.mark.parametrize(
    ("scope_id", "parent_id", "kind"),
    [
        ("tenant", "tenant", "tenant"),
        ("tenant", "house.sales", "tenant"),
        ("acme", None, "tenant"),
        ("house.sales", None, "house"),
        ("house.sales", "house.sales", "house"),
        ("house.sales", "agent.sdr", "house"),
        ("agent.sdr", None, "agent"),
        ("agent.sdr", "agent.sdr", "agent"),
        ("agent.sdr", "instance.1", "agent"),
        ("agent.sdr", "house.", "agent"),
        ("instance.1", None, "instance"),
        ("instance.1", "tenant", "instance"),
        ("instance.1", "instance.1", "instance"),
        ("agent.sdr", "tenant", "house"),
        ("house.sales", "tenant", "agent"),
        ("agent.", "tenant", "agent"),
    ],
)
async def test_no_row_can_make_an_endless_chain(
    substrate: Substrate, scope_id: str, parent_id: str | None, kind: str
) -> None:
    insert = "INSERT INTO scopes (tenant_id, scope_id, parent_id, kind) VALUES ('acme', ?, ?, ?)"
    with raises(Conflict, code="constraint"):
        await substrate.d1.run(insert, scope_id, parent_id, kind)


hostile = st.sampled_from(
    [
        "tenant",
        "%",
        "*",
        "agent.sdr' OR 1=1 --",
        '"]} OR 1',
        "agent.sdr",
        "house.sales",
        "agent.sd",
        "Agent.sdr",
        "a" * 65,
    ]
) | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=70)
"""Without NUL, where SQLite ends a text that it reads from JSON: no scope's id has one."""


@settings(max_examples=60, deadline=None)
@given(
    reach=st.builds(Reach, tenants, st.lists(hostile, max_size=4, unique=True).map(tuple)),
    rows=st.lists(st.tuples(tenants | hostile, hostile), min_size=1, max_size=12),
)
async def test_the_sql_predicate_and_the_vector_filter_select_the_same(
    reach: Reach, rows: list[tuple[str, str]]
) -> None:
    """Scope ids have up to 64 bytes, which is all that the vector index compares."""
    short = Reach(reach.tenant_id, tuple(one for one in reach.scope_ids if len(one.encode()) <= 64))
    rows = [row for row in rows if max(len(text.encode()) for text in row) <= 64]
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE entries (number, tenant_id, scope_id)")
        database.executemany("INSERT INTO entries VALUES (?, ?, ?)", [(n, *row) for n, row in enumerate(rows)])
        where, values = short.predicate("e")
        selected = {n for (n,) in database.execute(f"SELECT number FROM entries e WHERE {where}", values)}
    criteria = short.vector_filter()
    found = {n for n, (tenant, scope) in enumerate(rows) if matches(criteria, {"tenant_id": tenant, "scope_id": scope})}
    wanted = {n for n, (tenant, scope) in enumerate(rows) if tenant == short.tenant_id and scope in short.scope_ids}
    assert selected == found == wanted


def test_only_the_runtime_makes_scopes() -> None:
    """No tool, route or model adapter constructs one: they get it from the modules listed here."""
    makers = set()
    for path in Path("workers").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Scope":
                makers.add(path.relative_to("workers/retain").as_posix())
    assert makers == {
        "admin/context.py",
        "agent_memory/names.py",  # from the profile of a checked path
        "agents/identity.py",
        "agents/toolbox.py",  # for a user whom several agents share
        "cli/moving/memory.py",  # on the reader's machine, for the lines of an import, which the Worker checks
        "evaluation/case_run.py",  # for a case's scratch tenant
        "ingest/jobs.py",  # from the job's row
        "memory/writing/calls.py",  # from what another object of the tenant sent its writer
    }


async def test_a_sub_agent_has_its_own_scope(substrate: Substrate) -> None:
    caller, delegate = Scope("acme", "order_triage"), Scope("acme", "refund_decision")
    await substrate.store(SECRET, delegate)
    assert await substrate.found(SECRET, caller) == []
    assert await substrate.found(SECRET, delegate) == [SECRET]


async def test_equal_content_is_one_record_per_scope(substrate: Substrate) -> None:
    ids = [await substrate.store(SECRET, scope) for scope in (TENANT, HOUSE, AGENT, INSTANCE, AGENT, TENANT)]
    assert len(set(ids)) == 4
    assert (ids[4], ids[5]) == (ids[2], ids[0])


@pytest.mark.parametrize(
    ("made", "first", "kind"), [(SemanticMemory, "scope", "Scope"), (Recall, "view", "View"), (View, "scope", "Scope")]
)
def test_a_delete_or_search_without_scope_is_refused_since_no_memory_can_be_made_without_one(
    made: type, first: str, kind: str
) -> None:
    parameters = inspect.signature(made).parameters
    assert next(iter(parameters)) == first
    assert parameters[first].default is inspect.Parameter.empty
    assert parameters[first].annotation == kind


def test_a_view_has_one_tenant_and_at_most_one_user() -> None:
    ann, bob = Scope("acme", user_id="ann"), Scope("acme", "sdr", user_id="bob")
    for scope, other in ((ann, bob), (bob, ann), (ann, Scope("rival", user_id="ann"))):
        with raises(InvalidInput, code="invalid_scope"):
            View(scope, (other,))


def test_a_user_s_scope_is_named_by_agent_and_user_together() -> None:
    scopes = [
        Scope("acme", user_id="ann"),
        Scope("acme", user_id="bob"),
        Scope("acme", "sdr", user_id="ann"),
        Scope("acme", "sdr", "sales", user_id="ann"),
        Scope("acme", "clerk", user_id="ann"),
        Scope("acme", "sdr", instance_id="ann"),
    ]
    ids = [scope.scope_id for scope in scopes]
    assert ids[2] == ids[3]  # whatever house the agent is in
    assert len(set(ids)) == 5
    assert [
        user_scope_id(scope.parent.scope_id if scope.parent else None, scope.user_id or "") for scope in scopes[:5]
    ] == ids[:5]
    assert [node.kind for node in Scope("acme", "sdr", "sales", "main", "ann").path()] == [
        "instance",
        "user",
        "agent",
        "house",
        "tenant",
    ]
    with raises(InvalidInput, code="invalid_scope"):
        Scope("acme", house="sales", user_id="ann")
    assert inspect.signature(list_records).parameters["place"].default is inspect.Parameter.empty


def test_no_operation_accepts_a_scope_a_tenant_or_the_index_filter() -> None:
    for name, method in inspect.getmembers(SemanticMemory, inspect.isfunction):
        if not name.startswith("_"):
            parameters = set(inspect.signature(method).parameters)
            assert not parameters & {"scope", "tenant", "tenant_id", "agent_type", "namespace", "house"}, name
    assert set(inspect.signature(RecallQuery).parameters) == {
        *(
            "text",
            "top_k",
            "as_of_ms",
            "valid_at_ms",
            "filter",
            "below",
            "min_score",
            "context",
            "today_ms",
            "runners_up",
        )
    }


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
    """Such a name is looked up in the record's own metadata, which does not have it."""
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
    """The vector index compares 64 bytes of a namespace and of a string: both always distinguish two tenants."""
    spaces = [vector_namespace(tenant) for tenant in (first, second)]
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
        st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True).filter(lambda name: name not in (".", "..")),
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
def test_a_cursor_that_no_listing_returned_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Listing(cursor=cursor)
    assert raised.value.code == "invalid_cursor"


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_listing_has_a_limit(limit: int) -> None:
    with pytest.raises(InvalidInput) as raised:
        Listing(limit=limit)
    assert raised.value.code == "invalid_limit"


async def test_a_recall_leaves_no_scope_of_an_erased_tenant(substrate: Substrate) -> None:
    await substrate.d1.run("INSERT INTO erased_tenants (tenant_id, last_run_id, closed) VALUES ('acme', '', 1)")
    with raises(NotFound, code="unknown_scope"):
        await substrate.found(SECRET, AGENT)
    assert await substrate.rows("SELECT * FROM scopes") == []
