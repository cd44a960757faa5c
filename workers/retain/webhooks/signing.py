"""Signatures of messages, as Standard Webhooks defines them.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import binascii
import hmac
import secrets
from collections.abc import Mapping

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """Return a new secret: `whsec_` and random bytes in base64."""
    return PREFIX + binascii.b2a_base64(secrets.token_bytes(SECRET_BYTES), newline=False).decode()


def signed_headers(secret: str, message_id: str, at_ms: int, body: str) -> Mapping[str, str]:
    """Return the headers of a message that is sent at a time. body: exactly as it is sent.

    Raises: ValueError for a text that is not a secret.
    """
    key = binascii.a2b_base64(secret.removeprefix(PREFIX), strict_mode=True)
    at_s = str(at_ms // 1000)
    digest = hmac.digest(key, f"{message_id}.{at_s}.{body}".encode(), "sha256")
    signature = binascii.b2a_base64(digest, newline=False).decode()
    return {"webhook-id": message_id, "webhook-timestamp": at_s, "webhook-signature": f"v1,{signature}"}
