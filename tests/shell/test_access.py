"""A valid token of Cloudflare Access lets its bearer in, through the whole Worker; its certificates come over real HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.admin.access_team import AUDIENCE, ISSUER, NOW_S, Team
from tests.shell.platform import js
from tests.shell.worker import Worker, serving


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    served = Team()
    served.keys = {"current": rsa.generate_private_key(65537, 2048)}
    yield served
    served.close()


@pytest.fixture
async def guarded(team: Team, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    """A deployment behind Access, for which the team's domain is the local server."""
    fetch = js.fetch

    async def resolved(url: str, options: object) -> object:
        return await fetch(url.replace(ISSUER, team.origin), options)

    monkeypatch.setattr(js, "fetch", resolved)
    async with serving(
        RETAIN_ENVIRONMENT="production", ACCESS_TEAM_DOMAIN="acme.cloudflareaccess.com", ACCESS_AUDIENCE=AUDIENCE
    ) as worker:
        yield worker


def token(team: Team, **claims: object) -> dict[str, str]:
    """Return the header of a request that Access let through."""
    named = {"aud": [AUDIENCE], "iss": ISSUER, "email": "user@example.com", "sub": "1", "type": "app"}
    times = {"iat": NOW_S - 10, "nbf": NOW_S - 10, "exp": NOW_S + 3600}
    payload = json.dumps({**named, **times, **claims}).encode()
    signed = jwt.api_jws.encode(payload, team.keys["current"], algorithm="RS256", headers={"kid": "current"})
    return {"cf-access-jwt-assertion": signed}


async def test_a_valid_token_runs_an_agent_and_reads_its_run(guarded: Worker, team: Team) -> None:
    headers = token(team)
    assert (await guarded.request("PUT", "/admin/tenants/acme", {}, headers=headers)).status in (200, 201)
    body = {"input": "Contact contact:7 responded positively to a short case study.", "instance_id": "desk"}
    ran = await guarded.request("POST", "/v1/agents/acme/sdr/run", body, headers=headers)
    assert (ran.status, ran.content["status"]) == (200, "completed")
    await guarded.settled()
    shown = await guarded.request("GET", f"/admin/agents/acme/runs/{ran.content['run_id']}", headers=headers)
    assert (shown.status, shown.content["status"]) == (200, "completed")
    assert team.requests == 1, "the certificates are fetched once"


@pytest.mark.parametrize("claims", [{"aud": ["another"]}, {"exp": NOW_S - 61}], ids=["audience", "expired"])
async def test_a_token_that_is_signed_and_not_valid_lets_nobody_in(
    guarded: Worker, team: Team, claims: dict[str, object]
) -> None:
    answer = await guarded.request("GET", "/admin/agents/acme/runs", headers=token(team, **claims))
    assert (answer.status, answer.content["code"]) == (401, "invalid_access_token")
