"""Cloudflare Access: the deployment's settings for it, and the check of its tokens."""

from __future__ import annotations

import bindings
from bindings import Platform
from retain.admin.access import AccessSettings, AccessVerifier


class AccessParts:
    """Decides who may call the routes that Cloudflare Access protects."""

    def __init__(self, platform: Platform) -> None:
        settings = platform.settings
        self.settings = AccessSettings(settings.access_team_domain, settings.access_audience, settings.environment)
        self.verifier = AccessVerifier(bindings.fetch, platform.crypto, bindings.now_ms, self.settings)
