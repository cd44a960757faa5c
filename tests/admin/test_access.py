"""Cloudflare Access: forged, stale and foreign tokens, and rotation of keys.

Keys are real RSA keys, fetched over real HTTP from a local server that stands in for the team's domain.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from retain.admin.access import KEYS_FRESH_MS, REFETCH_EVERY_MS, AccessIdentity, AccessSettings, AccessVerifier
from retain.errors import Misconfigured, Unauthenticated, Unavailable
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from retain.host.fetch import HostFetch
from tests.admin.access_team import AUDIENCE, ISSUER, NOW_S, SETTINGS, Sign, Team, TeamFetch


def _reason(raised: pytest.ExceptionInfo[Unauthenticated]) -> object:
    assert raised.value.code == "invalid_access_token"
    return raised.value.details["reason"]


async def test_a_users_token_names_the_user(verifier: AccessVerifier, sign: Sign) -> None:
    subjects = ("email:user@example.com", "domain:example.com")
    expected = AccessIdentity("user", "user@example.com", "7335d417-61da-459d-899c-0a01c76a2f94", subjects)
    assert await verifier.verify(sign()) == expected


async def test_a_service_token_names_the_service(verifier: AccessVerifier, sign: Sign) -> None:
    token = sign({"email": None, "nbf": None, "aud": AUDIENCE, "sub": "", "common_name": "e367826f93b8.access"})
    assert await verifier.verify(token) == AccessIdentity(
        "service", "e367826f93b8.access", "", ("service:e367826f93b8.access",)
    )


@pytest.mark.parametrize(
    "domain",
    ["acme.cloudflareaccess.com", "https://acme.cloudflareaccess.com", "https://acme.cloudflareaccess.com/"],
)
async def test_the_team_domain_may_be_written_as_an_address(
    team: Team, clock: ManualClock, sign: Sign, domain: str
) -> None:
    fetch = TeamFetch(team)
    verifier = AccessVerifier(fetch, HostCrypto(), clock, AccessSettings(domain, AUDIENCE))
    assert (await verifier.verify(sign())).name == "user@example.com"
    await fetch.client.close()


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        pytest.param({"exp": NOW_S - 60}, "expired", id="expired"),
        pytest.param({"exp": NOW_S - 10**6}, "expired", id="long_expired"),
        pytest.param({"exp": float("nan")}, "expired", id="expiry_not_a_number"),
        pytest.param({"nbf": NOW_S + 61}, "not_yet_valid", id="not_before"),
        pytest.param({"iat": NOW_S + 61}, "not_yet_valid", id="issued_in_the_future"),
        pytest.param({"exp": str(NOW_S + 3600)}, "malformed", id="expiry_as_text"),
        pytest.param({"exp": True}, "malformed", id="expiry_as_boolean"),
        pytest.param({"nbf": "0"}, "malformed", id="not_before_as_text"),
        pytest.param({"exp": None}, "missing_claim", id="no_expiry"),
        pytest.param({"iat": None}, "missing_claim", id="no_time_of_issue"),
        pytest.param({"aud": None}, "missing_claim", id="no_audience"),
        pytest.param({"iss": None}, "missing_claim", id="no_issuer"),
        pytest.param({"aud": ["another-application"]}, "audience", id="another_application"),
        pytest.param({"aud": AUDIENCE + "0"}, "audience", id="longer_audience"),
        pytest.param({"aud": [[AUDIENCE]]}, "audience", id="nested_audience"),
        pytest.param({"aud": {AUDIENCE: 1}}, "audience", id="audience_as_mapping"),
        pytest.param({"iss": "https://evil.cloudflareaccess.com"}, "issuer", id="another_team"),
        pytest.param({"iss": ISSUER + "/"}, "issuer", id="issuer_with_slash"),
        pytest.param({"iss": [ISSUER]}, "issuer", id="issuer_as_list"),
        pytest.param({"type": "org"}, "token_type", id="session_token"),
        pytest.param({"email": None}, "no_identity", id="nobody"),
        pytest.param({"email": ""}, "no_identity", id="empty_email"),
        pytest.param({"email": ["user@example.com"]}, "no_identity", id="email_as_list"),
        pytest.param({"sub": 5}, "no_identity", id="subject_as_number"),
        pytest.param({"sub": None}, "no_identity", id="no_subject"),
    ],
)
async def test_a_signed_token_with_wrong_claims_is_refused(
    verifier: AccessVerifier, sign: Sign, claims: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Unauthenticated) as raised:
        await verifier.verify(sign(claims))
    assert _reason(raised) == reason


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({"exp": NOW_S - 59}, id="just_expired"),
        pytest.param({"nbf": NOW_S + 60, "iat": NOW_S + 60}, id="from_a_clock_that_is_ahead"),
        pytest.param({"aud": ["another", AUDIENCE]}, id="several_applications"),
    ],
)
async def test_clocks_may_differ_by_a_minute(verifier: AccessVerifier, sign: Sign, claims: dict[str, Any]) -> None:
    assert (await verifier.verify(sign(claims))).kind == "user"


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _forged(sign: Sign, rsa_keys: dict[str, rsa.RSAPrivateKey], how: str) -> str:
    header, payload, signature = sign().split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    public_pem = (
        rsa_keys["current"]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    confused = _part({"alg": "HS256", "kid": "current"}) + "." + payload
    forged = {
        "alg_none": _part({"alg": "none", "kid": "current"}) + f".{payload}.",
        "alg_none_with_signature": _part({"alg": "none", "kid": "current"}) + f".{payload}.{signature}",
        "alg_missing": _part({"kid": "current"}) + f".{payload}.{signature}",
        "alg_lower_case": _part({"alg": "rs256", "kid": "current"}) + f".{payload}.{signature}",
        "alg_as_list": _part({"alg": ["RS256"], "kid": "current"}) + f".{payload}.{signature}",
        "hs256_confusion": confused
        + "."
        + base64.urlsafe_b64encode(hmac.digest(public_pem, confused.encode(), hashlib.sha256)).rstrip(b"=").decode(),
        "unknown_critical_extension": _part({"alg": "RS256", "kid": "current", "crit": ["x"], "x": 1})
        + f".{payload}.{signature}",
        "known_critical_extension": _part({"alg": "RS256", "kid": "current", "crit": ["b64"], "b64": True})
        + f".{payload}.{signature}",
        "no_signature": f"{header}.{payload}.",
        "tampered_payload": f"{header}.{_part({**claims, 'email': 'admin@example.com'})}.{signature}",
        "tampered_header": f"{_part({'alg': 'RS256', 'kid': 'current', 'x': 1})}.{payload}.{signature}",
        "tampered_signature": f"{header}.{payload}.{('B' if signature[0] != 'B' else 'C') + signature[1:]}",
        "signature_of_another_token": f"{header}.{payload}.{sign({'sub': 'other'}).split('.')[2]}",
        "foreign_key_under_our_kid": sign(key="foreign", kid="current"),
        "foreign_key_under_its_kid": sign(key="foreign"),
        "foreign_key_in_the_header": sign(key="foreign", jwk={"kty": "RSA"}, jku="https://evil.example/certs"),
        "kid_missing": f"{_part({'alg': 'RS256'})}.{payload}.{signature}",
        "kid_as_number": f"{_part({'alg': 'RS256', 'kid': 1})}.{payload}.{signature}",
        "kid_as_path": sign(kid="../../current"),
        "two_parts": f"{header}.{payload}",
        "four_parts": f"{header}.{payload}.{signature}.{signature}",
        "not_base64": "!!!.???.***",
        "header_is_a_list": f"{_part([])}.{payload}.{signature}",
        "payload_is_a_list": f"{header}.{_part([])}.{signature}",
        "deep_header": base64.urlsafe_b64encode(b"[" * 9000).decode() + f".{payload}.{signature}",
        "too_long": f"{header}.{payload}.{'A' * 20_000}",
        "not_ascii": f"{header}.{payload}.{signature}é",
        "empty": "",
        "dots": "..",
    }
    return forged[how]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("alg_none", "algorithm"),
        ("alg_none_with_signature", "algorithm"),
        ("alg_missing", "algorithm"),
        ("alg_lower_case", "algorithm"),
        ("alg_as_list", "algorithm"),
        ("hs256_confusion", "algorithm"),
        ("unknown_critical_extension", "malformed"),
        ("known_critical_extension", "algorithm"),
        ("no_signature", "signature"),
        ("tampered_payload", "signature"),
        ("tampered_header", "signature"),
        ("tampered_signature", "signature"),
        ("signature_of_another_token", "signature"),
        ("foreign_key_under_our_kid", "signature"),
        ("foreign_key_under_its_kid", "unknown_key"),
        ("foreign_key_in_the_header", "unknown_key"),
        ("kid_missing", "unknown_key"),
        ("kid_as_number", "malformed"),
        ("kid_as_path", "unknown_key"),
        ("two_parts", "malformed"),
        ("four_parts", "malformed"),
        ("not_base64", "malformed"),
        ("header_is_a_list", "malformed"),
        ("payload_is_a_list", "malformed"),
        ("deep_header", "malformed"),
        ("too_long", "malformed"),
        ("not_ascii", "malformed"),
        ("empty", "malformed"),
        ("dots", "malformed"),
    ],
    ids=lambda value: value,
)
async def test_a_forged_token_is_refused(
    verifier: AccessVerifier, sign: Sign, rsa_keys: dict[str, rsa.RSAPrivateKey], how: str, reason: str
) -> None:
    with pytest.raises(Unauthenticated) as raised:
        await verifier.verify(_forged(sign, rsa_keys, how))
    assert _reason(raised) == reason


async def test_a_refusal_contains_nothing_of_the_token(verifier: AccessVerifier, sign: Sign) -> None:
    token = sign({"email": "user@example.com", "exp": NOW_S - 100})
    with pytest.raises(Unauthenticated) as raised:
        await verifier.verify(token)
    shown = f"{raised.value!r} {dict(raised.value.details)} {raised.value.__cause__!r}"
    assert not [part for part in (*token.split("."), "user@example.com", AUDIENCE) if part in shown]


async def test_keys_are_fetched_once_an_hour(
    verifier: AccessVerifier, sign: Sign, team: Team, clock: ManualClock
) -> None:
    token = sign({"exp": NOW_S + 10**6})
    for _ in range(3):
        await verifier.verify(token)
    clock.advance(KEYS_FRESH_MS - 1)
    await verifier.verify(token)
    assert team.requests == 1
    clock.advance(1)
    await verifier.verify(token)
    assert team.requests == 2


async def test_a_rotated_key_is_fetched_when_it_appears(
    verifier: AccessVerifier, sign: Sign, team: Team, clock: ManualClock, rsa_keys: dict[str, rsa.RSAPrivateKey]
) -> None:
    await verifier.verify(sign())
    team.keys = {"current": rsa_keys["current"], "next": rsa_keys["next"]}
    clock.advance(REFETCH_EVERY_MS)
    assert (await verifier.verify(sign(key="next"))).kind == "user"
    assert (await verifier.verify(sign())).kind == "user"
    assert team.requests == 2


async def test_a_key_that_was_rotated_out_is_refused_once_keys_are_fetched_again(
    verifier: AccessVerifier, sign: Sign, team: Team, clock: ManualClock, rsa_keys: dict[str, rsa.RSAPrivateKey]
) -> None:
    await verifier.verify(sign())
    team.keys = {"next": rsa_keys["next"]}
    clock.advance(KEYS_FRESH_MS)
    with pytest.raises(Unauthenticated) as raised:
        await verifier.verify(sign({"exp": NOW_S + 10**6}))
    assert _reason(raised) == "unknown_key"


async def test_made_up_keys_cause_at_most_one_fetch_a_minute(
    verifier: AccessVerifier, sign: Sign, team: Team, clock: ManualClock
) -> None:
    await verifier.verify(sign())
    for minute in range(1, 4):
        clock.advance(REFETCH_EVERY_MS)
        for number in range(5):
            with pytest.raises(Unauthenticated) as raised:
                await verifier.verify(sign(kid=f"made-up-{number}"))
            assert _reason(raised) == "unknown_key"
        assert team.requests == 1 + minute


@pytest.mark.parametrize(
    "claims", [{"exp": 0}, {"aud": "other"}, {"iss": "other"}, {"email": None, "sub": None, "aud": None}], ids=repr
)
async def test_a_token_that_no_key_could_make_valid_causes_no_fetch(
    verifier: AccessVerifier, sign: Sign, team: Team, claims: dict[str, Any]
) -> None:
    with pytest.raises(Unauthenticated):
        await verifier.verify(sign(claims))
    assert team.requests == 0


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((500, b"{}"), id="status_500"),
        pytest.param((302, b""), id="redirect"),
        pytest.param((200, b""), id="empty"),
        pytest.param((200, b"<html>"), id="not_json"),
        pytest.param((200, b"[" * 100_000), id="deep_json"),
        pytest.param((200, b"[]"), id="list"),
        pytest.param((200, b"{}"), id="no_keys"),
        pytest.param((200, b'{"keys": []}'), id="empty_keys"),
        pytest.param((200, b'{"keys": [{"kty": "RSA", "kid": "current"}]}'), id="key_without_numbers"),
        pytest.param((200, b'{"keys": [{"kty": "RSA", "kid": "current", "n": 1, "e": 2}]}'), id="numbers_not_text"),
        pytest.param((200, b'{"keys": [{"kty": "oct", "kid": "current", "k": "AAAA"}]}'), id="symmetric_key"),
    ],
)
async def test_nobody_gets_in_while_the_keys_cannot_be_fetched(
    verifier: AccessVerifier, sign: Sign, team: Team, answer: tuple[int, bytes]
) -> None:
    team.answer = answer
    for _ in range(2):
        with pytest.raises(Unavailable) as raised:
            await verifier.verify(sign())
        assert raised.value.code == "access_keys_unavailable"
    team.answer = None
    assert (await verifier.verify(sign())).kind == "user"


async def test_certificates_in_an_answer_that_is_an_error_are_not_used(
    verifier: AccessVerifier, sign: Sign, team: Team
) -> None:
    team.answer = (500, team.certificates())
    with pytest.raises(Unavailable):
        await verifier.verify(sign())


async def test_keys_of_other_kinds_among_the_teams_are_ignored(
    verifier: AccessVerifier, sign: Sign, team: Team
) -> None:
    certificates = json.loads(team.certificates())
    certificates["keys"].append({"kty": "EC", "kid": "curve", "crv": "P-256", "x": "AA", "y": "AA"})
    team.answer = (200, json.dumps(certificates).encode())
    assert (await verifier.verify(sign())).kind == "user"
    with pytest.raises(Unauthenticated) as raised:
        await verifier.verify(sign(kid="curve"))
    assert _reason(raised) == "unknown_key"


async def test_nobody_gets_in_while_the_team_is_unreachable(sign: Sign, clock: ManualClock) -> None:
    team = Team()
    team.close()
    fetch = TeamFetch(team)
    with pytest.raises(Unavailable) as raised:
        await AccessVerifier(fetch, HostCrypto(), clock, SETTINGS).verify(sign())
    assert raised.value.code == "access_keys_unavailable"
    await fetch.client.close()


async def test_stale_keys_are_not_used_while_new_ones_cannot_be_fetched(
    verifier: AccessVerifier, sign: Sign, team: Team, clock: ManualClock
) -> None:
    token = sign({"exp": NOW_S + 10**6})
    await verifier.verify(token)
    team.answer = (500, b"")
    clock.advance(KEYS_FRESH_MS)
    with pytest.raises(Unavailable):
        await verifier.verify(token)


async def test_a_failed_fetch_for_an_unknown_key_leaves_the_known_ones_in_use(
    verifier: AccessVerifier, sign: Sign, team: Team, clock: ManualClock
) -> None:
    await verifier.verify(sign())
    team.answer = (500, b"")
    clock.advance(REFETCH_EVERY_MS)
    for _ in range(2):  # the second time without a fetch: it is not known whether the key exists
        with pytest.raises(Unavailable):
            await verifier.verify(sign(key="next"))
    assert team.requests == 2
    assert (await verifier.verify(sign())).kind == "user"


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(AccessSettings(), id="nothing"),
        pytest.param(AccessSettings("acme.cloudflareaccess.com", ""), id="no_audience"),
        pytest.param(AccessSettings("", AUDIENCE), id="no_team"),
        pytest.param(AccessSettings("acme", AUDIENCE), id="bare_team"),
        pytest.param(AccessSettings("http://acme.cloudflareaccess.com", AUDIENCE), id="plain_http"),
        pytest.param(AccessSettings("acme.cloudflareaccess.com.evil.example", AUDIENCE), id="another_domain"),
        pytest.param(AccessSettings("evil.example/acme.cloudflareaccess.com", AUDIENCE), id="path"),
        pytest.param(AccessSettings("user@acme.cloudflareaccess.com", AUDIENCE), id="user"),
        pytest.param(AccessSettings("acme.cloudflareaccess.com\n", AUDIENCE), id="newline"),
    ],
)
async def test_incomplete_settings_let_nobody_in(
    team: Team, clock: ManualClock, sign: Sign, settings: AccessSettings
) -> None:
    verifier = AccessVerifier(TeamFetch(team), HostCrypto(), clock, settings)
    with pytest.raises(Misconfigured) as raised:
        await verifier.verify(sign())
    assert raised.value.code == "access_not_configured"
    assert team.requests == 0


@given(st.text(st.characters(max_codepoint=0x17F)) | st.from_regex(r"[\w-]*\.[\w-]*\.[\w-]*", fullmatch=True))
async def test_no_text_crashes_the_verifier(token: str) -> None:
    verifier = AccessVerifier(HostFetch(), HostCrypto(), ManualClock(NOW_S * 1000), SETTINGS)
    with pytest.raises(Unauthenticated):
        await verifier.verify(token)
