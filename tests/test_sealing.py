"""Sealed text, as credentials and PII are kept: what earlier releases sealed still opens."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Misconfigured
from retain.gateway.credentials import OpenedCredentials
from retain.gateway.settings import GatewaySettings
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from retain.sealing.keyring import Keyring, decode_key, seal_with
from retain.sealing.pii import Sealer

KEY, OTHER_KEY = (base64.b64encode(bytes([byte]) * 32).decode() for byte in (1, 2))
NAME = "gateway_credential:acme:create_order"
ITEM = "shop:acme:s-1:preferences:ann"
GOLDEN_CREDENTIAL = '{"v": 1, "kid": "72cd6e84", "data": "DajVHqBYOjO5dcNKbN31xjKoZkXP/IzVXLP6xsxJDBWPmxFRdg=="}'
GOLDEN_CREDENTIAL_OF_OTHER_KEY = (
    '{"v": 1, "kid": "75877bb4", "data": "xkFoLcXDJp3IR4PajXPSq6wcSfqx//N3t037ylq5FxotcodYkg=="}'
)
GOLDEN_ITEM = (
    '{"v": 1, "kid": "72cd6e84", "data": '
    '"HlV7Fiuum9AkkbuMyC6vpbjdSkKsHZ/Herg0fXUExIMsT5iT5MptrDk7ov6VGY0S76r08sRdj7RJ"}'
)
"""Sealed by the release before the keyring: credentials with the first and the second key, an item with the first."""


def read(text: str) -> bytes:
    if not text:
        raise Misconfigured("no key")
    return decode_key(text)


def ring(current: str = KEY, previous: str = "") -> Keyring:
    return Keyring(HostCrypto(), current, previous, read)


@pytest.mark.parametrize(
    ("current", "previous", "sealed"),
    [
        pytest.param(KEY, "", GOLDEN_CREDENTIAL, id="the current key"),
        pytest.param(OTHER_KEY, KEY, GOLDEN_CREDENTIAL, id="the previous key"),
        pytest.param(OTHER_KEY, "", GOLDEN_CREDENTIAL_OF_OTHER_KEY, id="another key"),
    ],
)
async def test_a_credential_of_an_earlier_release_opens(current: str, previous: str, sealed: str) -> None:
    settings = GatewaySettings(current, previous)
    assert await OpenedCredentials(HostCrypto(), ManualClock(), settings).open(NAME, sealed) == "swordfish"


@pytest.mark.parametrize(
    ("current", "previous"),
    [
        pytest.param(KEY, "", id="the current key"),
        pytest.param(OTHER_KEY, KEY, id="the previous key"),
        pytest.param("", KEY, id="the previous key alone"),
    ],
)
async def test_an_item_of_an_earlier_release_opens(current: str, previous: str) -> None:
    assert await Sealer(HostCrypto(), current, previous).open(ITEM, GOLDEN_ITEM) == '{"email": "ann@shop.example"}'


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
async def test_a_sealed_text_opens_under_its_name_alone(name: str, text: str) -> None:
    sealed = await ring().seal(name, text)
    assert await ring().open(name, sealed) == text
    assert await ring(OTHER_KEY, KEY).open(name, sealed) == text
    with pytest.raises(ValueError, match="cannot be opened"):
        await ring().open(f"{name}x", sealed)
    with pytest.raises(ValueError, match="does not have"):
        await ring(OTHER_KEY).open(name, sealed)


async def test_the_format_on_disk_is_version_key_id_and_data() -> None:
    envelope = json.loads(await seal_with(HostCrypto(), decode_key(KEY), NAME, "swordfish"))
    assert list(envelope.items())[:2] == [("v", 1), ("kid", ring().key_id())]
    assert envelope.keys() == {"v", "kid", "data"}
    assert len(base64.b64decode(envelope["data"], validate=True)) == 12 + len("swordfish") + 16  # nonce and GCM's tag


@pytest.mark.parametrize(
    ("text", "wrong"), [("!", "is not base64"), (base64.b64encode(b"short").decode(), "must be 32 bytes in base64")]
)
def test_a_key_that_is_not_32_bytes_in_base64_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        decode_key(text)


async def test_a_ring_without_a_current_key_seals_nothing() -> None:
    with pytest.raises(Misconfigured):
        await ring("", KEY).seal(NAME, "swordfish")
