"""What an import over HTTP may bring into a tenant, beyond what makes a line valid. Nothing has been written before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from retain.admin.context import AdminContext
from retain.admin.definitions.defining import DefinedAgents
from retain.errors import RetainError
from retain.lifecycle.importing import Imported, import_read
from retain.lifecycle.transfer.items import ItemLine
from retain.lifecycle.transfer.kinds import ROW_KINDS
from retain.lifecycle.transfer.lines import bad_line, read_lines
from retain.lifecycle.transfer.rows import RowLine
from retain.routing.permission import require_role
from retain.routing.requests import TypedRequest

_AGENT = tuple(ROW_KINDS["agent"].columns)


async def import_permitted(context: AdminContext, request: TypedRequest[str, Any], *, include_erased: bool) -> Imported:
    """Import the lines of a body, with the digests that versions of agents have.

    A value that is sealed for another tenant is opened with the deployment's key, as by a restore of that tenant's backup:
    who imports it must be its owner.
    Raises: Forbidden (code `role_required`); InvalidInput (code `invalid_line`), also for an agent that the tenant may not
        define; as `import_lines`.
    """
    tenant_id, agents = request.tenant_id, context.defined()
    lines = read_lines(request.body, tenant_id, context.clock())
    sealed = {line.sealed_tenant for line in lines if isinstance(line, ItemLine)}
    for other in sorted(one for one in sealed if one not in (None, tenant_id)):
        await require_role(request.http.authority, "owner", other)
    permitted = [
        _version(line, agents) if isinstance(line, RowLine) and line.kind == "agent" else line for line in lines
    ]
    return await import_read(context.stores, tenant_id, permitted, items=context.items, include_erased=include_erased)


def _version(line: RowLine, agents: DefinedAgents) -> RowLine:
    row = dict(zip(_AGENT, line.cells, strict=True))
    text = row["definition"]
    try:
        digest = "" if text is None else agents.digest_of_imported(str(row["agent_type"]), str(text))
    except RetainError as error:
        problems = error.details.get("problems")
        raise bad_line(line.number, problems if isinstance(problems, list) else [error.message]) from error
    return replace(line, cells=tuple({**row, "digest": digest}.values()))
