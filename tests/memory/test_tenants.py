"""The register of tenants: a tenant that does not exist is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from retain.errors import InvalidInput, NotFound, Unavailable
from retain.host.clock import ManualClock
from retain.tenants.register import Tenants
from tests.support.databases import migrated_d1
from tests.support.faults import Faults

MINUTE_MS = 60_000


class Register:
    """A register on a D1 that can be down."""

    def __init__(self) -> None:
        self.sql = migrated_d1()
        self.clock = ManualClock()
        self.faults = Faults(lambda owner: None)
        self.tenants = Tenants(self.faults.wrap("sql", self.sql, self.faults.life("entry")), self.clock)

    @property
    def asked(self) -> int:
        """Return the number of calls to D1."""
        return sum(point == "sql.run" for _, point in self.faults.trace)

    def close(self) -> None:
        self.sql.close()


@pytest.fixture
def register() -> Iterator[Register]:
    with closing(Register()) as made:
        yield made


async def test_a_tenant_is_registered_once(register: Register) -> None:
    assert await register.tenants.register("acme") is True
    assert await register.tenants.register("acme") is False
    [row] = (await register.sql.run("SELECT created_at_ms FROM tenants WHERE tenant_id = 'acme'")).rows
    assert row["created_at_ms"] == register.clock()
    assert await register.tenants.require("acme") == "acme"


async def test_the_default_tenant_exists_from_the_beginning(register: Register) -> None:
    assert await register.tenants.require("default") == "default"


async def test_an_unknown_tenant_is_not_found_until_it_is_registered(register: Register) -> None:
    for _ in range(2):
        with pytest.raises(NotFound) as raised:
            await register.tenants.require("acme")
        assert raised.value.code == "unknown_tenant"
        assert "PUT /admin/tenants/acme" in raised.value.message
    await register.tenants.register("acme")
    assert await register.tenants.require("acme") == "acme"


@pytest.mark.parametrize("tenant", ["", "*", "Acme", "a:b", "-a", "a" * 41, "a/b", "a\n", "%2e"])
async def test_an_invalid_tenant_id_is_refused_without_asking_d1(register: Register, tenant: str) -> None:
    for refuse in (register.tenants.require, register.tenants.register):
        with pytest.raises(InvalidInput) as raised:
            await refuse(tenant)
        assert raised.value.code == "invalid_tenant"
    assert register.asked == 0


async def test_a_tenant_that_was_seen_is_not_looked_up_again_for_a_minute(register: Register) -> None:
    await register.tenants.require("default")
    register.faults.down.add("sql")
    register.clock.advance(MINUTE_MS - 1)
    assert await register.tenants.require("default") == "default"
    register.clock.advance(1)
    with pytest.raises(Unavailable):
        await register.tenants.require("default")
    register.faults.down.clear()
    before = register.asked
    await register.tenants.require("default")
    await register.tenants.require("default")
    assert register.asked == before + 1


async def test_a_limit_is_of_one_tenant(register: Register) -> None:
    for tenant in ("acme", "beta"):
        await register.tenants.register(tenant)
        register.clock.advance(1)
    await register.tenants.limit("beta", max_memories_per_user=7)
    for tenant, most in (("acme", None), ("beta", 7)):
        shown = await register.tenants.show(tenant)
        assert (shown.tenant, shown.max_memories_per_user) == (tenant, most)
        assert await register.tenants.max_memories_per_user(tenant) == most
