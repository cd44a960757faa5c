"""Who asks, and what they may do: people and services through Cloudflare Access, applications with their keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bindings
from retain.admin.access import AccessIdentity, AccessSettings, AccessVerifier, authorise
from retain.application_keys.keys import FRESH_MS, ApplicationKey, ApplicationKeys, presented_key, tenant_of_key
from retain.application_keys.origins import check_origin
from retain.application_keys.preflights import Preflights
from retain.application_keys.scope import KeyScope, OwnTenant
from retain.application_keys.tokens import BoundUser, UserTokens, presented_token
from retain.errors import Forbidden, InvalidInput, Misconfigured, Unauthenticated, Unavailable
from retain.http import Request
from retain.roles.grants import GrantedAuthority, Grants
from retain.roles.principals import key_with_id, person_named, user_with_id
from retain.roles.role import Authority, OwnerOfAll
from retain.roles.subjects import read_subjects

if TYPE_CHECKING:
    from assembly.root import Assembly


@dataclass(frozen=True, slots=True)
class KnownCaller:
    """Who sent a request. principal: how history names them. scopes: of an application's key, else None.
    bound: for whom the token of an application's user speaks. key: the application's, None for any other
    caller. of_tenant: the tenant in which the principal's name means them, "" if it does everywhere."""

    name: str
    principal: str
    authority: Authority
    scopes: Sequence[KeyScope] | None = None
    bound: BoundUser | None = None
    key: ApplicationKey | None = None
    of_tenant: str = ""

    @property
    def counted(self) -> str:
        """How rates name the caller: apart from everybody else, also from a user of another tenant with the same id."""
        return f"{self.of_tenant}:{self.principal}" if self.of_tenant else self.principal


class AccessParts:
    """Decides who may call the routes that Cloudflare Access protects, and what they may do there."""

    def __init__(self, root: Assembly) -> None:
        """Raises: Misconfigured (code `invalid_setting`) for owners that are not subjects."""
        self._root = root
        platform = root.platform
        settings = platform.settings
        self.settings = AccessSettings(settings.access_team_domain, settings.access_audience, settings.environment)
        self.verifier = AccessVerifier(bindings.fetch, platform.crypto, bindings.now_ms, self.settings)
        self.grants = _grants_of(root)
        self.keys = ApplicationKeys(platform.sql, bindings.now_ms, bindings.in_background)
        self.tokens = UserTokens(platform.crypto, bindings.now_ms, settings.token_key)
        self.preflights = Preflights(platform.sql, bindings.now_ms)
        self._accepts_keys = settings.application_keys
        try:
            self._owners = read_subjects(settings.owners)
        except InvalidInput as error:
            raise Misconfigured(f"OWNERS: {error.message}", code="invalid_setting") from error

    async def caller_of(self, request: Request) -> KnownCaller:
        """Return who sent a request: an application or its user, if one is presented with a key or token that is accepted.

        A page of another origin may read the answer if the key allows its origin; where no key is known, if any key does.
        Raises: as `authorise`, `ApplicationKeys.authenticate`, `UserTokens.read` and `check_origin`.
        """
        try:
            known = await self._application_of(request) if self._accepts_keys else None
            if known is None:
                identity = await authorise(request, self.settings, self.verifier)
                return KnownCaller(identity.name, person_named(identity.name), self.authority_of(identity))
        except (Unauthenticated, Forbidden):
            with self._root.reading_everywhere():
                await self.preflights.open_refusal(request.page)
            raise
        if check_origin(request.headers.get("origin"), request.host, () if known.key is None else known.key.origins):
            request.page.open()
        return known

    async def while_valid(self, key: ApplicationKey, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
        """Yield the pieces of a stream for as long as the key is valid with which it was asked for.

        What is known of the key is read again after ten seconds; while D1 is away, the stream continues.
        Raises: Unauthenticated (code `invalid_api_key`).
        """
        async for piece in pieces:
            await self._require(key)
            yield piece

    async def require_again(self, key: ApplicationKey, began_ms: int) -> None:
        """Check the key of a request that has lasted for as long as an isolate uses what it has read.

        Raises: Unauthenticated (code `invalid_api_key`). What was done is done, but its answer is not read.
        """
        if bindings.now_ms() >= began_ms + FRESH_MS:
            await self._require(key)

    async def _require(self, key: ApplicationKey) -> None:
        with self._root.located(key.tenant_id), suppress(Unavailable):
            await self.keys.require(key.key_id)

    async def _application_of(self, request: Request) -> KnownCaller | None:
        text = presented_key(request.headers)
        if text is not None:
            with self._root.located(tenant_of_key(text)):
                key = await self.keys.authenticate(text)
            principal = key_with_id(key.key_id)
            return KnownCaller(principal, principal, OwnTenant(key.tenant_id), key.scopes, key=key)
        text = presented_token(request.headers) if self.tokens.enabled else None
        if text is None:
            return None
        token = await self.tokens.read(text)
        with self._root.located(token.tenant_id):
            key = await self.keys.require(token.key_id)
        principal = user_with_id(token.bound.user_id)
        own = OwnTenant(token.tenant_id if token.tenant_id == key.tenant_id else "")
        scopes = tuple(scope for scope in key.scopes if scope in ("runs", "admin"))
        return KnownCaller(principal, principal, own, scopes, token.bound, key, of_tenant=token.tenant_id)

    def authority_of(self, identity: AccessIdentity) -> Authority:
        """Return what the identity may do: the developer everything, others what was granted."""
        if identity.kind == "development":
            return OwnerOfAll()
        return GrantedAuthority(self.grants, identity.subjects, self._owners)


def _grants_of(root: Assembly) -> Grants:
    if root.platform.shards is None:
        return Grants(root.platform.sql, bindings.now_ms)
    from retain.shards.everywhere import ShardedGrants

    return ShardedGrants(root.platform.sql, bindings.now_ms)
