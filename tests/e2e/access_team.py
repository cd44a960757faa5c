"""A production deployment on real workerd that trusts a team of the tests: its certificates come from a local server.

The Worker is staged as for an upload. A few lines are added to the staged copy of `bindings.py`, which send requests for the
team's domain to the local server; nothing else differs from a deployment behind Cloudflare Access.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.admin.access_team import AUDIENCE, ISSUER, Team
from tests.e2e.servers import client_of, serving, staged
from tests.shell.guarded_routes import ACCOUNT
from tests.support.staged_modules import add_to
from tools.paths import ROOT
from tools.stage import read_config

OWNER = "owner@example.com"
"""The owner of every tenant whom the setting names."""
_REDIRECTED = """

_fetch = fetch


async def fetch(method, url, **options):
    for outside, here in {redirected!r}.items():
        url = url.replace(outside, here)
    return await _fetch(method, url, **options)
"""


class Deployment:
    """A running deployment behind Access."""

    def __init__(self, client: httpx.Client, team: Team) -> None:
        self._client = client
        self._team = team

    def ask(
        self,
        method: str,
        path: str,
        content: object = None,
        *,
        by: str = OWNER,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> httpx.Response:
        """Send a request with a token of this person, as Access would let it through. body: sent as it is."""
        given = {**self._token(by), **(headers or {})}
        return self._client.request(method, path, json=content, content=body, headers=given)

    @property
    def base_url(self) -> str:
        """Where it answers, without a trailing slash."""
        return str(self._client.base_url).rstrip("/")

    def signed_in(self, person: str) -> dict[str, str]:
        """Return the header with which Access lets this person through."""
        return self._token(person)

    def ask_without(self, method: str, path: str, content: object = None, **headers: str) -> httpx.Response:
        """Send a request without a token."""
        return self._client.request(method, path, json=content, headers=headers)

    def _token(self, email: str) -> dict[str, str]:
        now_s = int(time.time())
        claims = {"aud": [AUDIENCE], "iss": ISSUER, "email": email, "sub": email, "type": "app"}
        payload = json.dumps({**claims, "iat": now_s - 10, "nbf": now_s - 10, "exp": now_s + 3600}).encode()
        signed = jwt.api_jws.encode(payload, self._team.keys["current"], algorithm="RS256", headers={"kid": "current"})
        return {"cf-access-jwt-assertion": signed}


@contextmanager
def deployment(
    state: Path,
    rates: Mapping[str, int] | None = None,
    upstreams: Mapping[str, str] | None = None,
    /,
    **variables: str,
) -> Iterator[Deployment]:
    """Serve a deployment on a migrated state.

    rates: requests in a minute, by the name of the binding. upstreams: an origin on this machine for each origin
    outside that is called instead.
    """
    settings = {
        "RETAIN_ENVIRONMENT": "production",
        "ACCESS_TEAM_DOMAIN": ISSUER.removeprefix("https://"),
        "ACCESS_AUDIENCE": AUDIENCE,
        "OWNERS": f"email:{OWNER}",
        "AGENT_MEMORY_ACCOUNT": ACCOUNT,
    }
    team = Team()
    redirected = {ISSUER: team.origin, **(upstreams or {})}
    team.keys = {"current": rsa.generate_private_key(65537, 2048)}
    try:
        with staged("team", {**settings, **variables}) as config:
            build = ROOT / f".build-team-{os.getpid()}"
            add_to(build / "bindings.py", _REDIRECTED.format(redirected=redirected))
            content = read_config(config)
            content["ratelimits"] = [
                {"name": name, "namespace_id": str(1000 + number), "simple": {"limit": limit, "period": 60}}
                for number, (name, limit) in enumerate((rates or {}).items())
            ]
            config.write_text(json.dumps(content))
            with serving(state, config) as server, client_of(server) as client:
                yield Deployment(client, team)
    finally:
        team.close()
