"""Cloudflare Access: the caller's identity, proved by the token that Access adds to a request.

Source: https://developers.cloudflare.com/cloudflare-one/access-controls/applications/http-apps/authorization-cookie/validating-json/
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from retain.admin.development import check_developer, check_page, is_local
from retain.errors import Misconfigured, Unauthenticated, Unavailable, UpstreamFailed
from retain.http import Request
from retain.json_text import read_json
from retain.ports import Clock, Crypto, Fetch
from retain.roles.subjects import subjects_of

KEYS_FRESH_MS = 3_600_000
"""How long fetched keys are used. Access publishes a key before it signs with it, and keeps the old one for days."""
REFETCH_EVERY_MS = 60_000
"""How often a token with an unknown key may cause a fetch."""
LEEWAY_S = 60
"""How far the clocks of Access and this isolate may differ."""
MAX_TOKEN_BYTES = 16_384
_FETCH_TIMEOUT_MS = 5_000
_MAX_KEYS_BYTES = 1024 * 1024

_TEAM_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\.cloudflareaccess\.com")


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """The deployment's configuration of Access.

    team_domain: `<team>.cloudflareaccess.com`, with or without `https://`. audience: the application's AUD tag.
    environment: only "development" may run without Access, see `authorise`.
    """

    team_domain: str = ""
    audience: str = ""
    environment: str = "production"


@dataclass(frozen=True, slots=True)
class AccessIdentity:
    """Who sent a request.

    kind: "development" only in development mode.
    name: a user's e-mail address, or a service token's client id.
    subject: Access's id of the user; "" for a service token.
    subjects: everything to which a role of the caller may have been granted (`retain.roles.subjects`).
    """

    kind: Literal["user", "service", "development"]
    name: str
    subject: str
    subjects: tuple[str, ...] = ()


_READING = ("GET", "HEAD")
DEVELOPER = AccessIdentity("development", "developer", "")


async def authorise(request: Request, settings: AccessSettings, verifier: AccessVerifier) -> AccessIdentity:
    """Return who sent the request: the identity from Access, or the developer in development mode.

    Development mode requires all of these: the environment is "development", nothing of Access is configured, and the
    request was sent to a loopback name. `wrangler.toml` sets the environment to "production"; a deployed Worker is never
    reached under a loopback name. What a proxy, another machine or a page in the developer's browser sends is not the
    developer's.

    Access itself sends the token with whatever a browser sends that holds its cookie. So a page of another site or port
    may change nothing in the name of whoever looks at it, whatever content type it sends.

    Raises: as `check_developer`, `check_page`, `token_of` and `AccessVerifier.verify`.
    """
    if (
        settings.environment == "development"
        and not settings.team_domain
        and not settings.audience
        and is_local(request.host)
    ):
        check_developer(request)
        return DEVELOPER
    _issuer(settings)  # before the token: if Access is not configured, no request can have one
    if request.method not in _READING:  # a link on another site may lead to what is only read
        check_page(request)
    return await verifier.verify(token_of(request.headers))


def token_of(headers: Mapping[str, str]) -> str:
    """Return the token of Access from the header, otherwise from the cookie. headers: names in lower case.

    Raises: Unauthenticated (code `missing_access_token`).
    """
    if token := headers.get("cf-access-jwt-assertion", "").strip():
        return token
    for cookie in headers.get("cookie", "").split(";"):
        name, _, value = cookie.strip().partition("=")
        if name == "CF_Authorization" and value:
            return value
    raise Unauthenticated("the request did not come through Cloudflare Access", code="missing_access_token")


class AccessVerifier:
    """Verifies Access tokens against the team's public keys, which it keeps for an hour. One instance per isolate."""

    def __init__(self, fetch: Fetch, crypto: Crypto, clock: Clock, settings: AccessSettings) -> None:
        self._fetch = fetch
        self._crypto = crypto
        self._clock = clock
        self._settings = settings
        self._keys: dict[str, dict[str, str]] = {}
        self._fetched_at_ms = -math.inf
        self._tried_at_ms = -math.inf

    async def verify(self, token: str) -> AccessIdentity:
        """Return whom the token names, if the team signed it for this application and it is valid now.

        Raises: Unauthenticated (code `invalid_access_token`, detail `reason`); Unavailable (code
            `access_keys_unavailable`) when the keys cannot be fetched, so that nobody is let in; Misconfigured (code
            `access_not_configured`).
        """
        issuer = _issuer(self._settings)
        header, claims, signature = _decoded(token, issuer, self._settings.audience)
        _check_times(claims, self._clock())
        key = await self._key(issuer, str(header["kid"]))
        message = token.rpartition(".")[0].encode("ascii")
        if not await self._crypto.verify_rs256(key, message, signature):
            raise _invalid("signature")
        return _identity(claims)

    async def _key(self, issuer: str, kid: str) -> dict[str, str]:
        now_ms = self._clock()
        unknown = kid not in self._keys  # the team may have rotated its keys, or the token may be forged
        stale = now_ms - self._fetched_at_ms >= KEYS_FRESH_MS
        if stale or (unknown and now_ms - self._tried_at_ms >= REFETCH_EVERY_MS):
            await self._fetch_keys(issuer, now_ms)
        elif unknown and self._tried_at_ms > self._fetched_at_ms:
            raise _keys_unavailable("the last attempt failed or is under way")
        if kid not in self._keys:
            raise _invalid("unknown_key")
        return self._keys[kid]

    async def _fetch_keys(self, issuer: str, now_ms: int) -> None:
        self._tried_at_ms = now_ms
        url = f"{issuer}/cdn-cgi/access/certs"
        try:
            answer = await self._fetch(
                "GET", url, headers={}, body=None, timeout_ms=_FETCH_TIMEOUT_MS, limit_bytes=_MAX_KEYS_BYTES
            )
        except (Unavailable, UpstreamFailed) as error:
            raise _keys_unavailable(error.code) from error
        if answer.status != 200:
            raise _keys_unavailable(f"status {answer.status}")
        self._keys = _rsa_keys(answer.body)
        self._fetched_at_ms = now_ms


def _issuer(settings: AccessSettings) -> str:
    domain = settings.team_domain.removeprefix("https://").removesuffix("/")
    if not settings.audience or _TEAM_DOMAIN.fullmatch(domain) is None:
        raise Misconfigured(
            "Cloudflare Access is not configured: it needs the team's domain (<team>.cloudflareaccess.com) and the"
            " application's audience tag",
            code="access_not_configured",
        )
    return f"https://{domain}"


def _decoded(token: str, issuer: str, audience: str) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Return header, claims and signature of a well-formed token for this application. Nothing is proved yet.

    A token has one spelling: base64url without padding, and without bits that decoding drops. Otherwise one signature
    could be written in several ways, and whoever compares tokens as text would take them for several tokens.
    Source: https://www.rfc-editor.org/rfc/rfc7515#section-2

    PyJWT reads the token and checks issuer and audience. The crypto port checks the signature (PyJWT would need a
    library that the Workers runtime lacks), and `_check_times` the times (PyJWT reads the wall clock, not the port).
    """
    if len(token) > MAX_TOKEN_BYTES or not token.isascii():
        raise _invalid("malformed")
    import jwt  # only here: callers with a key of an application, and the developer, have no token

    try:
        # Before PyJWT reads it: its decoder accepts any nesting depth, and deep nesting ends the isolate.
        for content in [_canonical(part) for part in token.split(".")][:2]:
            read_json(content.decode())
    except ValueError as error:
        raise _invalid("malformed") from error
    options: jwt.types.Options = {
        "verify_signature": False,
        "verify_exp": False,
        "verify_nbf": False,
        "verify_iat": False,
        "verify_iss": True,
        "verify_aud": True,
        "require": ["iss", "aud", "exp", "iat"],
    }
    try:
        parts = jwt.decode_complete(token, options=options, issuer=issuer, audience=audience)
    except jwt.InvalidIssuerError as error:
        raise _invalid("issuer") from error
    except jwt.InvalidAudienceError as error:
        raise _invalid("audience") from error
    except jwt.MissingRequiredClaimError as error:
        raise _invalid("missing_claim") from error
    except jwt.PyJWTError as error:
        raise _invalid("malformed") from error
    header = parts["header"]
    if header.get("alg") != "RS256" or "crit" in header:
        raise _invalid("algorithm")
    if not isinstance(header.get("kid"), str):
        raise _invalid("unknown_key")
    return header, parts["payload"], parts["signature"]


def _canonical(part: str) -> bytes:
    """Return what a part of a token encodes. Raises: ValueError when it is not spelled as its content is encoded."""
    content = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    if base64.urlsafe_b64encode(content).rstrip(b"=") != part.encode("ascii"):
        raise ValueError("not the canonical spelling")
    return content


def _check_times(claims: Mapping[str, Any], now_ms: int) -> None:
    """Require exp, nbf and iat to be valid now. Source: https://www.rfc-editor.org/rfc/rfc7519#section-4.1"""
    now_s = now_ms / 1000
    times = {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in times.values()):
        raise _invalid("malformed")
    if not now_s < times["exp"] + LEEWAY_S:
        raise _invalid("expired")
    if not all(times[name] <= now_s + LEEWAY_S for name in ("nbf", "iat") if name in times):
        raise _invalid("not_yet_valid")


def _identity(claims: Mapping[str, Any]) -> AccessIdentity:
    """Return whom the claims name. A user's token has an e-mail address, a service token has a common name.

    Both have the type `app`; a token without a type was made for something else.

    Source: https://developers.cloudflare.com/cloudflare-one/access-controls/applications/http-apps/authorization-cookie/application-token/
    """
    if claims.get("type") != "app":
        raise _invalid("token_type")
    subject = claims.get("sub")
    for kind, claim in (("user", "email"), ("service", "common_name")):
        name = claims.get(claim)
        if isinstance(name, str) and name and isinstance(subject, str):
            return AccessIdentity("user" if kind == "user" else "service", name, subject, subjects_of(claims))
    raise _invalid("no_identity")


def _rsa_keys(body: bytes) -> dict[str, dict[str, str]]:
    """Return the RSA keys of a JWK set by their id."""
    try:
        listed: Any = read_json(body.decode())
        keys = {entry["kid"]: {"n": entry["n"], "e": entry["e"]} for entry in listed["keys"] if entry["kty"] == "RSA"}
    except (ValueError, KeyError, TypeError) as error:
        raise _keys_unavailable("malformed") from error
    if not keys or not all(isinstance(text, str) for kid, key in keys.items() for text in (kid, *key.values())):
        raise _keys_unavailable("malformed")
    return keys


def _invalid(reason: str) -> Unauthenticated:
    return Unauthenticated("the Access token is not valid", code="invalid_access_token", reason=reason)


def _keys_unavailable(reason: str) -> Unavailable:
    return Unavailable("the keys of Cloudflare Access are not available", code="access_keys_unavailable", reason=reason)
