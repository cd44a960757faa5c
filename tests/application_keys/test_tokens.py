"""Tokens of applications' users: what they say, until when, and that no other text says anything."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.application_keys.tokens import MAX_CHARACTERS, BoundUser, UserTokens, presented_token
from retain.cli.keys import new_signing_key
from retain.errors import Misconfigured, Unauthenticated
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from retain.identifiers import INSTANCE, USER
from tests.ports import raises

KEY = new_signing_key()
ANN = BoundUser("ann", "support")
MINUTE_MS = 60_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def tokens(clock: ManualClock) -> UserTokens:
    return UserTokens(HostCrypto(), clock, KEY)


async def test_a_token_says_what_it_was_made_for_until_it_expires(tokens: UserTokens, clock: ManualClock) -> None:
    text, expires_at_ms = await tokens.issue("acme", "01ARZ3NDEKTSV4RRFFQ69G5FAV", ANN, minutes=15)
    assert expires_at_ms == clock() + 15 * MINUTE_MS
    read = await tokens.read(text)
    assert (read.tenant_id, read.key_id, read.bound) == ("acme", "01ARZ3NDEKTSV4RRFFQ69G5FAV", ANN)
    assert read.expires_at_ms == expires_at_ms
    clock.advance(15 * MINUTE_MS - 1)
    await tokens.read(text)
    clock.advance(1)
    with raises(Unauthenticated, code="invalid_user_token"):
        await tokens.read(text)


async def test_the_longest_token_is_read(tokens: UserTokens) -> None:
    longest = BoundUser("u" * 128, "a" * 64)
    text, _ = await tokens.issue("t" * 63, "01ARZ3NDEKTSV4RRFFQ69G5FAV", longest, minutes=60)
    assert len(text) <= MAX_CHARACTERS
    assert (await tokens.read(text)).bound == longest
    with raises(Unauthenticated, code="invalid_user_token"):
        await tokens.read(text + "A" * MAX_CHARACTERS)


def _part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


async def test_no_change_to_a_token_is_accepted(tokens: UserTokens) -> None:
    text, _ = await tokens.issue("acme", "k", ANN, minutes=15)
    header, claims, signature = text.split(".")
    stated = json.loads(base64.urlsafe_b64decode(claims + "=="))
    forged = [
        f"{_part({'alg': 'none', 'typ': 'JWT'})}.{claims}.",
        f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{claims}.{signature}",
        f"{header}.{_part({**stated, 'sub': 'ben'})}.{signature}",
        f"{header}.{_part({**stated, 'aud': 'other'})}.{signature}",
        f"{header}.{claims}.",
        f"{header}.{claims}.{'A' * 86}",
        f"{header}.{claims}.{signature}=",
        f"{header}.{claims}.{signature[:-1]}{'B' if signature[-1] != 'B' else 'C'}",
        f"{header}.{claims}.{signature}.{signature}",
        f".{claims}.{signature}",
        f"{header}..{signature}",
        f"{header}.{claims}",
        "",
        "é",
    ]
    for other in forged:
        with raises(Unauthenticated, code="invalid_user_token"):
            await tokens.read(other)


async def test_a_token_of_another_deployment_is_refused(tokens: UserTokens, clock: ManualClock) -> None:
    text, _ = await UserTokens(HostCrypto(), clock, new_signing_key()).issue("acme", "k", ANN, minutes=15)
    with raises(Unauthenticated, code="invalid_user_token"):
        await tokens.read(text)


async def test_without_a_signing_key_no_token_is_made(clock: ManualClock) -> None:
    with raises(Misconfigured, code="token_key_missing"):
        await UserTokens(HostCrypto(), clock, "").issue("acme", "k", ANN, minutes=15)
    for wrong in ("{", "[]", "{}", '{"kty": "EC", "crv": "P-384", "x": "a", "y": "b", "d": "c"}'):
        with raises(Misconfigured, code="invalid_token_key"):
            await UserTokens(HostCrypto(), clock, wrong).issue("acme", "k", ANN, minutes=15)


def test_only_what_begins_as_a_token_does_is_taken_for_one() -> None:
    assert presented_token({"authorization": "Bearer eyJhbGciOiJSUzI1NiJ9.e30.x"}) is None
    assert presented_token({"authorization": "Bearer retainapp_acme_x"}) is None
    assert presented_token({}) is None
    text = "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.e30.x"
    assert presented_token({"authorization": f"bearer {text}"}) == text


@given(
    st.from_regex(INSTANCE, fullmatch=True),
    st.from_regex(INSTANCE, fullmatch=True),
    st.from_regex(USER, fullmatch=True),
    st.from_regex(USER, fullmatch=True),
)
def test_no_name_is_an_instance_of_two_users(one: str, other: str, first: str, second: str) -> None:
    named = BoundUser(first).instance(one)
    assert INSTANCE.fullmatch(named) is not None
    assert BoundUser(first).instance(named) == named
    if first != second:
        assert named != BoundUser(second).instance(other)
        assert BoundUser(second).instance(named) != named


def test_a_token_reaches_its_agent_or_each() -> None:
    assert [ANN.reaches(agent) for agent in ("support", "sdr", None)] == [True, False, True]
    assert all(BoundUser("ann").reaches(agent) for agent in ("support", "sdr", None))
