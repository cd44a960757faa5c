"""A tool of the gateway as an agent sees it: the proxy's own code path and checks, with the run's tenant."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from retain.agents.tools.built_in import MAX_RESULT_BYTES, CallContext, ToolResult
from retain.errors import Unavailable, UpstreamFailed
from retain.json_text import JsonObject
from retain.models.chat import ToolSpec


class Upstream(Protocol):
    """Calls one tool of one tenant through the proxy; returns the upstream's status and body."""

    def __call__(self, arguments: JsonObject, idempotency_key: str) -> Awaitable[tuple[int, bytes]]:
        """Raises: as the proxy does."""
        ...


@dataclass(frozen=True)
class ProxiedTool:
    """A tool that the tenant has in the gateway. idempotent: as its configuration declares."""

    spec: ToolSpec
    idempotent: bool
    upstream: Upstream

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Return the upstream's body. Raises: Unavailable or UpstreamFailed for a status of 400 or more."""
        status, body = await self.upstream(arguments, context.key)
        text = body[: 2 * MAX_RESULT_BYTES].decode("utf-8", "replace")  # more than a model reads takes memory alone
        if status >= 500 or status == 429:
            raise Unavailable(f"the tool's upstream answered {status}", code="upstream_status", upstream_status=status)
        if status >= 400:
            raise UpstreamFailed(
                f"the tool's upstream answered {status}: {json.dumps(text[:500])}",
                code="upstream_status",
                upstream_status=status,
            )
        return ToolResult(text)
