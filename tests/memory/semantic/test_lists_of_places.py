"""Lists of a part of a tenant: the same records as in the tenant's list, however many scopes the part has."""

from __future__ import annotations

from typing import Any

import pytest

from retain.memory.records.listing import FEW_SCOPES, Listing, list_records
from retain.memory.scope import Scope, UserPlace
from tests.memory.semantic.substrate import HOUSE, TENANT, Substrate

USERS = FEW_SCOPES + 3
"""So that the first agent has more scopes than are read one by one."""
MANY, OTHER = Scope("acme", "sdr"), Scope("acme", "clerk")
PLACES: dict[str, tuple[Scope | UserPlace, tuple[str, ...]]] = {
    "an agent with many users": (MANY, ("agent.sdr", "user.sdr")),
    "an agent without users": (OTHER, ("agent.clerk",)),
    "a house": (HOUSE, ("house",)),
    "a user of an agent": (Scope("acme", "sdr", user_id="u-3"), ("user.sdr/u-3",)),
    "a user of the tenant": (Scope("acme", user_id="u-3"), ("user./u-3",)),
    "a user everywhere": (UserPlace("acme", "u-3"), ("user.sdr/u-3", "user./u-3")),
    "the tenant": (TENANT, ("",)),
}


async def _filled(substrate: Substrate) -> list[tuple[str, str]]:
    """Store a record in each scope, three times over; return the places and contents in order."""
    scopes: dict[str, Scope] = {"agent.sdr": MANY, "agent.clerk": OTHER, "house": HOUSE, "tenant": TENANT}
    for number in range(USERS):
        scopes[f"user.sdr/u-{number}"] = Scope("acme", "sdr", user_id=f"u-{number}")
        scopes[f"user./u-{number}"] = Scope("acme", user_id=f"u-{number}")
    stored = []
    for turn in range(3):
        for place, scope in scopes.items():
            content = f"The hat of {place.replace('/', ' ')} has number {turn}."
            await substrate.store(content, scope, metadata={"turn": turn, "even": turn % 2 == 0})
            stored.append((place, content))
    return stored


@pytest.mark.parametrize("limit", [2, 50])
@pytest.mark.parametrize("place", PLACES)
async def test_a_place_lists_what_the_tenant_lists_of_it(substrate: Substrate, place: str, limit: int) -> None:
    stored = await _filled(substrate)
    wanted, beginnings = PLACES[place]
    expected = [content for where, content in stored if any(where.startswith(one) for one in beginnings)]
    assert await _listed(substrate, wanted, limit) == expected
    now = substrate.clock()
    assert await _listed(substrate, wanted, limit, held_at_ms=now) == expected
    third = [content for content in expected if content.endswith("2.")]
    assert await _listed(substrate, wanted, limit, filter={"turn": 2}, held_at_ms=now) == third
    assert await _listed(substrate, wanted, limit, filter={"turn": {"$gt": 1}}) == third


async def _listed(substrate: Substrate, place: Scope | UserPlace, limit: int, **wanted: Any) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page, cursor = await list_records(substrate.d1, place, Listing(limit=limit, cursor=cursor, **wanted))
        found += [record.content for record in page]
        if cursor is None:
            return found
        assert len(page) == limit
