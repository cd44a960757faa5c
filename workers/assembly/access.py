"""Cloudflare Access: the deployment's settings for it, the check of its tokens, and what their bearers may do."""

from __future__ import annotations

import bindings
from bindings import Platform
from retain.admin.access import AccessIdentity, AccessSettings, AccessVerifier
from retain.errors import InvalidInput, Misconfigured
from retain.roles.grants import GrantedAuthority, Grants
from retain.roles.role import Authority, OwnerOfAll
from retain.roles.subjects import read_subjects


class AccessParts:
    """Decides who may call the routes that Cloudflare Access protects, and what they may do there."""

    def __init__(self, platform: Platform) -> None:
        """Raises: Misconfigured (code `invalid_setting`) for owners that are not subjects."""
        settings = platform.settings
        self.settings = AccessSettings(settings.access_team_domain, settings.access_audience, settings.environment)
        self.verifier = AccessVerifier(bindings.fetch, platform.crypto, bindings.now_ms, self.settings)
        self.grants = Grants(platform.sql, bindings.now_ms)
        try:
            self._owners = read_subjects(settings.owners)
        except InvalidInput as error:
            raise Misconfigured(f"OWNERS: {error.message}", code="invalid_setting") from error

    def authority_of(self, identity: AccessIdentity) -> Authority:
        """Return what the identity may do: the developer everything, others what was granted."""
        if identity.kind == "development":
            return OwnerOfAll()
        return GrantedAuthority(self.grants, identity.subjects, self._owners)
