"""Scopes without any store: their kinds, ids and paths, and what they make of a statement."""

from __future__ import annotations

from hashlib import sha256

import pytest

from retain.errors import InvalidInput, UnknownScope
from retain.memory.scope import (
    BELOW,
    OF_USER,
    Reach,
    Scope,
    ScopeKind,
    UserPlace,
    View,
    holding,
    reach_of,
    registration,
)
from retain.memory.scope import user_scope_id as user_id_of
from retain.ports import Row


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:40]


TENANT = Scope("acme")
HOUSE = Scope("acme", house="sales")
AGENT = Scope("acme", "sdr", "sales")
USER = Scope("acme", "sdr", "sales", user_id="ann")
INSTANCE = Scope("acme", "sdr", "sales", "main", "ann")
TENANTS_USER = Scope("acme", user_id="ann")


@pytest.mark.parametrize(
    ("scope", "kind", "scope_id", "parent"),
    [
        (TENANT, "tenant", "tenant", None),
        (HOUSE, "house", "house.sales", TENANT),
        (AGENT, "agent", "agent.sdr", HOUSE),
        (USER, "user", f"user.{digest('sdr:ann')}", AGENT),
        (INSTANCE, "instance", f"instance.{digest('sdr:main')}", USER),
        (TENANTS_USER, "user", f"user.{digest(':ann')}", TENANT),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_scope_has_a_kind_an_id_and_a_parent(
    scope: Scope, kind: ScopeKind, scope_id: str, parent: Scope | None
) -> None:
    assert (scope.kind, scope.scope_id, scope.parent) == (kind, scope_id, parent)


def test_a_scope_sees_itself_and_its_ancestors() -> None:
    path = [INSTANCE, USER, AGENT, HOUSE, TENANT]
    assert INSTANCE.path() == path
    assert [INSTANCE.around(scope.kind) for scope in path] == path
    with pytest.raises(InvalidInput) as raised:
        HOUSE.around("agent")
    assert raised.value.code == "invalid_scope"


def test_the_id_of_a_user_s_scope_follows_from_its_parent() -> None:
    assert [user_id_of(parent, "ann") for parent in ("agent.sdr", "tenant", None, "house.sales")] == [
        USER.scope_id,
        *[TENANTS_USER.scope_id] * 3,
    ]


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({"house": "no house"}, "invalid_house"),
        ({"instance_id": "main"}, "invalid_scope"),
        ({"house": "sales", "user_id": "ann"}, "invalid_scope"),
        ({"user_id": ""}, "invalid_user"),
        ({"agent_type": "no agent"}, "invalid_agent_type"),
        ({"agent_type": "sdr", "instance_id": ""}, "invalid_instance_id"),
    ],
)
def test_a_scope_that_cannot_be_is_refused(parts: dict[str, str], code: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Scope("acme", **parts)
    assert raised.value.code == code


def test_a_view_has_each_visible_scope_once_innermost_first() -> None:
    view = View(INSTANCE, (TENANTS_USER,))
    assert (view.tenant_id, view.starts) == ("acme", (INSTANCE, TENANTS_USER))
    assert view.nodes == (INSTANCE, USER, AGENT, HOUSE, TENANT, TENANTS_USER)
    for also in (Scope("other"), Scope("acme", user_id="bob")):
        with pytest.raises(InvalidInput) as raised:
            View(USER, (also,))
        assert raised.value.code == "invalid_scope"


def test_a_reach_is_one_condition_in_sql_and_in_the_vector_index() -> None:
    some, whole = Reach("acme", ("agent.sdr", "tenant")), Reach("acme", ("tenant",), whole=True)
    assert some.predicate("r") == (
        "+r.tenant_id = ? AND +r.scope_id IN (SELECT value FROM json_each(?))",
        ("acme", '["agent.sdr", "tenant"]'),
    )
    assert whole.predicate("r") == ("+r.tenant_id = ?", ("acme",))
    assert some.vector_filter() == {"tenant_id": "acme", "scope_id": {"$in": ["agent.sdr", "tenant"]}}
    assert whole.vector_filter() == {"tenant_id": "acme"}


def test_what_a_place_holds_is_at_or_below_it() -> None:
    assert holding(AGENT, "r.scope_id") == (f"r.scope_id IN ({BELOW})", ("acme", "agent.sdr"))
    assert holding(TENANT, "r.scope_id") == ("?2 = 'tenant'", ("acme", "tenant"))
    assert holding(UserPlace("acme", "ann"), "r.scope_id") == (f"r.scope_id IN ({OF_USER})", ("acme", "ann"))
    assert "tenant_id = ?1 AND scope_id = ?2" in BELOW
    assert BELOW.replace("scope_id = ?2", "user_id = ?2") == OF_USER
    for names in (("no tenant", "ann"), ("acme", "")):
        with pytest.raises(InvalidInput):
            UserPlace(*names)


ROWS = (
    {"scope_id": "tenant", "parent_id": None},
    {"scope_id": "house.sales", "parent_id": "tenant"},
    {"scope_id": "agent.sdr", "parent_id": "house.sales"},
)


def test_users_and_instances_without_a_row_are_left_out_of_what_is_visible() -> None:
    user = {"scope_id": USER.scope_id, "parent_id": "agent.sdr"}
    instance = {"scope_id": INSTANCE.scope_id, "parent_id": USER.scope_id}
    ancestors = ("agent.sdr", "house.sales", "tenant")
    assert reach_of(View(INSTANCE), ROWS) == Reach("acme", ancestors)
    assert reach_of(View(INSTANCE), (*ROWS, user)) == Reach("acme", (USER.scope_id, *ancestors))
    assert reach_of(View(INSTANCE), (*ROWS, user, instance)) == Reach(
        "acme", (INSTANCE.scope_id, USER.scope_id, *ancestors)
    )


@pytest.mark.parametrize(
    ("scope", "rows"),
    [
        pytest.param(AGENT, ROWS[:2], id="the agent has no row"),
        pytest.param(HOUSE, ROWS[1:2], id="the tenant has no row"),
        pytest.param(Scope("acme", "sdr", "other"), ROWS, id="the agent moved to another house"),
        pytest.param(TENANT, ROWS[:2], id="D1 knows further ancestors"),
        pytest.param(INSTANCE, (*ROWS, {"scope_id": INSTANCE.scope_id, "parent_id": "agent.sdr"}), id="now of a user"),
    ],
)
def test_a_scope_that_d1_does_not_have_as_it_is_is_refused(scope: Scope, rows: tuple[Row, ...]) -> None:
    with pytest.raises(UnknownScope):
        reach_of(View(scope), rows)


def test_a_scope_is_registered_after_its_ancestors_and_only_a_user_s_row_names_the_user() -> None:
    assert [values for _, values in registration(INSTANCE)] == [
        ("acme", "tenant", None, "tenant", None),
        ("acme", "house.sales", "tenant", "house", None),
        ("acme", "agent.sdr", "house.sales", "agent", None),
        ("acme", USER.scope_id, "agent.sdr", "user", "ann"),
        ("acme", INSTANCE.scope_id, USER.scope_id, "instance", None),
    ]
