"""HostCrypto: the contract, and laws over any data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Forbidden
from retain.host.crypto import HostCrypto
from tests.ports import Case, cases
from tests.ports import crypto as suite

_keys = st.binary(min_size=32, max_size=32)


@pytest.mark.parametrize("case", cases(suite).values(), ids=cases(suite).keys())
async def test_contract(case: Case) -> None:
    await case(HostCrypto())


@given(key=_keys, plaintext=st.binary(), associated=st.binary())
async def test_decrypting_undoes_encrypting(key: bytes, plaintext: bytes, associated: bytes) -> None:
    crypto = HostCrypto()
    assert await crypto.decrypt(key, await crypto.encrypt(key, plaintext, associated), associated) == plaintext


@given(key=_keys, sealed=st.binary(max_size=80), associated=st.binary())
async def test_what_was_never_encrypted_is_never_decrypted(key: bytes, sealed: bytes, associated: bytes) -> None:
    with pytest.raises(Forbidden):
        await HostCrypto().decrypt(key, sealed, associated)
