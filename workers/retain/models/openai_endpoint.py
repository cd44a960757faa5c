"""A server that speaks OpenAI's wire format."""

from __future__ import annotations

from retain.models.endpoint import Endpoint, WireObject

__all__ = ["OpenAiEndpoint", "WireObject"]


class OpenAiEndpoint(Endpoint):
    """See `Endpoint`. The key is sent as a bearer token."""

    def credentials(self) -> dict[str, str]:
        """Return the header with the key."""
        return {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}
