"""Rates: how many requests a caller, and a tenant, may send in a minute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from retain.errors import RateLimited
from retain.ports import RateLimiter

PERIOD_S: Final = 60
"""The period of both bindings in `wrangler.toml`: after it, a caller that was refused is counted from zero."""


class Unlimited:
    """A limiter that lets everything pass: of a deployment without the binding."""

    async def allow(self, key: str) -> bool:  # noqa: ARG002 -- the same for each
        """Return True."""
        return True


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of a deployment. callers: of each API key and each person. tenants: of everybody in a tenant together."""

    callers: RateLimiter = field(default_factory=Unlimited)
    tenants: RateLimiter = field(default_factory=Unlimited)

    async def check_caller(self, caller: str) -> None:
        """Count a request of a caller. Raises: RateLimited (code `rate_limited`)."""
        if not await self.callers.allow(caller):
            raise _too_many("this caller")

    async def check_tenant(self, tenant_id: str) -> None:
        """Count a request to a tenant. Raises: RateLimited (code `rate_limited`)."""
        if not await self.tenants.allow(f"tenant:{tenant_id}"):
            raise _too_many("this tenant")


def _too_many(whose: str) -> RateLimited:
    return RateLimited(
        f"too many requests of {whose}: try again after a minute", code="rate_limited", retry_after_s=PERIOD_S
    )
