"""A deployment behind Cloudflare Access, through the whole Worker: signed tokens, and certificates over real HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import jwt
import pytest

from tests.admin.access_team import AUDIENCE, ISSUER, NOW_S, Team
from tests.shell.guarded_routes import ACCOUNT
from tests.shell.platform import js
from tests.shell.worker import Worker, serving

OWNER = "user@example.com"
"""The owner of every tenant whom the setting names."""


@asynccontextmanager
async def guarded_worker(
    team: Team, monkeypatch: pytest.MonkeyPatch, tenants: Sequence[str] = (), **variables: str
) -> AsyncIterator[Worker]:
    """Serve a deployment behind Access, for which the team's domain is the local server. tenants: are registered."""
    fetch = js.fetch

    async def resolved(url: str, options: object) -> object:
        return await fetch(url.replace(ISSUER, team.origin), options)

    monkeypatch.setattr(js, "fetch", resolved)
    settings = {
        "RETAIN_ENVIRONMENT": "production",
        "ACCESS_TEAM_DOMAIN": "acme.cloudflareaccess.com",
        "ACCESS_AUDIENCE": AUDIENCE,
        "OWNERS": f"email:{OWNER}",
        "AGENT_MEMORY_ACCOUNT": ACCOUNT,
    }
    async with serving(**{**settings, **variables}) as worker:
        for tenant in tenants:
            assert (await worker.request("PUT", f"/admin/tenants/{tenant}", {}, headers=token(team))).status == 201
        yield worker


def token(team: Team, header: str = "", /, **claims: object) -> dict[str, str]:
    """Return the header of a request that Access let through: of the owner, unless the claims name somebody else.

    header: a text that the token's own header has besides.
    """
    named = {"aud": [AUDIENCE], "iss": ISSUER, "email": OWNER, "sub": "1", "type": "app"}
    times = {"iat": NOW_S - 10, "nbf": NOW_S - 10, "exp": NOW_S + 3600}
    payload = json.dumps({**named, **times, **claims}).encode()
    signed = jwt.api_jws.encode(
        payload, team.keys["current"], algorithm="RS256", headers={"kid": "current", "note": header}
    )
    return {"cf-access-jwt-assertion": signed}
