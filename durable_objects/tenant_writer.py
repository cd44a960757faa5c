"""`TenantWriter`: the Durable Object that stores a tenant's records. A thin shell around `retain.memory.writing`.

Every store of a tenant goes through its object, so calls that arrive together are committed together, and none contends
with another. It keeps nothing: if it dies, what was answered is in D1, and the rest may be asked again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from assembly.root import assembly_of
from retain import errors
from retain.json_text import read_own_json
from retain.log import bind
from retain.rpc import answer, refusal
from workers import DurableObject

if TYPE_CHECKING:
    from retain.memory.writing.group import GroupWriter

_log = logging.getLogger("retain.tenant_writer")


class TenantWriter(DurableObject):
    """The one writer of a tenant's records."""

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        self._writer: GroupWriter | None = None

    async def store(self, request: str) -> str:
        """Store contents. request: a `StoreCall` as JSON."""
        from retain.memory.writing.remote import answered

        content = read_own_json(request)
        request_id = content.pop("request_id", None)
        tenant_id = content["scope"]["tenant_id"]
        with (
            bind(tenant_id=tenant_id),
            assembly_of(self.env).located(tenant_id),
        ):  # not the request: several are stored together
            try:
                return answer(await answered(self._grouping(), content))
            except errors.RetainError as error:
                return refusal(error)
            except Exception as failure:  # the edge of the object: the caller gets an envelope, the log the traceback
                _log.exception("unexpected error in a tenant's writer", extra={"request_id": request_id})
                assembly_of(self.env).note_failure("a tenant's writer", failure)
                return refusal(errors.RetainError("an unexpected error occurred; it was logged"))

    def _grouping(self) -> GroupWriter:
        """Return the writer that all calls of this object share."""
        if self._writer is None:
            self._writer = assembly_of(self.env).memory.group_writer()
        return self._writer
