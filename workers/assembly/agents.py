"""What the agents' routes work with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retain.agents.context import AgentsContext

if TYPE_CHECKING:
    from assembly.root import Assembly


def agents_context(root: Assembly) -> AgentsContext:
    """Return the context."""
    return AgentsContext(root.directory.tenants, root.directory.catalogue, root.platform.instances, root.platform.sql)
