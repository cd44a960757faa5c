"""Tokens of Cloudflare Access that name their own key, or are spelled in another way than the team spelled them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from retain.admin.access import AccessVerifier
from retain.errors import Unauthenticated
from tests.admin.access_team import NOW_S, Sign, Team

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


async def _refused(verifier: AccessVerifier, token: str) -> object:
    with pytest.raises(Unauthenticated) as raised:
        await verifier.verify(token)
    assert raised.value.code == "invalid_access_token"
    return raised.value.details["reason"]


def _twin(part: str) -> str:
    """Return another text that decodes to the same bytes: its last letter has bits that decoding drops."""
    place = _ALPHABET.index(part[-1])
    assert len(part) % 4 in (2, 3), "a whole number of groups has no such bits"
    return part[:-1] + _ALPHABET[place ^ 1]


SPELLINGS: dict[str, Callable[[str], str]] = {
    "dropped bits": _twin,
    "padding": lambda part: part + "=" * (-len(part) % 4),
    "too much padding": lambda part: part + "====",
    "line break": lambda part: part[:9] + "\n" + part[9:],
    "line break at the end": lambda part: part + "\n",
    "space": lambda part: part[:9] + " " + part[9:],
    "letter of no alphabet": lambda part: part[:9] + "!" + part[9:],
    "other alphabet": lambda part: part.replace("-", "+").replace("_", "/"),
    "nul": lambda part: part + "\0",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=list(SPELLINGS))
async def test_a_valid_token_has_one_spelling(verifier: AccessVerifier, sign: Sign, spelling: Any) -> None:
    token = sign()
    head, _, signature = token.rpartition(".")
    assert len(signature) % 4 == 2, "an RSA signature of 256 bytes has four bits to spare"
    assert set("-_") & set(signature), "another signature would not show the other alphabet"
    assert (await verifier.verify(token)).kind == "user"
    assert await _refused(verifier, f"{head}.{spelling(signature)}") == "malformed"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.integers(min_value=0), letter=st.sampled_from(_ALPHABET + "+/=. \n"))
async def test_no_other_text_than_the_token_is_let_in(
    verifier: AccessVerifier, sign: Sign, place: int, letter: str
) -> None:
    token = sign()
    at = place % len(token)
    changed = token[:at] + letter + token[at + 1 :]
    if changed != token:
        await _refused(verifier, changed)


@pytest.mark.parametrize("claims", [{"type": None}, {"type": ""}, {"type": "org"}, {"type": ["app"]}], ids=repr)
async def test_only_a_token_of_an_application_is_let_in(
    verifier: AccessVerifier, sign: Sign, claims: dict[str, Any]
) -> None:
    assert await _refused(verifier, sign(claims)) == "token_type"


def _own_key(key: rsa.RSAPrivateKey) -> dict[str, Any]:
    public = key.public_key()
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return {
        "jwk": {**RSAAlgorithm.to_jwk(public, as_dict=True), "kid": "current"},
        "jku": "https://acme.cloudflareaccess.com.evil.example/cdn-cgi/access/certs",
        "x5u": "https://evil.example/chain.pem",
        "x5c": [base64.b64encode(der).decode()],
        "x5t": "AAAA",
    }


@pytest.mark.parametrize("named", ["jwk", "jku", "x5u", "x5c", "x5t", "everything"])
async def test_a_token_that_brings_its_own_key_is_refused_and_nothing_is_fetched_from_where_it_says(
    verifier: AccessVerifier, sign: Sign, team: Team, rsa_keys: dict[str, rsa.RSAPrivateKey], named: str
) -> None:
    offered = _own_key(rsa_keys["foreign"])
    header = offered if named == "everything" else {named: offered[named]}
    assert await _refused(verifier, sign(key="foreign", kid="current", **header)) == "signature"
    assert team.requests == 1, "the team's own certificates, and nothing else: TeamFetch refuses other addresses"


@pytest.mark.parametrize(
    "kid", ["", " ", "current ", "CURRENT", "current\0", "foreign", "__class__", "../current", "current'--"], ids=repr
)
async def test_a_key_id_is_compared_exactly(verifier: AccessVerifier, sign: Sign, kid: str) -> None:
    assert await _refused(verifier, sign(kid=kid)) == "unknown_key"


@pytest.mark.parametrize("algorithm", ["RS384", "RS512", "PS256", "ES256", "EdDSA", "HS256", "none", "NONE", ""])
async def test_an_algorithm_that_the_team_does_not_use_is_refused_before_any_key_is_fetched(
    verifier: AccessVerifier, sign: Sign, team: Team, algorithm: str
) -> None:
    _, payload, signature = sign().split(".")
    header = json.dumps({"alg": algorithm, "kid": "current", "typ": "JWT"}).encode()
    token = f"{base64.urlsafe_b64encode(header).rstrip(b'=').decode()}.{payload}.{signature}"
    assert await _refused(verifier, token) == "algorithm"
    assert team.requests == 0


@pytest.mark.parametrize("claims", [{"exp": -1}, {"exp": -(10**30)}, {"exp": float("-inf")}, {"nbf": 1e300}], ids=repr)
async def test_times_of_any_size_are_compared(verifier: AccessVerifier, sign: Sign, claims: dict[str, Any]) -> None:
    assert await _refused(verifier, sign(claims)) in {"expired", "not_yet_valid", "malformed"}


async def test_a_second_claim_of_one_name_does_not_replace_the_first(verifier: AccessVerifier, sign: Sign) -> None:
    head, payload, signature = sign().split(".")
    claims = base64.urlsafe_b64decode(payload + "==").decode()
    twice = claims[:-1] + f', "exp": {NOW_S + 10**9}}}'
    encoded = base64.urlsafe_b64encode(twice.encode()).rstrip(b"=").decode()
    assert await _refused(verifier, f"{head}.{encoded}.{signature}") == "signature"
