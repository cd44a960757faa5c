"""Short-lived tokens for the users of an application: made with a key, bound to its tenant, a user and perhaps an agent.

A token is a JWT, signed with ES256 (https://www.rfc-editor.org/rfc/rfc7519). It names the key that it was made with, so that
revoking the key ends its tokens too. Only one header is ever issued, and no other is accepted.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from retain.errors import Misconfigured, Unauthenticated
from retain.identifiers import INSTANCE
from retain.json_text import read_json, read_own_json
from retain.ports import Clock, Crypto

MAX_MINUTES = 60
"""Longest life of a token."""
MAX_CHARACTERS = 2_048
_PREFIX_CHARACTERS = 20


def _written(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


_HEADER = _written(b'{"alg":"ES256","typ":"JWT"}')


@dataclass(frozen=True, slots=True)
class BoundUser:
    """For whom a token speaks. agent_type: the one agent that it reaches; None for each of the tenant."""

    user_id: str
    agent_type: str | None = None

    def reaches(self, agent_type: str | None) -> bool:
        """Return whether the token reaches an agent. agent_type: None where none is named."""
        return agent_type is None or self.agent_type is None or agent_type == self.agent_type

    def instance(self, instance_id: str) -> str:
        """Return the name of an instance among those of the user.

        It begins with a digest of the user, so that no name which a bearer sends is an instance of somebody else. A name
        that has the beginning already stays as it is.
        """
        own = f"user-{sha256(self.user_id.encode()).hexdigest()[:_PREFIX_CHARACTERS]}-"
        named = instance_id if instance_id.startswith(own) else f"{own}{instance_id}"
        if INSTANCE.fullmatch(named) is None:  # too long with the beginning: a digest of it is as good a name
            named = f"{own}{sha256(instance_id.encode()).hexdigest()[:_PREFIX_CHARACTERS]}"
        return named


@dataclass(frozen=True, slots=True)
class UserToken:
    """What a token says. key_id: the key that it was made with."""

    tenant_id: str
    key_id: str
    bound: BoundUser
    expires_at_ms: int


def presented_token(headers: Mapping[str, str]) -> str | None:
    """Return the token of a user that a request carries as `authorization: Bearer …`, or None."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" and text.strip().startswith(f"{_HEADER}.") else None


class UserTokens:
    """Makes and reads tokens. signing_key: a JWK with the private key on P-256, as JSON; "" for none."""

    def __init__(self, crypto: Crypto, clock: Clock, signing_key: str) -> None:
        self._crypto = crypto
        self._clock = clock
        self._signing_key = signing_key

    @property
    def enabled(self) -> bool:
        """Whether the deployment has a key to sign with."""
        return bool(self._signing_key)

    async def issue(self, tenant_id: str, key_id: str, bound: BoundUser, *, minutes: int) -> tuple[str, int]:
        """Return a token, and when it expires, in epoch milliseconds.

        Raises: Misconfigured (code `token_key_missing`, `invalid_token_key`).
        """
        if not self.enabled:
            raise Misconfigured("TOKEN_KEY is not set: `retain keys signing-key` prints one", code="token_key_missing")
        issued_s = self._clock() // 1000
        claims = {
            "iss": "retain",
            "aud": tenant_id,
            "sub": bound.user_id,
            "agent": bound.agent_type,
            "key": key_id,
            "iat": issued_s,
            "exp": issued_s + minutes * 60,
        }
        message = f"{_HEADER}.{_written(json.dumps(claims, separators=(',', ':')).encode())}"
        signature = await self._crypto.sign_es256(self._jwk(), message.encode())
        return f"{message}.{_written(signature)}", claims_end_ms(claims)

    async def read(self, text: str) -> UserToken:
        """Return what a token says, once its signature and its times are proved.

        Raises: Unauthenticated (code `invalid_user_token`); Misconfigured (code `invalid_token_key`).
        """
        message, _, signature = text.rpartition(".")
        if len(text) > MAX_CHARACTERS or not text.isascii() or message.count(".") != 1:
            raise _refused()
        signed = _read(signature)
        if not await self._crypto.verify_es256(self._jwk(), message.encode(), signed):
            raise _refused()
        claims: dict[str, Any] = read_own_json(_read(message.partition(".")[2]))
        expires_at_ms = claims_end_ms(claims)
        if self._clock() >= expires_at_ms:
            raise _refused()
        return UserToken(claims["aud"], claims["key"], BoundUser(claims["sub"], claims["agent"]), expires_at_ms)

    def _jwk(self) -> Mapping[str, str]:
        try:
            found = read_json(self._signing_key)
        except ValueError as error:
            raise _unusable() from error
        if not isinstance(found, dict) or found.get("crv") != "P-256" or not all(map(found.get, ("x", "y", "d"))):
            raise _unusable()
        return {name: str(found[name]) for name in ("x", "y", "d")}


def claims_end_ms(claims: Mapping[str, Any]) -> int:
    """Return when a token with these claims expires, in epoch milliseconds."""
    return int(claims["exp"]) * 1000


def _read(part: str) -> bytes:
    """Return what a part of a token encodes, in its one spelling. Raises: Unauthenticated."""
    try:
        content = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise _refused() from error
    if _written(content) != part:
        raise _refused()
    return content


def _refused() -> Unauthenticated:
    return Unauthenticated("the user's token is invalid or has expired", code="invalid_user_token")


def _unusable() -> Misconfigured:
    return Misconfigured("TOKEN_KEY is not a JWK with a private key on P-256", code="invalid_token_key")
