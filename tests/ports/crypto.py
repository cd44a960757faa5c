"""The contract of every `Crypto`."""

from __future__ import annotations

import base64

from retain.errors import Forbidden, InvalidInput, Misconfigured
from retain.ports import Crypto
from tests.ports import raises

_KEY = bytes(range(32))
_MESSAGE = b"a message that was signed"
_MODULUS = (
    "tbmBCH_K2WuAfrtxQAfH2p_hEXrYyBbfFdNG5Wf-CIAm_l3rGQPMv9NPBR75cn11FSmgawQPFrv4_91tv_in4mj9RA-2P4NN1nZx"
    "iGbWc4bBMkMNt6q4GUMxuzLmLf71hfcMgSTY-WjyVGfHsvAsi-5_p1idh6usJ87YZ45JgaMW4XYmzBu6J2uOBfZFivDg-ZzDUUGD"
    "YFeIRcCS2yId4nnanIRrYUEeOeC960gFYtN3ono27urIANEG4N245sQy12xP9W7VvKbSiqdF6hIJErUTjeSwWMZZuhEJk9wWPmGE"
    "5TUTbOXkASlTvKpt6QHYkKAr7uye1ogcLYcvgezyHQ"
)
_OTHER_MODULUS = (
    "jOpCLABttBvusEq70oy0mScjFyEbWwlMYAU56uACPL6kw2Dg4z3qlWuWxWVBXgaVSVG0wAwV6VFAh7XEx2yzWGGkM25gPGrqpr8z"
    "QLp7Jp92yrV9aPQtjqxTyfN7D8AGSzPtsoCDf4_-hyKHKk99iNH9JSoPnftJgAsaIT4j4mZBchHmvfjG3T-0bl0VZS9DdAvn0SQY"
    "BYti-EbKu0AlzCfseIq47cka9wLeJcAdcYFwUV6IogaHpURjbN8lsCrzgqtgJ1C-BhD-eyBG1IupgWy2j37AHkRhCOTlI8JgWESP"
    "unrS2CIFVvrARecEEMHG42vY8AIvt5hYnfREM7jeOw"
)
_SIGNATURE = (
    "dVgJ608Wyrrmy6XWIbz0y8fQBaGQitLHU9quHigASoxqEgtajeyh88YHqgIeU-1nVX3ZcZAE99hC2Iq0vkl1am-n7Lm-GMSVJ-42"
    "hXvhck2N4FcUhXnmF30vUusQ_4b6mgodyu0GuTM_nBNge37fcdYS844Bj98S--FMF0zm4hivYdhA6PpZSq0soRuB1bjgY4Om6tgB"
    "EDEtkl7iM611G4FVfNWHPcYCmWnwcKPp8nymyx59sG1mxz4zKBIhw4xDz_Q0iNUFISrUcFcCfpvGI3sgR3_6TjsUDIriJSR0X21D"
    "37iHHJpneUD2GnfO2tNvE1mJ8mlth26_OJeSWnAkBg"
)
_SIGNATURE_PSS = (
    "fJvl5gtUOB7CaOQnLT914SJPZR3iSUGHkjDzaD2G7IHSbh6yXJ-qgeu99dkIAO9S565Pl3_FYte2uvTYlxbWPs002Ly9cyHXmuIO"
    "0f8_Oq_nY8o4bqS1kilDLyThGrYTL_OzqI0crc3X9l9w8r127lPTOVxpxi-SPkb2m3fLtdrPrxiJBA1Nqy2ob2wcRnNX6Q5Z1HLu"
    "bhVq7rLZaXrYn-vBPe2KuFOPaIFt40GQDJre66nr2h4YgPHY45dLdtywtL-ducuyCD9_kwukHtz5nkjkJf3yj5f1sGyTYBRVqKLx"
    "0sc4MfDlah34bGm0WTD3Q2_94ky7kQWe4friNxVwSQ"
)
_SIGNATURE_SHA512 = (
    "L4V8j5MvAqJA-RdFb4XwPT3yDt-wb3ARyDGt1LVu4dPvJRNPpKLxNWuKwUTlFoMVKy-UgCS6oQQIqZrSWctI56EO30Z9QJKpwGdl"
    "MLw5NxA8EapgEHYQUEHiW52Oxjftti0OOtgYyGw1j1drrcllLPpkCZ7gi5vfKDR0tBMBAfpxUA_w_CygjBwHSISV_7ikkbQQ8HYB"
    "5W5BE3c7ywDaZmp5nnacYie3Xzoaq30wMwzS2jC_8Cbt26XZgq325MiUClOlnfq_TFzMiOfXYAMDXucIHrBkq00TQxBeOZDsxwbJ"
    "wyldmwMnKRo_wZx-OKqsMrQgmCyfCeo2tf7O5yaWNQ"
)
_JWK = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "contract", "e": "AQAB", "n": _MODULUS}


def _signature(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


async def check_what_was_encrypted_is_decrypted(crypto: Crypto) -> None:
    for plaintext in (b"", b"secret", bytes(range(256)) * 100):
        sealed = await crypto.encrypt(_KEY, plaintext, b"tenant:tool")
        assert await crypto.decrypt(_KEY, sealed, b"tenant:tool") == plaintext


async def check_sealed_data_is_a_nonce_the_ciphertext_and_a_tag(crypto: Crypto) -> None:
    sealed = await crypto.encrypt(_KEY, b"secret", b"")
    assert isinstance(sealed, bytes)
    assert len(sealed) == 12 + len(b"secret") + 16
    assert b"secret" not in sealed


async def check_data_sealed_elsewhere_is_decrypted(crypto: Crypto) -> None:
    sealed = base64.b64decode("MPitz2XHjd9i+ZWd+OriAnuYFLMFNF5gcPe6ztPZp18ze0iPxK7Wy31MkMgp1mPdBck5FvbcBIn2u2Xi")
    assert await crypto.decrypt(_KEY, sealed, b"tenant:tool") == b"sealed by another implementation"


async def check_every_encryption_has_a_fresh_nonce(crypto: Crypto) -> None:
    sealed = [await crypto.encrypt(_KEY, b"same", b"same") for _ in range(20)]
    assert len({one[:12] for one in sealed}) == len(sealed)


async def check_a_change_of_any_byte_is_detected(crypto: Crypto) -> None:
    sealed = await crypto.encrypt(_KEY, b"secret", b"place")
    for position in range(len(sealed)):
        changed = sealed[:position] + bytes([sealed[position] ^ 1]) + sealed[position + 1 :]
        with raises(Forbidden, code="decryption_failed"):
            await crypto.decrypt(_KEY, changed, b"place")


async def check_data_cut_short_is_refused(crypto: Crypto) -> None:
    sealed = await crypto.encrypt(_KEY, b"secret", b"place")
    for length in (0, 1, 12, 13, 28, len(sealed) - 1):
        with raises(Forbidden, code="decryption_failed"):
            await crypto.decrypt(_KEY, sealed[:length], b"place")


async def check_another_context_or_key_is_refused(crypto: Crypto) -> None:
    sealed = await crypto.encrypt(_KEY, b"secret", b"tenant-a")
    for key, associated in ((_KEY, b"tenant-b"), (_KEY, b""), (bytes(32), b"tenant-a")):
        with raises(Forbidden, code="decryption_failed"):
            await crypto.decrypt(key, sealed, associated)


async def check_a_key_of_another_length_is_refused(crypto: Crypto) -> None:
    for key in (b"", _KEY[:16], _KEY[:31], _KEY + b"x"):
        with raises(Misconfigured, code="invalid_encryption_key"):
            await crypto.encrypt(key, b"secret", b"")
        with raises(Misconfigured, code="invalid_encryption_key"):
            await crypto.decrypt(key, bytes(40), b"")


async def check_a_valid_signature_is_accepted(crypto: Crypto) -> None:
    assert await crypto.verify_rs256(_JWK, _MESSAGE, _signature(_SIGNATURE)) is True
    assert await crypto.verify_rs256({"n": _MODULUS, "e": "AQAB"}, _MESSAGE, _signature(_SIGNATURE)) is True


async def check_a_signature_of_another_message_key_or_scheme_is_refused(crypto: Crypto) -> None:
    signature = _signature(_SIGNATURE)
    assert await crypto.verify_rs256(_JWK, _MESSAGE + b"!", signature) is False
    assert await crypto.verify_rs256(_JWK, b"", signature) is False
    assert await crypto.verify_rs256({**_JWK, "n": _OTHER_MODULUS}, _MESSAGE, signature) is False
    assert await crypto.verify_rs256(_JWK, _MESSAGE, _signature(_SIGNATURE_PSS)) is False
    assert await crypto.verify_rs256(_JWK, _MESSAGE, _signature(_SIGNATURE_SHA512)) is False


async def check_a_malformed_signature_is_refused(crypto: Crypto) -> None:
    signature = _signature(_SIGNATURE)
    for malformed in (b"", signature[:-1], signature + b"\0", bytes(256), b"\xff" * 256, signature[::-1]):
        assert await crypto.verify_rs256(_JWK, _MESSAGE, malformed) is False


async def check_a_jwk_without_a_usable_key_is_refused(crypto: Crypto) -> None:
    for jwk in ({}, {"n": _MODULUS}, {"e": "AQAB"}, {"n": "", "e": "AQAB"}, {"n": "not base64!", "e": "AQAB"}):
        with raises(InvalidInput, code="invalid_public_key"):
            await crypto.verify_rs256(jwk, _MESSAGE, _signature(_SIGNATURE))


# The example of https://www.rfc-editor.org/rfc/rfc7515#appendix-A.3
_EC = {
    "kty": "EC",
    "crv": "P-256",
    "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    "d": "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
}
_SIGNED = (
    b"eyJhbGciOiJFUzI1NiJ9."
    b"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
)
_EC_SIGNATURE = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"


async def check_the_standard_s_example_of_es256_is_accepted(crypto: Crypto) -> None:
    assert await crypto.verify_es256(_EC, _SIGNED, _signature(_EC_SIGNATURE)) is True
    assert await crypto.verify_es256({"x": _EC["x"], "y": _EC["y"]}, _SIGNED, _signature(_EC_SIGNATURE)) is True


async def check_what_was_signed_with_es256_is_accepted_and_nothing_else(crypto: Crypto) -> None:
    signature = await crypto.sign_es256(_EC, _MESSAGE)
    assert isinstance(signature, bytes)
    assert len(signature) == 64
    assert await crypto.verify_es256(_EC, _MESSAGE, signature) is True
    assert await crypto.verify_es256(_EC, _MESSAGE + b"!", signature) is False
    for malformed in (b"", signature[:-1], signature + b"\0", bytes(64), b"\xff" * 64, signature[::-1]):
        assert await crypto.verify_es256(_EC, _MESSAGE, malformed) is False


async def check_a_jwk_without_a_usable_key_of_the_curve_is_refused(crypto: Crypto) -> None:
    for jwk in ({}, {"x": _EC["x"]}, {"x": _EC["y"], "y": _EC["x"]}, {"x": "not base64!", "y": _EC["y"]}, _JWK):
        with raises(InvalidInput, code="invalid_public_key"):
            await crypto.verify_es256(jwk, _MESSAGE, bytes(64))
    with raises(InvalidInput, code="invalid_public_key"):
        await crypto.sign_es256({"x": _EC["x"], "y": _EC["y"]}, _MESSAGE)
