from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput, LimitExceeded, Misconfigured
from retain.gateway.credentials import (
    CACHE_MS,
    OpenedCredentials,
    check_credential,
    credential_name,
    read_credentials_key,
    seal,
)
from retain.gateway.settings import GatewaySettings
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto

KEY, OTHER_KEY = (base64.b64encode(bytes([byte]) * 32).decode() for byte in (1, 2))
PLACE = credential_name("acme", "create_order")
Secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=100)


class CountingCrypto(HostCrypto):
    def __init__(self) -> None:
        self.decrypted = 0

    async def decrypt(self, key: bytes, sealed: bytes, associated: bytes) -> bytes:
        self.decrypted += 1
        return await super().decrypt(key, sealed, associated)


async def sealed_with(key: str, secret: str = "swordfish", place: str = PLACE) -> str:
    return await seal(HostCrypto(), read_credentials_key(key), place, secret)


def opener(key: str = KEY, previous: str = "") -> OpenedCredentials:
    return OpenedCredentials(HostCrypto(), ManualClock(), GatewaySettings(key, previous))


@given(Secrets)
async def test_what_was_sealed_opens_again(secret: str) -> None:
    sealed = await sealed_with(KEY, secret)
    assert await opener().open(PLACE, sealed) == secret
    assert secret not in sealed or len(secret) < 4  # a few characters may occur in any base64


async def test_sealing_twice_gives_different_texts() -> None:
    assert await sealed_with(KEY) != await sealed_with(KEY)


async def test_the_envelope_names_its_version_and_key_and_nothing_of_the_secret() -> None:
    envelope = json.loads(await sealed_with(KEY))
    assert envelope.keys() == {"v", "kid", "data"}
    assert envelope["v"] == 1
    assert envelope["kid"] != json.loads(await sealed_with(OTHER_KEY))["kid"]


@pytest.mark.parametrize("place", [credential_name("globex", "create_order"), credential_name("acme", "other")])
async def test_a_sealed_credential_does_not_open_under_another_name(place: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        await opener().open(place, await sealed_with(KEY))
    assert refused.value.code == "credential_unreadable"


async def test_a_credential_sealed_with_the_previous_key_still_opens() -> None:
    sealed = await sealed_with(OTHER_KEY)
    assert await opener(KEY, previous=OTHER_KEY).open(PLACE, sealed) == "swordfish"
    with pytest.raises(Misconfigured):
        await opener(KEY).open(PLACE, sealed)


def _changed(envelope: str, **parts: object) -> str:
    return json.dumps({**json.loads(envelope), **parts})


@pytest.mark.parametrize(
    "break_it",
    [
        pytest.param(lambda _: "not json", id="not json"),
        pytest.param(lambda _: "[]", id="a list"),
        pytest.param(lambda _: "{}", id="an empty object"),
        pytest.param(lambda text: _changed(text, v=2), id="another version"),
        pytest.param(lambda text: _changed(text, kid="00000000"), id="an unknown key"),
        pytest.param(lambda text: _changed(text, data="!"), id="not base64"),
        pytest.param(lambda text: _changed(text, data=""), id="no data"),
        pytest.param(lambda text: _changed(text, data=1), id="a number"),
        pytest.param(lambda text: _changed(text, data="AAAA" + json.loads(text)["data"][4:]), id="tampered with"),
    ],
)
async def test_a_broken_envelope_is_not_opened(break_it: object) -> None:
    assert callable(break_it)
    with pytest.raises(Misconfigured) as refused:
        await opener().open(PLACE, break_it(await sealed_with(KEY)))
    assert refused.value.code == "credential_unreadable"


async def test_an_opened_credential_is_cached_for_a_minute_and_no_longer() -> None:
    crypto, clock = CountingCrypto(), ManualClock()
    credentials = OpenedCredentials(crypto, clock, GatewaySettings(KEY))
    sealed = await sealed_with(KEY)
    await credentials.open(PLACE, sealed)
    clock.advance(CACHE_MS - 1)
    await credentials.open(PLACE, sealed)
    assert crypto.decrypted == 1
    clock.advance(1)
    assert await credentials.open(PLACE, sealed) == "swordfish"
    assert crypto.decrypted == 2


async def test_a_cached_credential_serves_only_its_own_name_and_text() -> None:
    credentials = opener()
    sealed = await sealed_with(KEY)
    await credentials.open(PLACE, sealed)
    assert await credentials.open(PLACE, await sealed_with(KEY, "another")) == "another"
    with pytest.raises(Misconfigured):
        await credentials.open(credential_name("globex", "create_order"), sealed)


async def test_few_credentials_are_cached_at_a_time() -> None:
    crypto, clock = CountingCrypto(), ManualClock()
    credentials = OpenedCredentials(crypto, clock, GatewaySettings(KEY))
    sealed = [await sealed_with(KEY) for _ in range(300)]
    for text in sealed:
        await credentials.open(PLACE, text)
    await credentials.open(PLACE, sealed[-1])
    assert crypto.decrypted == 300
    await credentials.open(PLACE, sealed[0])
    assert crypto.decrypted == 301


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param("", id="empty"),
        pytest.param(" a", id="a space before"),
        pytest.param("a\n", id="a line break after"),
        pytest.param("a\r\nx-admin: 1", id="a header"),
        pytest.param("\u00fc", id="not ascii"),
        pytest.param("a\x00", id="a null"),
    ],
)
def test_what_cannot_be_in_a_header_is_not_a_credential(secret: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_credential(secret)
    assert refused.value.code == "invalid_credential"


def test_invariant_8_a_credential_has_a_limit() -> None:
    assert check_credential("x" * 8192)
    with pytest.raises(LimitExceeded):
        check_credential("x" * 8193)


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "credentials_key_missing"), ("x", "invalid_credentials_key"), ("AAAA", "invalid_credentials_key")],
)
def test_a_wrong_key_is_a_fault_of_the_deployment(text: str, code: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        read_credentials_key(text)
    assert refused.value.code == code
