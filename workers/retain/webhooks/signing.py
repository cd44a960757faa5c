"""Signatures of messages, as Standard Webhooks defines them.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import binascii
import hmac
from collections.abc import Mapping, Sequence
from secrets import token_bytes

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """Return a new secret: `whsec_` and random bytes in base64."""
    return PREFIX + binascii.b2a_base64(token_bytes(SECRET_BYTES), newline=False).decode()


def signed_headers(secrets: Sequence[str], message_id: str, at_ms: int, body: str) -> Mapping[str, str]:
    """Return the headers of a message that is sent at a time. secrets: each signs it. body: exactly as it is sent.

    Raises: ValueError for a text that is not a secret.
    """
    at_s = str(at_ms // 1000)
    signed = f"{message_id}.{at_s}.{body}".encode()
    signatures = " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets)
    return {"webhook-id": message_id, "webhook-timestamp": at_s, "webhook-signature": signatures}


def _signature(secret: str, signed: bytes) -> str:
    key = binascii.a2b_base64(secret.removeprefix(PREFIX), strict_mode=True)
    return binascii.b2a_base64(hmac.digest(key, signed, "sha256"), newline=False).decode()
