"""Web Crypto on the host: the crypto port over `cryptography`."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateNumbers,
    EllipticCurvePublicNumbers,
)
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256

from retain.errors import Forbidden, InvalidInput, Misconfigured

KEY_BYTES = 32
NONCE_BYTES = 12
"""Source: https://nvlpubs.nist.gov/nistpubs/Legacy/SP/nistspecialpublication800-38d.pdf, 8.2"""


class HostCrypto:
    """Implements `retain.ports.Crypto`."""

    async def encrypt(self, key: bytes, plaintext: bytes, associated: bytes) -> bytes:
        """Seal the plaintext. See the port.

        Raises: Misconfigured (code `invalid_encryption_key`) unless the key has 32 bytes.
        """
        nonce = os.urandom(NONCE_BYTES)
        return nonce + _cipher(key).encrypt(nonce, plaintext, associated)

    async def decrypt(self, key: bytes, sealed: bytes, associated: bytes) -> bytes:
        """Undo `encrypt`. See the port.

        Raises: Forbidden (code `decryption_failed`); Misconfigured (code `invalid_encryption_key`).
        """
        cipher = _cipher(key)
        try:
            return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], associated)
        except (InvalidTag, ValueError) as error:  # ValueError: too short to hold a nonce
            raise Forbidden(
                "the sealed data does not match the key or the associated data", code="decryption_failed"
            ) from error

    async def verify_rs256(self, public_key: Mapping[str, str], message: bytes, signature: bytes) -> bool:
        """Return whether the signature is valid. See the port.

        Raises: InvalidInput (code `invalid_public_key`) when the JWK has no usable RSA key.
        """
        key = _public_key(public_key)
        try:
            key.verify(signature, message, PKCS1v15(), SHA256())
        except InvalidSignature:
            return False
        return True

    async def sign_es256(self, private_key: Mapping[str, str], message: bytes) -> bytes:
        """Return the signature. See the port."""
        try:
            numbers = EllipticCurvePrivateNumbers(_number(private_key["d"]), _point(private_key))
            signed = numbers.private_key().sign(message, ECDSA(SHA256()))
        except (KeyError, ValueError) as error:
            raise _unusable() from error
        r, s = decode_dss_signature(signed)
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    async def verify_es256(self, public_key: Mapping[str, str], message: bytes, signature: bytes) -> bool:
        """Return whether the signature is valid. See the port."""
        try:
            key = _point(public_key).public_key()
        except (KeyError, ValueError) as error:
            raise _unusable() from error
        if len(signature) != 64:
            return False
        r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
        try:
            key.verify(encode_dss_signature(r, s), message, ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True


def _point(jwk: Mapping[str, str]) -> EllipticCurvePublicNumbers:
    return EllipticCurvePublicNumbers(_number(jwk["x"]), _number(jwk["y"]), SECP256R1())


def _unusable() -> InvalidInput:
    return InvalidInput("the JWK holds no usable key", code="invalid_public_key")


def _cipher(key: bytes) -> AESGCM:
    if len(key) != KEY_BYTES:  # a shorter key would silently select a weaker cipher
        raise Misconfigured(f"the encryption key must have {KEY_BYTES} bytes", code="invalid_encryption_key")
    return AESGCM(key)


def _public_key(jwk: Mapping[str, str]) -> RSAPublicKey:
    try:
        return RSAPublicNumbers(_number(jwk["e"]), _number(jwk["n"])).public_key()
    except (KeyError, ValueError) as error:
        raise _unusable() from error


def _number(text: str) -> int:
    """Read base64url without padding. Source: https://www.rfc-editor.org/rfc/rfc7518#section-6.3.1"""
    try:
        return int.from_bytes(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True), "big")
    except binascii.Error as error:
        raise ValueError("not base64url") from error
