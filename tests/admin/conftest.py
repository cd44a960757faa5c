"""A team of Cloudflare Access, a verifier that trusts it, and a maker of tokens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from retain.admin.access import AccessVerifier
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from tests.admin.access_team import AUDIENCE, ISSUER, NOW_S, SETTINGS, Sign, Team, TeamFetch


@pytest.fixture(scope="session")
def rsa_keys() -> dict[str, rsa.RSAPrivateKey]:
    return {name: rsa.generate_private_key(65537, 2048) for name in ("current", "next", "foreign")}


@pytest.fixture
def team(rsa_keys: dict[str, rsa.RSAPrivateKey]) -> Iterator[Team]:
    served = Team()
    served.keys = {"current": rsa_keys["current"]}
    yield served
    served.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S * 1000)


@pytest.fixture
async def verifier(team: Team, clock: ManualClock) -> AsyncIterator[AccessVerifier]:
    fetch = TeamFetch(team)
    yield AccessVerifier(fetch, HostCrypto(), clock, SETTINGS)
    await fetch.client.close()


@pytest.fixture
def sign(rsa_keys: dict[str, rsa.RSAPrivateKey]) -> Sign:
    def make(claims: Mapping[str, Any] | None = None, *, key: str = "current", **header: Any) -> str:
        wanted: dict[str, Any] = {
            "aud": [AUDIENCE],
            "email": "user@example.com",
            "exp": NOW_S + 3600,
            "iat": NOW_S - 10,
            "nbf": NOW_S - 10,
            "iss": ISSUER,
            "type": "app",
            "identity_nonce": "6ei69kawdKzMIAPF",
            "sub": "7335d417-61da-459d-899c-0a01c76a2f94",
            **(claims or {}),
        }
        payload = json.dumps({name: value for name, value in wanted.items() if value is not None}).encode()
        return jwt.api_jws.encode(payload, rsa_keys[key], algorithm="RS256", headers={"kid": key, **header})

    return make
