"""Web Crypto, as `js.crypto` has it."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePrivateNumbers,
    EllipticCurvePublicKey,
    EllipticCurvePublicNumbers,
)
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256

from tests.shell.platform.ffi import Buffer, JsException, array_of, bytes_of, options_of


@dataclass(frozen=True)
class CryptoKey:
    """A key, for one use."""

    key: AESGCM | RSAPublicKey | EllipticCurvePrivateKey | EllipticCurvePublicKey
    use: str


class Subtle:
    """`crypto.subtle`, as far as the shell uses it."""

    async def importKey(self, form: str, key: Any, algorithm: Any, extractable: bool, usages: Any) -> CryptoKey:
        """Return a key. Raises: JsException for anything but an AES key, an RSA key that verifies, or a key on P-256."""
        if extractable:
            raise JsException("the shell lets no key be read again", "InvalidAccessError")
        (use,) = array_of(usages)
        if (form, algorithm) == ("raw", "AES-GCM") and use in ("encrypt", "decrypt"):
            return CryptoKey(AESGCM(bytes_of(key)), use)
        jwk = options_of(key)
        if options_of(algorithm)["name"] == "ECDSA":
            return CryptoKey(_elliptic(jwk, algorithm, use), use)
        _rsassa(algorithm)
        if (form, use, jwk["kty"], jwk["alg"]) != ("jwk", "verify", "RSA", "RS256"):
            raise JsException("the key has another use", "DataError")
        try:
            return CryptoKey(RSAPublicNumbers(_number(jwk["e"]), _number(jwk["n"])).public_key(), use)
        except ValueError:
            raise JsException("invalid key", "DataError") from None

    async def encrypt(self, algorithm: Any, key: CryptoKey, data: Any) -> Buffer:
        """Seal with AES-GCM."""
        nonce, associated = _aes(algorithm)
        return Buffer(_cipher(key, "encrypt").encrypt(nonce, bytes_of(data), associated))

    async def decrypt(self, algorithm: Any, key: CryptoKey, data: Any) -> Buffer:
        """Open what `encrypt` sealed. Raises: JsException."""
        nonce, associated = _aes(algorithm)
        try:
            return Buffer(_cipher(key, "decrypt").decrypt(nonce, bytes_of(data), associated))
        except (InvalidTag, ValueError):
            raise JsException("decryption failed", "OperationError") from None

    async def sign(self, algorithm: Any, key: CryptoKey, data: Any) -> Buffer:
        """Sign with ECDSA."""
        _ecdsa(algorithm)
        assert isinstance(key.key, EllipticCurvePrivateKey)
        halves = decode_dss_signature(key.key.sign(bytes_of(data), ECDSA(SHA256())))
        return Buffer(b"".join(half.to_bytes(32, "big") for half in halves))

    async def verify(self, algorithm: Any, key: CryptoKey, signature: Any, data: Any) -> bool:
        """Return whether a signature is valid."""
        if isinstance(key.key, EllipticCurvePublicKey):
            _ecdsa(algorithm)
            return _signed(key.key, bytes_of(signature), bytes_of(data))
        _rsassa(algorithm)
        assert isinstance(key.key, RSAPublicKey)
        try:
            key.key.verify(bytes_of(signature), bytes_of(data), PKCS1v15(), SHA256())
        except InvalidSignature:
            return False
        return True


def _aes(algorithm: Any) -> tuple[bytes, bytes]:
    given = options_of(algorithm)
    if given["name"] != "AES-GCM":
        raise JsException("another cipher", "NotSupportedError")
    return bytes_of(given["iv"]), bytes_of(given["additionalData"])


def _rsassa(algorithm: Any) -> None:
    given = options_of(algorithm)
    if (given["name"], given["hash"]) != ("RSASSA-PKCS1-v1_5", "SHA-256"):
        raise JsException("another signature", "NotSupportedError")


def _ecdsa(algorithm: Any) -> None:
    given = options_of(algorithm)
    if (given["name"], given["namedCurve"], given["hash"]) != ("ECDSA", "P-256", "SHA-256"):
        raise JsException("another signature", "NotSupportedError")


def _elliptic(jwk: Any, algorithm: Any, use: str) -> EllipticCurvePrivateKey | EllipticCurvePublicKey:
    _ecdsa(algorithm)
    if (jwk["kty"], jwk["crv"], "d" in jwk) != ("EC", "P-256", use == "sign"):
        raise JsException("the key has another use", "DataError")
    try:
        point = EllipticCurvePublicNumbers(_number(jwk["x"]), _number(jwk["y"]), SECP256R1())
        if use == "sign":
            return EllipticCurvePrivateNumbers(_number(jwk["d"]), point).private_key()
        return point.public_key()
    except ValueError:
        raise JsException("invalid key", "DataError") from None


def _signed(key: EllipticCurvePublicKey, signature: bytes, data: bytes) -> bool:
    if len(signature) != 64:
        return False
    halves = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    try:
        key.verify(encode_dss_signature(*halves), data, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _cipher(key: CryptoKey, use: str) -> AESGCM:
    if key.use != use:
        raise JsException("the key has another use", "InvalidAccessError")
    assert isinstance(key.key, AESGCM)
    return key.key


def _number(text: str) -> int:
    try:
        return int.from_bytes(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True), "big")
    except ValueError:
        raise JsException("invalid key", "DataError") from None


class Crypto:
    """`crypto`."""

    subtle = Subtle()

    def getRandomValues(self, array: Buffer) -> Buffer:
        """Fill a buffer with random bytes, and return it."""
        array.content = os.urandom(len(array.content))
        return array


crypto = Crypto()
