"""What the administrator's routes work with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bindings
from retain.admin.context import AdminContext

if TYPE_CHECKING:
    from assembly.root import Assembly


def admin_context(root: Assembly) -> AdminContext:
    """Return the context. What only some routes need is made when a request needs it."""
    return AdminContext(
        tenants=root.directory.tenants,
        house_of=root.directory.house_of,
        sql=root.platform.sql,
        shares_users=root.directory.shares_users,
        semantic=lambda view: root.memory.semantic(view.scope, view),
        clock=bindings.now_ms,
        ingestion=lambda scope: root.memory.ingestion(scope),
        background=bindings.in_background,
        stores=root.lifecycle.stores,
        items=lambda namespace: root.items.client(namespace, hot_reads="checked"),
        migration=lambda: root.items.migration(),
        backfill=lambda: root.items.backfill(),
        evaluation=lambda: root.evaluation.runner(),
    )
